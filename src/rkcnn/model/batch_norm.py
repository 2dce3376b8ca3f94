"""Batch norm: of one process or of several, and on a CPU with exact statistics in the layout channels last."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.solvers.solver_step import BatchReducer, at_least_float32, first_derivative_only

MANY = 2**12  # pixels of a batch: up to there torch's sums with channels last are exact to 2e-6
CACHED = 2**17  # numbers of a tensor that are computed at a time, so that they stay in the processor's cache


class BatchNorm(nn.BatchNorm2d):
    """Batch norm as in the authors' code (eps 1e-3, momentum 0.01); while `frozen` it doesn't update its buffers.

    With a `reducer` the statistics of training are those of the whole batch, of which this process holds a share.
    With `by_rows`, which `set_layout` sets, a CPU that trains with channels last takes exact statistics
    (`_NormaliseByRows`), and can differentiate once.

    After `separate` it has running statistics for each of several evaluations in a forward pass, which its caller
    counts from 0. Weight and bias are the same for all. In training each evaluation is normalised by its own batch
    anyway; in evaluation mode it otherwise has one average over the batches of all of them, which fits none exactly if
    their states differ (docs/batch-norm.md).
    """

    def __init__(self, width: int, eps: float = 1e-3, momentum: float = 0.01) -> None:
        super().__init__(width, eps, momentum)
        self.frozen = False
        self.by_rows = False
        self.separated = False
        self.reducer: BatchReducer | None = None

    def separate(self, evaluations: int) -> None:
        """Keep running statistics for each of so many evaluations, at first those that there are."""
        for name, buffer in list(self.named_buffers()):
            self.register_buffer(name, torch.stack([buffer] * evaluations))
        self.separated = True

    def forward(self, x: Tensor, evaluation: int = 0) -> Tensor:
        if self.training and not x.is_meta:
            if self.reducer is not None:
                return self._normalise(x, self.reducer, evaluation)
            many = x.numel() > MANY * x.shape[1]
            if self.by_rows and many and x.is_cpu and not torch.compiler.is_compiling():
                return self._normalise_by_rows(x, evaluation)
        if self.training and self.frozen:
            return F.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)
        if not self.separated:
            return super().forward(x)
        mean, variance, _ = self.statistics(evaluation)
        share = self._count(evaluation) if self.training else 0.0
        return F.batch_norm(x, mean, variance, self.weight, self.bias, self.training, share, self.eps)

    def statistics(self, evaluation: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Return the running mean and variance, and the number of batches that they have followed."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        found = self.running_mean, self.running_var, self.num_batches_tracked
        return (found[0][evaluation], found[1][evaluation], found[2][evaluation]) if self.separated else found

    def _normalise(self, x: Tensor, reducer: BatchReducer, evaluation: int) -> Tensor:
        """Normalise by mean and variance over all processes.

        The variance over all is the mean over processes of own_variance + (own_mean - mean)^2.
        """
        own_variance, own_mean = torch.var_mean(at_least_float32(x), (0, 2, 3), correction=0)
        mean, count = reducer.mean(own_mean, x.numel() / x.shape[1])
        variance, _ = reducer.mean(own_variance + (own_mean - mean).square(), x.numel() / x.shape[1])
        if not self.frozen:
            self.track(mean, variance * (count / (count - 1)), evaluation)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        return torch.addcmul(_channels(shift), at_least_float32(x), _channels(scale)).to(x.dtype)

    def _normalise_by_rows(self, x: Tensor, evaluation: int) -> Tensor:
        out, mean, variance = _NormaliseByRows.apply(x, self.weight, self.bias, self.eps)
        if not self.frozen:
            count = x.numel() // x.shape[1]
            self.track(mean, variance * (count / (count - 1)), evaluation)
        return out

    @torch.no_grad()
    def track(self, mean: Tensor, variance: Tensor, evaluation: int = 0) -> None:
        """Move the running statistics towards a batch's mean and unbiased variance."""
        running_mean, running_variance, _ = self.statistics(evaluation)
        share = self._count(evaluation)
        running_mean.lerp_(mean, share)
        running_variance.lerp_(variance, share)

    def _count(self, evaluation: int) -> float:
        """Count a batch, and return its share of the running statistics."""
        count = self.statistics(evaluation)[2].add_(1)
        return 1 / int(count) if self.momentum is None else self.momentum  # None: the mean of all


class _NormaliseByRows(torch.autograd.Function):
    """Normalise images (N, C, H, W) in the layout channels last by their own statistics; returns those too.

    On a CPU torch adds up one pixel after the other in that layout, in float32: over 256 images of 32 x 32 pixels the
    variance is off by 7e-5. Here a row of W pixels is read as one pixel of W C channels, which is the same memory. Each
    sum then has W times fewer terms, and the W sums of a channel are added last. It is as fast, and as exact as torch
    is in the other layout (benchmarks/cpu_layouts.py).

    With s = weight / sqrt(variance + eps) and n pixels, out = s (x - mean) + bias and
    dx = s (dout - sum(dout) / n - (x - mean) sum(dout (x - mean)) / (n (variance + eps))).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        x = x.contiguous(memory_format=torch.channels_last)
        images, channels, height, width = x.shape
        rows = _view(x, images, width * channels, height, 1)
        unused = weight.new_zeros(width * channels)  # for running statistics, whose precision the results have
        means, variances = torch.batch_norm_update_stats(rows, unused, unused.clone(), 0.0)
        between, mean = torch.var_mean(means.view(width, channels), 0, correction=0)
        variance = variances.view(width, channels).mean(0) + between
        values = torch.stack((mean, variance, weight, bias)).repeat(1, width)
        out = F.batch_norm(rows, values[0], values[1], values[2], values[3], training=False, eps=eps)
        ctx.save_for_backward(x, weight, mean, torch.rsqrt(variance + eps))
        ctx.mark_non_differentiable(mean, variance)
        return _view(out, *x.shape), mean, variance

    @staticmethod
    @first_derivative_only("a batch norm with channels last on a CPU", "use the contiguous layout")
    def backward(ctx: Any, gradient: Tensor, *_: Tensor | None) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, mean, inverse = ctx.saved_tensors
        images, channels, height, width = x.shape
        rows = _view(x, images, width * channels, height, 1)
        given = _view(gradient.contiguous(memory_format=torch.channels_last), *rows.shape)
        _, *sums = torch.ops.aten.native_batch_norm_backward(
            *(given, rows, None, None, None, *torch.stack((mean, inverse)).repeat(1, width)),
            *(True, 0.0, [False, True, True]),
        )
        for_weight, for_bias = torch.stack(sums).view(2, width, channels).sum(1)
        scale = weight * inverse
        share = scale / (-images * height * width)
        slope = share * inverse * for_weight
        shift = share * for_bias - slope * mean
        scale, slope, shift = torch.stack((scale, slope, shift)).repeat(1, width)[..., None, None]
        found = torch.empty_like(rows, dtype=weight.dtype)
        each = max(1, CACHED // (height * width * channels))  # images at a time
        for part, dout, own in zip(found.split(each), given.split(each), rows.split(each), strict=True):
            torch.addcmul(shift, dout, scale, out=part).addcmul_(own, slope)
        return _view(found.to(x.dtype), *x.shape), for_weight, for_bias, None


def _channels(values: Tensor) -> Tensor:
    return values[:, None, None]  # (C, 1, 1)


def _view(x: Tensor, images: int, channels: int, height: int, width: int) -> Tensor:
    """Return the memory of images in the layout channels last as images of another shape in that layout."""
    return x.as_strided((images, channels, height, width), (height * width * channels, 1, width * channels, channels))
