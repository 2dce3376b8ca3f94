"""Threads that hold a share of a batch each: several ranks in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import BatchReducer

T = TypeVar("T")


class Threads(BatchReducer):
    """Reduces over all threads: each call waits until every thread has made it, and fails if one does not."""

    def __init__(self, count: int, patience: float = 60) -> None:
        self.barrier = threading.Barrier(count, timeout=patience)
        self.asked: list[Tensor] = []

    def _gather(self, part: Tensor) -> list[Tensor]:
        if self.barrier.wait() == 0:
            self.asked = []
        self.barrier.wait()
        self.asked.append(part)
        self.barrier.wait()
        return list(self.asked)

    def mean(self, part: Tensor, count: float) -> tuple[Tensor, float | Tensor]:
        counts = self.sum(torch.tensor(count, dtype=part.dtype))
        return self.sum(part * count) / counts, counts

    def sum(self, part: Tensor) -> Tensor:
        return torch.stack(self._gather(part)).sum(0)

    def max(self, part: Tensor) -> Tensor:
        return torch.stack(self._gather(part)).amax(0)

    def all(self, condition: Tensor) -> bool:
        return all(bool(part.all()) for part in self._gather(condition))


def shared(batch: Tensor, at: int, work: Callable[[Tensor, BatchReducer], T], patience: float = 60) -> list[T]:
    """Run `work` on the images before and from `at`, each part in a thread, with a reducer over both."""
    reducer = Threads(2, patience)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda part: work(part, reducer), (batch[:at], batch[at:])))
