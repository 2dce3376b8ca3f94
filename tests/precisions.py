"""torch's settings of how float32 is rounded in products, for tests that change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_backends: Any = torch.backends


def newer_precisions() -> list[str]:
    """What torch's newer names say, of the whole and of each part."""
    mkldnn, cudnn = _backends.mkldnn, _backends.cudnn
    parts = (_backends, mkldnn, cudnn, mkldnn.matmul, mkldnn.conv, _backends.cuda.matmul, cudnn.conv, cudnn.rnn)
    return [part.fp32_precision for part in parts]


@contextmanager
def torch_as_it_starts() -> Iterator[None]:
    """Set all of them as they are in a new process, before the block and after it."""
    _reset()
    try:
        yield
    finally:
        _reset()


def _reset() -> None:
    mkldnn, cudnn = _backends.mkldnn, _backends.cudnn
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = True
    for part in (_backends, mkldnn, cudnn, mkldnn.matmul, mkldnn.conv, _backends.cuda.matmul):
        part.fp32_precision = "none"
