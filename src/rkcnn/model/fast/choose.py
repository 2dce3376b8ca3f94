"""Lets a network train in fused kernels, or says why it can't. Imports triton only where it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.fast.program import WIDEST, WIDTH_MULTIPLE, program_of
from rkcnn.model.fast.tiles import SHARED_MEMORY
from rkcnn.model.fold import ChannelAffine
from rkcnn.model.frame import StemConv, Transition
from rkcnn.model.layers import Conv
from rkcnn.model.stage import Stage
from rkcnn.model.steps.ode import OdeFunction, OdePeriod
from rkcnn.model.steps.rkcnn import RKCNN, RKStep

PRECISIONS = ("bf16", "tf32")  # that they compute in
MOST_COLOURS = 4  # channels of images that the stem's kernels take, whatever the width of the stem
STEM_WIDTH = 64  # channels up to which they take its other convolutions


def fuse_network(network: nn.Module, device: torch.device, precision: str = "bf16") -> str:
    """Let a network train in fused kernels: RKCNN's steps, f of RKNN, RK-Net and ODE-Net, and the layers around them.

    Of other networks it is only those layers, the stem and the transitions. In bf16 the kernels take what autocast
    rounds, and in tf32 float32 too. If a step or f can't be fused, or the precision is another, nothing is changed;
    returns why not.
    """
    if precision not in PRECISIONS:
        return f"they compute in {' or '.join(PRECISIONS)}, and the recipe in {precision}"
    periods = [module for module in network.modules() if isinstance(module, RKCNN)]
    steps = [step for period in periods for step in period.steps if isinstance(step, RKStep)]
    functions = [module for module in network.modules() if isinstance(module, OdeFunction)]
    solvers = [module.solver for module in network.modules() if isinstance(module, OdePeriod)]
    reason = _why_not_on(device)
    if not reason and any(isinstance(module, Conv) and module.dropout for module in network.modules()):
        reason = "it has dropout"
    if not reason and any(period.concatenates for period in periods):
        reason = "its steps end in a concatenation"
    if not reason and any(solver.freezes_norms for solver in solvers):
        reason = "its norms are frozen while it is solved"
    reason = reason or next(filter(None, (*map(_why_not_step, steps), *map(_why_not_function, functions))), "")
    if reason:
        return reason
    from rkcnn.model.fast.stem import take_stem

    if steps:
        from rkcnn.model.fast.step import take_step

        for step in steps:
            step.fused, step.takes_tf32 = take_step, precision == "tf32"
    if functions:
        from rkcnn.model.fast.ode import take_function

        for function in functions:
            function.fused, function.takes_tf32 = take_function, precision == "tf32"
    _fuse_frame(network, take_stem, takes_tf32=precision == "tf32")
    return ""


def _fuse_frame(
    network: nn.Module,
    take_stem: Callable[[nn.Conv2d, Tensor], Tensor],
    evaluates: bool = False,
    takes_tf32: bool = False,
) -> None:
    """Let stem and transitions use kernels of their own, in training alone or in evaluation too."""
    for module in network.modules():
        if isinstance(module, Transition):
            module.pools_first, module.evaluates_fused = True, evaluates
        if isinstance(module, StemConv) and _convolves_fused(module):
            module.fused, module.evaluates_fused, module.takes_tf32 = take_stem, evaluates, takes_tf32


def fuse_stages(folded: nn.Module, device: torch.device) -> None:
    """Let the stages of a network whose norms are folded compute all before their 3x3 in one kernel, where they can."""
    if _why_not_on(device):
        return
    from rkcnn.model.fast.inference import infer_narrow
    from rkcnn.model.fast.stem import take_stem

    _fuse_frame(folded, take_stem, evaluates=True)
    for module in folded.modules():
        if isinstance(module, Stage) and _infers_fused(module):
            module.infer = infer_narrow


def separate_stages(folded: nn.Module) -> None:
    """Undo `fuse_stages`."""
    for module in folded.modules():
        if isinstance(module, Stage):
            module.infer = None
        if isinstance(module, StemConv):
            module.fused = None
        if isinstance(module, Transition):
            module.pools_first = False


def _convolves_fused(conv: StemConv) -> bool:
    widest = WIDEST if conv.in_channels <= MOST_COLOURS else STEM_WIDTH
    return max(conv.in_channels, conv.out_channels) <= widest


def _infers_fused(stage: Stage) -> bool:
    k = stage.conv.in_channels
    folded = isinstance(stage.norm1, ChannelAffine) and isinstance(stage.norm2, nn.Identity)
    return folded and k % WIDTH_MULTIPLE == 0 and k <= WIDEST and stage.narrow.in_channels in (k, 2 * k)


def _why_not_on(device: torch.device) -> str:
    if device.type != "cuda":
        return "it needs a GPU"
    if find_spec("triton") is None:
        return "triton is not installed"
    if torch.version.hip is not None:
        return "the kernels were written for CUDA"
    properties: Any = torch.cuda.get_device_properties(device)  # torch's types lack the field
    if properties.shared_memory_per_block_optin < SHARED_MEMORY:
        return "the GPU has too little shared memory"
    return ""


def _why_not_step(step: RKStep) -> str:
    if step.both:
        return "both phases share their convolutions"
    stages = [stage for stage in (*step.guess, *step.refine) if isinstance(stage, Stage)]
    reason = next(filter(None, map(_why_not_layers, stages)), "")
    return reason or ("" if program_of(step).fits else "it has too many states or channels")


def _why_not_function(function: OdeFunction) -> str:
    too_wide = function.conv1.out_channels > WIDEST
    return _why_not_layers(function) or ("it has too many channels" if too_wide else "")


def _why_not_layers(module: nn.Module) -> str:
    for name, layer in module.named_children():
        if name.startswith("norm") and not (isinstance(layer, BatchNorm) and layer.reducer is None):
            return "a norm is not a batch norm of its own"
    return ""
