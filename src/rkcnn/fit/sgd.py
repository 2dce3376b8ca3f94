"""Stochastic gradient descent with momentum, as operations on whole lists of tensors that a CUDA graph can hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


class SGD:
    """g <- g + decay p,  b <- m b + g,  p <- p - lr (b, or g + m b with Nesterov): torch.optim.SGD's rule.

    torch's own takes lr as a number, which a captured graph would freeze; here it is a tensor on the device.
    `decayed` says which parameters the decay acts on; by default all.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        momentum: float,
        nesterov: bool,
        weight_decay: float,
        decayed: Sequence[bool] | None = None,
    ) -> None:
        self.parameters = list(parameters)
        numbers = range(len(self.parameters))
        self.decayed = [number for number in numbers if weight_decay and (decayed is None or decayed[number])]
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.buffers = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self, lr: Tensor) -> None:
        """Update every parameter by its gradient; a missing gradient counts as zero."""
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters]
        if self.decayed:
            chosen = [[tensors[number] for number in self.decayed] for tensors in (grads, self.parameters)]
            for number, grad in zip(self.decayed, torch._foreach_add(*chosen, alpha=self.weight_decay), strict=True):
                grads[number] = grad
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        change = torch._foreach_add(grads, self.buffers, alpha=self.momentum) if self.nesterov else self.buffers
        torch._foreach_sub_(self.parameters, torch._foreach_mul(change, lr))
