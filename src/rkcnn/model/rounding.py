"""How torch rounds float32 numbers before it multiplies them: settings of the whole process, which the caller owns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

_backends: Any = torch.backends
_ON_CPU = (_backends.mkldnn.matmul, _backends.mkldnn.conv)
_ON_GPU = (_backends.cuda.matmul, _backends.cudnn.conv, _backends.cudnn.rnn)


def set_precision(precision: str) -> None:
    """Allow a GPU's matrix units to round float32 to tf32, unless the precision is fp32; a CPU doesn't round.

    Otherwise a CPU with units for bfloat16 would round to that after `torch.set_float32_matmul_precision("medium")`.
    """
    rounds = precision != "fp32"
    _backends.cuda.matmul.allow_tf32 = rounds  # the older name of the same, which torch.compile reads
    _backends.cudnn.allow_tf32 = rounds
    for part in _ON_GPU:  # the older name alone leaves them to torch.backends.fp32_precision where it says no
        part.fp32_precision = "tf32" if rounds else "ieee"
    for part in _ON_CPU:
        part.fp32_precision = "ieee"


@contextmanager
def restored_precision() -> Iterator[None]:
    """Restore these settings after the block, whichever of torch's names for them the caller has used."""
    products = None
    older: list[tuple[Any, bool]] = []
    with suppress(RuntimeError):  # torch refuses to read the older names where the caller has set a newer one
        products = torch.get_float32_matmul_precision()
    for place in (_backends.cuda.matmul, _backends.cudnn):
        with suppress(RuntimeError):
            older.append((place, place.allow_tf32))
    wholes = (*((part, _backends.mkldnn) for part in _ON_CPU), *((part, _backends.cudnn) for part in _ON_GPU))
    parts = [
        (part, "none" if part.fp32_precision == whole.fp32_precision else part.fp32_precision) for part, whole in wholes
    ]  # a part that has "none" follows the whole, also when that is changed later
    try:
        yield
    finally:
        for place, allowed in older:
            place.allow_tf32 = allowed
        if products is not None:
            torch.set_float32_matmul_precision(products)
        for part, precision in parts:
            part.fp32_precision = precision
