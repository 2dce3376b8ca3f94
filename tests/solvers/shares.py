"""Threads that hold a share of a batch each: several ranks without processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from rkcnn.solvers.batch_reducer import BatchReducer

T = TypeVar("T")


class Threads(BatchReducer):
    """Answers when all have asked; one that stops asking breaks the others' wait."""

    def __init__(self, count: int, patience: float = 60) -> None:
        self.barrier = threading.Barrier(count, timeout=patience)
        self.asked: list[Tensor] = []

    def _all(self, part: Tensor) -> list[Tensor]:
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
        return torch.stack(self._all(part)).sum(0)

    def most(self, part: Tensor) -> Tensor:
        return torch.stack(self._all(part)).amax(0)

    def every(self, verdict: Tensor) -> bool:
        return all(bool(part.all()) for part in self._all(verdict))


def shared(batch: Tensor, at: int, work: Callable[[Tensor, BatchReducer], T], patience: float = 60) -> list[T]:
    """`work` on the images before and from `at`, each in a thread of its own, with the whole of both."""
    whole = Threads(2, patience)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda part: work(part, whole), (batch[:at], batch[at:])))
