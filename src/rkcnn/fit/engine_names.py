"""The names of the engines that take training steps (`rkcnn.fit.engine`). Imports no torch."""

from __future__ import annotations

from rkcnn.error import InputError

ENGINES = ("auto", "eager", "compile", "graph", "fused")


def check_engine(kind: str) -> None:
    """Raise InputError unless `kind` is the name of an engine."""
    if kind not in ENGINES:
        raise InputError(f"no engine {kind!r}; engines are {', '.join(ENGINES)}")
