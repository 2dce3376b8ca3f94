"""f of RKNN, RK-Net and ODE-Net in fused kernels, as one operator that torch.compile and CUDA graphs leave whole.

f is norm1, ReLU, 3x3, norm2, ReLU, 3x3, norm3. What the time's channel and the bias add to a convolution is the same
for every image, and is added where the statistics of its result are taken.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.fast import backward_kernels, forward_kernels
from rkcnn.model.fast import ode_kernels as kernels
from rkcnn.model.fast.launch_backward import differentiate_conv
from rkcnn.model.fast.launch_forward import (
    FINISHED_AT_ONCE,
    apply_norm,
    partials,
    parts_of,
    plain_arguments,
    sum_arguments,
)
from rkcnn.model.fast.program import fused_width
from rkcnn.model.fast.tiles import choose_tiles, part_count
from rkcnn.model.layers import Conv
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.solvers.solver_step import Time

Results = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]  # f(t, y) and what the backward pass needs


@torch.library.custom_op("rkcnn::ode_function", mutates_args=())
def ode_function(
    y: Tensor, centre: Tensor, weights: list[Tensor], constants: list[Tensor], norms: list[Tensor], epsilon: float
) -> Results:
    """Return f(t, y) in the precision of `weights`, and what the backward pass needs.

    `centre` (K,) is about the mean of each channel: y - centre is what is rounded, and norm1 removes any constant.
    `weights` are those of the two convolutions, (K, 3, 3, K); `constants`, if there are any, are what is added to the
    results, (pixels, K) in float32; `norms` are the weight and the bias of each norm. What is kept are y - centre,
    rounded, and the inputs of norm2 and norm3, (M, K), and for each norm the moments of its input, and its scale and
    shift.
    """
    y = y.contiguous(memory_format=torch.channels_last)
    out, state, _, _, moments, scales = _allocate(y, centre, weights, constants, norms, epsilon)
    images, real, height, width = y.shape
    rows, k = state.shape
    tiles = choose_tiles(rows, k, state.element_size())
    _, each = part_count(tiles.sums.rows, tiles.sums.programs, rows, 1)
    part = parts_of(state[None], each)

    def finish(n: int) -> None:
        forward_kernels.finish_moments[(triton.cdiv(k, FINISHED_AT_ONCE),)](
            part, moments[n], norms[2 * n], norms[2 * n + 1], scales[n], len(part), rows, epsilon, R=real, K=k, BM=each,
            NORM=True, BP=partials(len(part)), BC=FINISHED_AT_ONCE,
        )  # fmt: skip

    def convolve(n: int, x: Tensor) -> Tensor:
        apply_norm(x[None], scales[n : n + 1], normalised, tiles.plain)
        found = torch.conv2d(normalised.permute(0, 3, 1, 2), weights[n].permute(0, 3, 1, 2), padding=1)
        z = found.permute(0, 2, 3, 1).reshape(rows, k)  # the same memory, as its channels are last
        constant = constants[n] if constants else moments
        kernels.add_constant[(len(part),)](
            z, constant, part, rows, each, height * width, K=k, ADDS=bool(constants), **sum_arguments(tiles.sums, k)
        )
        finish(n + 1)
        return z

    normalised = state.new_empty((images, height, width, k))
    with torch.cuda.device_of(y):
        kernels.take_centred[(len(part),)](
            y, centre, state, part, rows, each, R=real, K=k, **sum_arguments(tiles.sums, k)
        )
        finish(0)
        z1 = convolve(0, state)
        z2 = convolve(1, z1)
        kernels.scale_and_shift[(triton.cdiv(rows, tiles.plain.rows),)](
            z2, scales[2], out, rows, R=real, K=k, **plain_arguments(tiles.plain, k)
        )
    return out, state, z1, z2, moments, scales


@ode_function.register_fake
def _allocate(
    y: Tensor, centre: Tensor, weights: list[Tensor], constants: list[Tensor], norms: list[Tensor], epsilon: float
) -> Results:
    images, real, height, width = y.shape
    k = len(weights[0])

    def activation() -> Tensor:
        return weights[0].new_empty((images * height * width, k))

    out = weights[0].new_empty((images, height, width, real)).permute(0, 3, 1, 2)
    moments, scales = norms[0].new_empty((3, 3, k)), norms[0].new_empty((3, 2, k))
    return out, activation(), activation(), activation(), moments, scales


@torch.library.custom_op("rkcnn::ode_function_backward", mutates_args=())
def ode_function_backward(
    gradient: Tensor, kept: list[Tensor], weights: list[Tensor], adds: bool, precision: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of y, in its precision, of both weights, of both constants and of the norms' numbers."""
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    state, z1, z2, moments, scales = kept
    images, real, height, width = gradient.shape
    rows, k = state.shape
    pixels = (images, height, width, k)
    tiles = choose_tiles(rows, k, state.element_size())
    found, *weight_gradients, constant1, constant2, numbers = _allocate_gradients(
        gradient, kept, weights, adds, precision
    )
    _, each = part_count(tiles.sums.rows, tiles.sums.programs, rows, 1)
    part = parts_of(state[None], each)
    coefficients = moments.new_empty((3, k))
    normalised, through = state.new_empty(pixels), torch.empty_like(state)
    blocks, streamed = plain_arguments(tiles.plain, k), sum_arguments(tiles.sums, k)

    def finish(n: int) -> None:
        backward_kernels.finish_sums[(triton.cdiv(k, FINISHED_AT_ONCE), 1)](
            part, moments[n], scales[n], coefficients, numbers, len(part), rows, 0, 0, 2 * n * real, (2 * n + 1) * real,
            R=real, K=k, BP=partials(len(part)), BC=FINISHED_AT_ONCE,
        )  # fmt: skip

    def add_norm(g: Tensor, columns: int, z: Tensor, out: Tensor, out_columns: int) -> None:
        kernels.add_norm_between[(triton.cdiv(rows, tiles.plain.rows),)](
            g, z, coefficients, out, rows, A=columns, R=out_columns, K=k, **blocks
        )

    def differentiate(n: int, x: Tensor, constant: Tensor) -> None:
        """Turn `through` from the gradient of a convolution's result to that of its norm's output before the ReLU."""
        if adds:
            torch.sum(through.view(images, height * width, k), 0, dtype=constant.dtype, out=constant)
        apply_norm(x[None], scales[n : n + 1], normalised, tiles.plain)
        weight_gradients[n].copy_(
            differentiate_conv(through.view(pixels), normalised, weights[n], 1).permute(0, 2, 3, 1)
        )
        before = differentiate_conv(through.view(pixels), normalised, weights[n], 0).permute(0, 2, 3, 1).contiguous()
        backward_kernels.mask_with_sums[(len(part),)](before, x, scales[n], through, part, rows, each, K=k, **streamed)
        finish(n)

    with torch.cuda.device_of(gradient):
        kernels.sum_gradient[(len(part),)](gradient, z2, part, rows, each, R=real, K=k, **streamed)
        finish(2)
        add_norm(gradient, real, z2, through, k)
        differentiate(1, z1, constant2)
        add_norm(through, k, z1, through, k)
        differentiate(0, state, constant1)
        add_norm(through, k, state, found, real)
    return found, weight_gradients[0], weight_gradients[1], constant1, constant2, numbers


@ode_function_backward.register_fake
def _allocate_gradients(
    gradient: Tensor, kept: list[Tensor], weights: list[Tensor], adds: bool, precision: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    images, real, height, width = gradient.shape
    k, moments = len(weights[0]), kept[3]
    found = gradient.new_empty((images, height, width, real), dtype=precision).permute(0, 3, 1, 2)
    constants = [moments.new_empty((height * width, k) if adds else 0) for _ in range(2)]
    return (
        found,
        torch.empty_like(weights[0]),
        torch.empty_like(weights[1]),
        constants[0],
        constants[1],
        moments.new_empty((6, real)),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
    y, _, weights, constants, _, _ = inputs
    ctx.save_for_backward(*output[1:], *weights)
    ctx.adds, ctx.precision = bool(constants), y.dtype
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, gradient: Tensor, *others: None) -> tuple[Any, ...]:
    *kept, weight1, weight2 = ctx.saved_tensors
    found, *rest, numbers = ode_function_backward(gradient, kept, [weight1, weight2], ctx.adds, ctx.precision)
    return found, None, rest[:2], rest[2:] if ctx.adds else [], list(numbers.unbind()), None


ode_function.register_autograd(_backward, setup_context=_keep)


def take_function(f: OdeFunction, t: Time, y: Tensor, evaluation: int = 0) -> Tensor:
    """Return f(t, y) in the precision that autocast asks for, without it in that of y; update running statistics.

    The time is one number, or a tensor that holds one.
    """
    device, (height, width) = y.device.type, y.shape[2:]
    precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else y.dtype
    norms = [norm for norm in (f.norm1, f.norm2, f.norm3) if isinstance(norm, BatchNorm)]
    numbers = [parameter for norm in norms for parameter in (norm.weight, norm.bias)]
    convolutions, k = (f.conv1, f.conv2), fused_width(f.conv1.out_channels)
    weights = [_widen(conv.weight[:, f.time :].permute(0, 2, 3, 1), k).to(precision) for conv in convolutions]
    constants = [_sum_of_time(conv, t, height, width, k) for conv in convolutions] if f.time else []
    y = y.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():  # the mean of the first image is close enough, so that little is lost when y is rounded
        centre = F.pad(y[0].mean((1, 2), dtype=numbers[0].dtype), (0, k - y.shape[1]))
    out, _, _, _, moments, _ = ode_function(y, centre, weights, constants, numbers, norms[0].eps)
    with torch.no_grad():
        for norm, (mean, _, variance) in zip(norms, moments.detach()[..., : y.shape[1]], strict=True):
            norm.track(mean + centre[: y.shape[1]] if norm is norms[0] else mean, variance, evaluation)
        if not f.time:  # the bias, which the next norm removes, was left out
            for norm, conv in zip(norms[1:], convolutions, strict=True):
                assert norm.momentum is not None
                assert conv.bias is not None
                norm.statistics(evaluation)[0].add_(conv.bias, alpha=norm.momentum)
    return out


def _widen(weight: Tensor, k: int) -> Tensor:
    """Append zeros for channels up to k to a weight (outputs, 3, 3, inputs)."""
    more = k - len(weight)
    return F.pad(weight, (0, more, 0, 0, 0, 0, 0, more)).contiguous()


def _sum_of_time(conv: Conv, t: Time, height: int, width: int, k: int) -> Tensor:
    """Return W_t * t + b for each pixel, (pixels, k): the sum over the taps of the 3x3 that lie inside the image."""
    at = torch.arange(9, device=conv.weight.device)
    v = torch.arange(height, device=conv.weight.device)[:, None] + at // 3 - 1
    u = torch.arange(width, device=conv.weight.device)[:, None] + at % 3 - 1
    inside = ((v >= 0) & (v < height))[:, None] & ((u >= 0) & (u < width))  # (height, width, 9)
    assert conv.bias is not None
    taps = conv.weight[:, 0].flatten(1)
    time = t.reshape(()) if isinstance(t, Tensor) else t
    total = (inside.flatten(0, 1)[:, None] * taps).sum(2) * time + conv.bias
    return F.pad(total, (0, k - len(taps)))
