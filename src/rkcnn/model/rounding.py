"""How torch rounds float32 numbers before it multiplies them: settings of the whole process, which the caller owns."""

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

_lock = Lock()
_entered: list[str] = []  # the precisions of all blocks that this process is in, whichever thread they run in
_restore: list[Callable[[], object]] = []  # what brings the caller's settings back after the last of them


@contextmanager
def precision_set_to(precision: str) -> Iterator[None]:
    """Set how the process rounds float32 in the block (`set_precision`); afterwards it is as the caller had it.

    Blocks may lie in each other and in several threads. While threads are in blocks of different precisions, that of
    the block that was entered last counts for all of them.
    """
    with _lock:
        if not _entered:
            _restore[:] = _list_settings()
        _entered.append(precision)
        set_precision(precision)
    try:
        yield
    finally:
        with _lock:
            _entered.remove(precision)
            if _entered:
                set_precision(_entered[-1])
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
    for place in (_backends.cuda.matmul, _backends.cudnn):
        with suppress(RuntimeError):
            yield partial(setattr, place, "allow_tf32", place.allow_tf32)
    with suppress(RuntimeError):
        yield partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
    for parts, whole in ((_ON_CPU, _backends.mkldnn), (_ON_GPU, _backends.cudnn)):
        for part in parts:
            own = part.fp32_precision if part.fp32_precision != whole.fp32_precision else "none"
            yield partial(setattr, part, "fp32_precision", own)
