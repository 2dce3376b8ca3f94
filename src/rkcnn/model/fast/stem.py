"""The 3x3 convolution that a network for small images begins with, as one operator."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from rkcnn.model.fast import stem_kernels as kernels
from rkcnn.model.fast.launch_backward import add_splits
from rkcnn.model.fast.tiles import part_count, power_of_two

ROWS = 64  # pixels of a block
PROGRAMS = 132  # about so many share the weight's gradient


@torch.library.custom_op("rkcnn::stem", mutates_args=())
def stem(images: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the 3x3 convolution of the images, padded with zeros, in the precision given, channels last."""
    x = images.permute(0, 2, 3, 1).contiguous()
    count, height, width, channels = x.shape
    rows, k = count * height * width, weight.shape[0]
    out = x.new_empty((count, height, width, k), dtype=dtype)
    with torch.cuda.device_of(x):
        kernels.stem_forward[(triton.cdiv(rows, ROWS),)](
            x, weight.permute(0, 2, 3, 1).contiguous(), out, rows, height, width, C=channels, K=k, BM=ROWS,
            BN=power_of_two(k), BT=power_of_two(9 * channels),
        )  # fmt: skip
    return out.permute(0, 3, 1, 2)


@stem.register_fake
def _(images: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    count, _, height, width = images.shape
    return images.new_empty((count, height, width, weight.shape[0]), dtype=dtype).permute(0, 3, 1, 2)


@torch.library.custom_op("rkcnn::stem_backward", mutates_args=())
def stem_backward(gradient: Tensor, images: Tensor) -> Tensor:
    """Return the gradient of the weight, (k, channels, 3, 3) and channels last."""
    g, x = (tensor.permute(0, 2, 3, 1).contiguous() for tensor in (gradient, images))
    count, height, width, channels = x.shape
    rows, k = count * height * width, g.shape[3]
    parts, each = part_count(ROWS, PROGRAMS, rows, 1)
    size = 9 * channels * k
    room = g.new_empty((1, parts, size), dtype=torch.float32)
    flat = g.new_empty(size, dtype=torch.float32)
    with torch.cuda.device_of(g):
        kernels.stem_weights[(parts,)](
            g, x, room, rows, height, width, each, C=channels, K=k, BM=ROWS, BN=power_of_two(k),
            BT=power_of_two(9 * channels),
        )  # fmt: skip
        add_splits(room, flat, [(0, 9 * channels)], k, (1, 9 * channels, 9 * channels))
    return flat.view(k, 3, 3, channels).permute(0, 3, 1, 2)


@stem_backward.register_fake
def _(gradient: Tensor, images: Tensor) -> Tensor:
    k, channels = gradient.shape[1], images.shape[1]
    return gradient.new_empty((k, 3, 3, channels), dtype=torch.float32).permute(0, 3, 1, 2)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
    return None, stem_backward(gradient, *ctx.saved_tensors), None


stem.register_autograd(_backward, setup_context=_keep)


def take_stem(images: Tensor, weight: Tensor) -> Tensor:
    """Convolve in the precision that autocast asks for."""
    return stem(images, weight, torch.get_autocast_dtype(images.device.type))
