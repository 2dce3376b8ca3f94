"""Stochastic gradient descent with momentum, as operations on whole lists of tensors that a CUDA graph can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


class SGD:
    """g <- g + decay p,  b <- m b + g,  p <- p - lr (b, or g + m b with Nesterov): torch.optim.SGD's rule.

    torch's own takes lr as a number, which a captured graph would freeze; here it is a tensor on the device.
    """

    def __init__(self, parameters: Iterable[Tensor], momentum: float, nesterov: bool, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.buffers = [torch.zeros_like(p) for p in self.parameters]
        self.fused: Callable[..., None] | None = None  # the same rule in kernels of model/fast/, up to rounding

    @torch.no_grad()
    def step(self, lr: Tensor) -> None:
        """Update every parameter by its gradient; a missing gradient counts as zero."""
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters]
        if self.fused is not None:
            self.fused(self.parameters, grads, self.buffers, lr, self.momentum, self.nesterov, self.weight_decay)
            return
        if self.weight_decay:
            grads = list(torch._foreach_add(grads, self.parameters, alpha=self.weight_decay))
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        change = torch._foreach_add(grads, self.buffers, alpha=self.momentum) if self.nesterov else self.buffers
        torch._foreach_sub_(self.parameters, torch._foreach_mul(change, lr))
