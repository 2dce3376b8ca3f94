"""Runge–Kutta convolutional networks, and their rivals in one frame.

>>> import rkcnn
>>> network = rkcnn.create_model("RKCNN-R-2@k=32", classes=10, channels=1)
>>> result = rkcnn.train("RKCNN-R-2@k=32", data="mnist-mini")  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rkcnn.model.create import create_model as create_model
    from rkcnn.record.tables import list_models as list_models
    from rkcnn.run.train import train_one as train

__version__ = "0.1.0"
__all__ = ["create_model", "list_models", "train"]

_HOMES = {
    "create_model": "rkcnn.model.create",
    "list_models": "rkcnn.record.tables",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `import rkcnn` and `rkcnn --help` load no torch."""
    if name == "train":
        return import_module("rkcnn.run.train").train_one
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rkcnn' has no attribute {name!r}")
