"""The precision of the forward pass, for a backward pass that calls f again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


class Autocast:
    """What autocast says now on that kind of device; the meta device has none."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.available = torch.amp.is_autocast_available(device)
        self.enabled = self.available and torch.is_autocast_enabled(device)
        self.dtype = torch.get_autocast_dtype(device) if self.enabled else None

    @property
    def eps(self) -> float:
        """The precision that it leaves to f; 0 where it leaves all."""
        return torch.finfo(self.dtype).eps if self.dtype is not None else 0.0

    def again(self) -> AbstractContextManager[object]:
        if not self.available:
            return nullcontext()
        return torch.autocast(self.device, dtype=self.dtype, enabled=self.enabled)
