"""An RKStep in fused kernels, as one operator that torch.compile and CUDA graphs leave whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.fast import list_kernels
from rkcnn.model.fast.launch_backward import run_backward
from rkcnn.model.fast.launch_forward import Kept, allocate, run_forward
from rkcnn.model.fast.program import make_program, numbers_of
from rkcnn.model.fast.tables import address_table
from rkcnn.model.fast.tiles import power_of_two
from rkcnn.model.stage import Stage
from rkcnn.model.steps.rkcnn import RKStep

Results = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]  # the step's result and the fields of Kept


@torch.library.custom_op("rkcnn::rk_step", mutates_args=())
def rk_step(y: Tensor, parameters: list[Tensor], numbers: list[int], eps: float) -> Results:
    """Take the step of the program (s, k, newest, sweeps, y): return its result and what the backward pass needs."""
    with torch.cuda.device_of(y):
        result, kept = run_forward(y, parameters, make_program(tuple(numbers)), eps)
    return result, *kept


@rk_step.register_fake
def _(y: Tensor, parameters: list[Tensor], numbers: list[int], eps: float) -> Results:
    result, kept = allocate(y, make_program(tuple(numbers)))
    return result, *kept


@torch.library.custom_op("rkcnn::rk_step_backward", mutates_args=())
def rk_step_backward(gradient: Tensor, kept: list[Tensor], numbers: list[int]) -> tuple[Tensor, Tensor]:
    """Return the gradient of y, and those of all parameters in one flat buffer."""
    with torch.cuda.device_of(gradient):
        return run_backward(gradient, Kept(*kept), make_program(tuple(numbers)))


@rk_step_backward.register_fake
def _(gradient: Tensor, kept: list[Tensor], numbers: list[int]) -> tuple[Tensor, Tensor]:
    images, k, height, width = gradient.shape
    result = gradient.new_empty((images, height, width, k)).permute(0, 3, 1, 2)
    return result, gradient.new_empty(make_program(tuple(numbers)).starts[-1], dtype=torch.float32)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
    _, parameters, numbers, _ = inputs
    ctx.save_for_backward(*output[1:])
    ctx.numbers, ctx.shapes = numbers, [(parameter.shape, parameter.stride()) for parameter in parameters]
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, gradient: Tensor, *others: None) -> tuple[Any, ...]:
    program = make_program(tuple(ctx.numbers))
    result, flat = rk_step_backward(gradient, list(ctx.saved_tensors), ctx.numbers)
    s = program.s
    if program.sweeps > 1:  # every sweep has the same weights
        guess, refine = flat.split((program.starts[s], program.starts[-1] - program.starts[s]))
        flat = torch.cat([guess, refine.view(program.sweeps, -1).sum(0)])
    found = []
    for e in range(program.stages):
        for n, place in enumerate(program.gradients(e)[:6]):
            shape, stride = ctx.shapes[6 * e + n]
            found.append(flat.as_strided(shape, stride, program.starts[e] + place))
    return result, found, None, None


rk_step.register_autograd(_backward, setup_context=_keep)


@torch.library.custom_op("rkcnn::track_moments", mutates_args=("running", "counts"))
def track_moments(
    moments: Tensor, running: list[Tensor], counts: list[Tensor], numbers: list[int], momentum: float
) -> None:
    """Move running means and variances (norm1's, norm2's, of each stage) towards the batch's; count the batches."""
    program = make_program(tuple(numbers))
    k, uses = program.k, max(1, program.sweeps)
    rows = []
    for stage in range(program.stages):
        found = [(e, evaluation.reads) for e, evaluation in enumerate(program.evaluations) if evaluation.stage == stage]
        mean1, variance1, mean2, variance2 = (buffer.data_ptr() for buffer in running[4 * stage : 4 * stage + 4])
        count1, count2 = (count.data_ptr() for count in counts[2 * stage : 2 * stage + 2])
        rest = [-1] * (uses - len(found))
        for j in range(len(found[0][1])):
            at, slots = 4 * k * j, [reads[j] for _, reads in found]
            rows.append((mean1 + at, variance1 + at, 0 if j else count1, *slots, *rest))
        rows.append((mean2, variance2, count2, *[program.slots + e for e, _ in found], *rest))
    with torch.cuda.device_of(moments):
        list_kernels.track[(len(rows),)](
            address_table(tuple(rows), moments.device), moments, momentum, USES=uses, R=k, K=program.width,
            BLOCK=power_of_two(k),
        )  # fmt: skip


@track_moments.register_fake
def _(moments: Tensor, running: list[Tensor], counts: list[Tensor], numbers: list[int], momentum: float) -> None:
    return None


def take_step(step: RKStep, y: Tensor) -> Tensor:
    """Return y + e_1 + ... + e_s, in the precision that autocast asks for, and update the running statistics.

    Without autocast it is in that of y, and the products of float32 are rounded to tf32.
    """
    stages = [stage for stage in (*step.guess, *step.refine) if isinstance(stage, Stage)]
    norms = [norm for stage in stages for norm in (stage.norm1, stage.norm2) if isinstance(norm, BatchNorm)]
    parameters = [
        parameter
        for stage in stages
        for parameter in (
            stage.norm1.weight,
            stage.norm1.bias,
            stage.narrow.weight,
            stage.norm2.weight,
            stage.norm2.bias,
            stage.conv.weight,
        )
    ]
    numbers = numbers_of(step)
    if torch.is_autocast_enabled(y.device.type):
        y = y.to(torch.get_autocast_dtype(y.device.type))
    result, _, _, moments, *_ = rk_step(y, parameters, numbers, norms[0].eps)
    running = [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var)]
    counts = [norm.num_batches_tracked for norm in norms]
    with torch.no_grad():
        track_moments(moments.detach(), running, counts, numbers, norms[0].momentum)
    return result
