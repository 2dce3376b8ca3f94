"""The first half of a stage in one kernel, for inference: norm, ReLU, 1x1 convolution with folded norm, ReLU."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from rkcnn.model.fast.inference_kernels import narrow_inference
from rkcnn.model.fast.launch_forward import stream_arguments
from rkcnn.model.fast.tiles import Stream, part_count, power_of_two
from rkcnn.model.fold import ChannelAffine
from rkcnn.model.stage import Stage


def choose_stream(rows: int, k: int, count: int) -> Stream:
    """Return the blocks for so many states of k channels; the weights of two leave less room to load ahead."""
    wide = power_of_two(k)
    if rows < 16384:
        return Stream(64, min(64, wide), 528, 4, 2)
    return Stream(64, wide, 264, 4, 3 if count == 1 else 2)


@torch.library.custom_op("rkcnn::narrow_states", mutates_args=())
def narrow_states(states: list[Tensor], scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return relu(relu({states} scale + shift) W^T + bias) for one or two states with channels last."""
    states = [state.contiguous(memory_format=torch.channels_last) for state in states]
    out = torch.empty_like(states[0])
    images, k, height, width = out.shape
    rows = images * height * width
    stream = choose_stream(rows, k, len(states))
    across = triton.cdiv(k, stream.columns)
    parts, each = part_count(stream.rows, stream.programs, rows, across)
    with torch.cuda.device_of(out):
        narrow_inference[(parts, across)](
            states[0], states[-1], scale, shift, weight, bias, out, rows, each, N=len(states), K=k,
            **stream_arguments(stream, k),
        )  # fmt: skip
    return out


@narrow_states.register_fake
def _(states: list[Tensor], scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.empty_like(states[0], memory_format=torch.channels_last)


def infer_narrow(stage: Stage, states: tuple[Tensor, ...]) -> Tensor:
    """Return what a stage's 3x3 reads, in the precision of its weights; its norms are folded."""
    norm, weight, bias = stage.norm1, stage.narrow.weight, stage.narrow.bias
    assert isinstance(norm, ChannelAffine)
    assert bias is not None
    return narrow_states([state.to(weight.dtype) for state in states], norm.scale, norm.shift, weight, bias)
