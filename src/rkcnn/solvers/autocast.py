"""The autocast settings of a forward pass, for a backward pass that evaluates f again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


class Autocast:
    """Remembers whether and how autocast is enabled on a kind of device; the meta device has none."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.available = torch.amp.is_autocast_available(device)
        self.enabled = self.available and torch.is_autocast_enabled(device)
        self.dtype = torch.get_autocast_dtype(device) if self.enabled else None

    @property
    def eps(self) -> float:
        """The relative precision that autocast leaves to f; 0 where it is off."""
        return torch.finfo(self.dtype).eps if self.dtype is not None else 0.0

    def restore(self) -> AbstractContextManager[object]:
        """Return a context in which autocast is as it was."""
        if not self.available:
            return nullcontext()
        return torch.autocast(self.device, dtype=self.dtype, enabled=self.enabled)
