"""Folds the batch norms of a network into its convolutions, for inference."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.solvers.solver_step import at_least_float32


class ChannelAffine(nn.Module):
    """scale * x + shift for each channel: what a batch norm computes in evaluation, as one pass over x.

    Both are vectors, or matrices with a row for each evaluation of f (`BatchNorm.separate`). In half precision the
    result is computed in float32 and rounded once.
    """

    scale: Tensor
    shift: Tensor
    zeros: Tensor
    ones: Tensor

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        for name, values in {"scale": scale, "shift": shift}.items():
            self.register_buffer(name, values)
        self.register_buffer("zeros", scale.new_zeros(scale.shape[-1]))
        self.register_buffer("ones", scale.new_ones(scale.shape[-1]))

    def forward(self, x: Tensor, evaluation: int = 0) -> Tensor:
        scale, shift = self.scale, self.shift
        if scale.dim() > 1:
            scale, shift = scale[evaluation], shift[evaluation]
        if torch.compiler.is_compiling():  # then it becomes part of the pass before or after it
            return (at_least_float32(x) * scale[:, None, None] + shift[:, None, None]).to(x.dtype)
        return F.batch_norm(
            x, self.zeros, self.ones, scale, shift, eps=1e-30
        )  # added to 1: exact, and torch 2.11 refuses 0


def fold_norms(network: nn.Module) -> nn.Module:
    """Return a copy of the network for evaluation, without batch norms, that computes the same up to rounding.

    A batch norm that alone reads a convolution becomes part of its weight and bias; modules name such pairs in
    `folded_norms` (a convolution and its norm), and in an `nn.Sequential` they follow each other. Every other batch
    norm becomes a ChannelAffine, and so does one that differs from evaluation to evaluation of f. A group norm depends
    on the image and stays. New weights are computed in float64.
    """
    folded = copy.deepcopy(network).eval().requires_grad_(False)
    for module in list(folded.modules()):
        for convolution, norm in list(_find_pairs(module)):
            _fold(module.get_submodule(convolution), module.get_submodule(norm))
            module.set_submodule(norm, nn.Identity())
    for name, module in list(folded.named_modules()):
        if isinstance(module, nn.BatchNorm2d):
            folded.set_submodule(name, ChannelAffine(*_cast(module, *_find_affine(module))))
    return folded


def _find_pairs(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of each convolution of the module and of the batch norm that alone reads its output."""
    pairs: dict[str, str] = dict(getattr(module, "folded_norms", {}))
    if type(module) is nn.Sequential:
        pairs = dict(pairwise(dict(module.named_children())))
    modules = dict(module.named_modules())
    for convolution, norm in pairs.items():
        one, other = modules.get(convolution), modules.get(norm)
        separated = isinstance(other, BatchNorm) and other.separated
        if isinstance(one, nn.Conv2d) and isinstance(other, nn.BatchNorm2d) and not separated:
            yield convolution, norm


@torch.no_grad()
def _fold(convolution: nn.Module, norm: nn.Module) -> None:
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    scale, shift = _find_affine(norm)
    weight = convolution.weight
    if convolution.bias is not None:
        shift = shift + scale * convolution.bias.double()
    convolution.weight = nn.Parameter((weight.double() * scale[:, None, None, None]).to(weight.dtype), False)
    convolution.bias = nn.Parameter(shift.to(weight.dtype), False)


def _find_affine(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Return the scale and shift of a batch norm in evaluation, in float64."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight.double() * (norm.running_var.double() + norm.eps).rsqrt()
    return scale.detach(), (norm.bias.double() - norm.running_mean.double() * scale).detach()


def _cast(norm: nn.BatchNorm2d, *values: Tensor) -> Iterator[Tensor]:
    yield from (value.to(norm.weight.dtype) for value in values)
