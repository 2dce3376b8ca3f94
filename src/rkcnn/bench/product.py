"""A product of two large matrices: the arithmetic speed that steps are compared with."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rkcnn.bench.contender import matrix_units, synchronise

SIZES = {"cuda": 8192, "cpu": 1024}
REPETITIONS = 3


@dataclass
class Product:
    """Multiplies two n x n matrices in one precision."""

    precision: str
    device: torch.device
    rounds: list[float] = field(default_factory=list)  # FLOP/s in each round
    _matrices: tuple[Tensor, Tensor] | None = None

    @property
    def size(self) -> int:
        return SIZES[self.device.type]

    def take_turn(self) -> float:
        """Multiply a few times; return the FLOP/s."""
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        if self._matrices is None:
            drawn = torch.randn(2, self.size, self.size, device=self.device).to(dtype)
            self._matrices = drawn[0], drawn[1]
            self._multiply()  # warm-up
        return self._multiply()

    def _multiply(self) -> float:
        assert self._matrices is not None
        with matrix_units(self.precision):
            synchronise(self.device)
            start = time.perf_counter()
            for _ in range(REPETITIONS):
                torch.mm(*self._matrices)
            synchronise(self.device)
        return 2.0 * self.size**3 * REPETITIONS / (time.perf_counter() - start)
