"""How torch computes products and convolutions: settings of the whole process, which the caller owns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any

import torch

_backends: Any = torch.backends
_ON_CPU = (_backends.mkldnn.matmul, _backends.mkldnn.conv)
_ON_GPU = (_backends.cuda.matmul, _backends.cudnn.conv, _backends.cudnn.rnn)


class _Block:
    """What one block sets."""

    def __init__(self, precision: str, deterministic: bool, benchmark: bool) -> None:
        self.precision, self.deterministic, self.benchmark = precision, deterministic, benchmark

    def apply(self) -> None:
        set_precision(self.precision)
        _backends.cudnn.deterministic, _backends.cudnn.benchmark = self.deterministic, self.benchmark


_lock = Lock()
_entered: list[_Block] = []  # all blocks that this process is in, whichever thread they run in
_restore: list[Callable[[], object]] = []  # what brings the caller's settings back after the last of them


@contextmanager
def backends_set_to(
    precision: str, *, deterministic: bool | None = None, benchmark: bool | None = None
) -> Iterator[None]:
    """Set in the block how the process rounds float32 (`set_precision`), and afterwards as the caller had it.

    With `deterministic` cuDNN, which computes convolutions on a GPU, leaves out algorithms that add up in an order that
    changes from call to call; with `benchmark` it tries its algorithms for each new shape, and may choose another each
    time. None leaves that as it is around the block.

    Blocks may lie in each other and in several threads. While threads are in different blocks, the one that was entered
    last counts for all of them. What can't be brought back is that in a new process `torch.backends.fp32_precision`
    reaches the convolutions of cuDNN; after a block they have the same rounding as before, set by itself.
    """
    cudnn = _backends.cudnn
    with _lock:
        around = _entered[-1] if _entered else _Block(precision, cudnn.deterministic, cudnn.benchmark)
        block = _Block(
            precision,
            around.deterministic if deterministic is None else deterministic,
            around.benchmark if benchmark is None else benchmark,
        )
        if not _entered:
            _restore[:] = _list_settings()
        _entered.append(block)
    try:
        with _lock:
            block.apply()
        yield
    finally:
        with _lock:
            _entered.remove(block)
            if _entered:
                _entered[-1].apply()
            else:
                for restore in _restore:
                    restore()


def set_precision(precision: str) -> None:
    """Allow a GPU's matrix units to round float32 to tf32, unless the precision is fp32; a CPU doesn't round.

    Otherwise a CPU with units for bfloat16 would round to that after `torch.set_float32_matmul_precision("medium")`.
    """
    rounds = precision != "fp32"
    _backends.cuda.matmul.allow_tf32 = rounds  # the older name of the same, which torch.compile reads
    _backends.cudnn.allow_tf32 = rounds
    for part in _ON_GPU:  # set to False, the older name lets them follow torch.backends.fp32_precision
        part.fp32_precision = "tf32" if rounds else "ieee"
    for part in _ON_CPU:
        part.fp32_precision = "ieee"


def _list_settings() -> Iterator[Callable[[], object]]:
    """Yield what sets each of torch's names for these settings to what it says now.

    The older names can't be read where the caller has set some of the newer ones; they are then left out. A part that
    says the same as the whole follows the whole later on, as torch doesn't tell whether it was set by itself.
    """
    for name in ("deterministic", "benchmark"):
        yield partial(setattr, _backends.cudnn, name, getattr(_backends.cudnn, name))
    for place in (_backends.cuda.matmul, _backends.cudnn):
        with suppress(RuntimeError):
            yield partial(setattr, place, "allow_tf32", place.allow_tf32)
    with suppress(RuntimeError):
        yield partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
    for parts, whole in ((_ON_CPU, _backends.mkldnn.fp32_precision), (_ON_GPU, _backends.cudnn.fp32_precision)):
        for part in parts:  # each of these reads takes a microsecond
            own = part.fp32_precision
            yield partial(setattr, part, "fp32_precision", "none" if own == whole else own)
