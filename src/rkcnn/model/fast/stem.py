"""The convolutions of a network's stem, each as one operator."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor, nn

from rkcnn.model.fast import stem_kernels as kernels
from rkcnn.model.fast.launch_backward import add_splits
from rkcnn.model.fast.tiles import choose_window, part_count, power_of_two


@torch.library.custom_op("rkcnn::stem", mutates_args=())
def stem(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, dtype: torch.dtype) -> Tensor:
    """Return the convolution of the images, padded with zeros, in the precision given, channels last."""
    out = _allocate_result(x, weight, bias, stride, padding, dtype)
    images, taps = _channels_last(x), _channels_last(weight)
    count, k, high, wide = out.shape
    rows = count * high * wide
    window = choose_window(rows, k, taps[0].numel(), dtype.itemsize)
    with torch.cuda.device_of(x):
        kernels.stem_forward[(triton.cdiv(rows, window.rows),)](
            images, taps, taps if bias is None else bias, out, rows, *x.shape[2:], high, wide, C=x.shape[1], K=k,
            SIDE=weight.shape[2], STRIDE=stride, PAD=padding, BIASED=bias is not None, BM=window.rows,
            BN=power_of_two(k), BT=window.sum,
        )  # fmt: skip
    return out


def _allocate_result(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, dtype: torch.dtype
) -> Tensor:
    high, wide = ((size + 2 * padding - weight.shape[2]) // stride + 1 for size in x.shape[2:])
    return x.new_empty((len(x), high, wide, len(weight)), dtype=dtype).permute(0, 3, 1, 2)


stem.register_fake(_allocate_result)


@torch.library.custom_op("rkcnn::stem_input", mutates_args=())
def stem_input(gradient: Tensor, weight: Tensor, height: int, width: int, stride: int, padding: int) -> Tensor:
    """Return the gradient of images of that size, channels last, from that of the result."""
    out = _allocate_input(gradient, weight, height, width, stride, padding)
    (count, k, high, wide), side = gradient.shape, weight.shape[2]
    rows = count * triton.cdiv(height, stride) * triton.cdiv(width, stride)
    window = choose_window(rows, weight.shape[1], triton.cdiv(side, stride) ** 2 * k, gradient.element_size())
    with torch.cuda.device_of(gradient):
        kernels.stem_input[(triton.cdiv(rows, window.rows), stride**2)](
            _channels_last(gradient), _channels_last(weight), out, rows, height, width, high, wide,
            C=weight.shape[1], K=k, SIDE=side, STRIDE=stride, PAD=padding, BM=window.rows,
            BN=power_of_two(weight.shape[1]), BT=window.sum,
        )  # fmt: skip
    return out


@stem_input.register_fake
def _allocate_input(gradient: Tensor, weight: Tensor, height: int, width: int, stride: int, padding: int) -> Tensor:
    return gradient.new_empty((len(gradient), height, width, weight.shape[1])).permute(0, 3, 1, 2)


@torch.library.custom_op("rkcnn::stem_weights", mutates_args=())
def stem_weights(gradient: Tensor, x: Tensor, side: int, stride: int, padding: int) -> Tensor:
    """Return the gradient of the weight, (k, channels, side, side) and channels last."""
    (count, k, high, wide), channels = gradient.shape, x.shape[1]
    rows, total = count * high * wide, side * side * channels
    window = choose_window(rows, k, total, gradient.element_size())
    across = triton.cdiv(total, window.sum)
    parts, each = part_count(window.split, window.programs, rows, across)
    room = gradient.new_empty((1, parts, k * total), dtype=torch.float32)
    flat = gradient.new_empty(k * total, dtype=torch.float32)
    with torch.cuda.device_of(gradient):
        kernels.stem_weights[(parts, across)](
            _channels_last(gradient), _channels_last(x), room, rows, *x.shape[2:], high, wide, each, C=channels, K=k,
            SIDE=side, STRIDE=stride, PAD=padding, BM=window.split, BN=power_of_two(k), BT=window.sum,
        )  # fmt: skip
        add_splits(room, flat, [(0, total)], k, (1, total, total))
    return flat.view(k, side, side, channels).permute(0, 3, 1, 2)


@stem_weights.register_fake
def _(gradient: Tensor, x: Tensor, side: int, stride: int, padding: int) -> Tensor:
    shape = (gradient.shape[1], side, side, x.shape[1])
    return gradient.new_empty(shape, dtype=torch.float32).permute(0, 3, 1, 2)


def _channels_last(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1).contiguous()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _, ctx.stride, ctx.padding, _ = inputs
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    found: list[Tensor | None] = [None] * 6
    if ctx.needs_input_grad[0]:
        found[0] = stem_input(gradient, weight, *x.shape[2:], ctx.stride, ctx.padding).to(x.dtype)
    if ctx.needs_input_grad[1]:
        found[1] = stem_weights(gradient, x, weight.shape[2], ctx.stride, ctx.padding)
    if ctx.needs_input_grad[2]:
        found[2] = gradient.sum((0, 2, 3), dtype=torch.float32)  # torch.compile joins it with what made the gradient
    return tuple(found)


stem.register_autograd(_backward, setup_context=_keep)


def take_stem(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """Convolve in the precision that autocast asks for; without it in that of the images.

    Channels last, which the kernels read, is asked for outside the operators: there torch.compile can let the kernel
    before them, such as a norm's, write its result so, and no copy is left.
    """
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    x = x.contiguous(memory_format=torch.channels_last)
    return stem(x, conv.weight, conv.bias, conv.stride[0], int(conv.padding[0]), dtype)
