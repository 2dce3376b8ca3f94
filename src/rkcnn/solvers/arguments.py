"""The arguments of `solve`: each is read into one form, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import ceil, inf, nan
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn

from rkcnn.error import InputError, did_you_mean, shorten
from rkcnn.solvers.methods import METHOD_NAMES, TABLEAUS
from rkcnn.solvers.tableau import Tableau

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MOST_STEPS = 2**53  # smaller ones are lost when they are added to the time in float64


def read_method(method: object) -> Tableau | None:
    """Return the tableau of a method, given by its name or as a tableau; None for the Adams methods."""
    if isinstance(method, Tableau):
        return method
    if not isinstance(method, str) or method not in METHOD_NAMES:
        hint = did_you_mean(method, METHOD_NAMES) if isinstance(method, str) else ""
        raise InputError(
            f"no method {_show(method)}{hint}; methods are {', '.join(METHOD_NAMES)}, or a Tableau of your own"
        )
    return TABLEAUS.get(method)


def check_state(y0: object) -> None:
    """Raise InputError unless y0 is a dense tensor of floating-point numbers."""
    if not isinstance(y0, Tensor):
        raise InputError(f"y0 of type {type(y0).__name__} given; it must be a tensor, as in torch.tensor([1.0])")
    if y0.dtype not in PRECISIONS or y0.layout != torch.strided or y0.numel() == 0:
        raise InputError(
            f"y0 of {y0.dtype} and {y0.layout} with {y0.numel()} elements given; it must be a dense tensor of "
            "floating-point numbers of 16, 32 or 64 bits"
        )


def read_times(t: Tensor | Sequence[float]) -> Tensor:
    """Return the times in float64, on the CPU."""
    if isinstance(t, Tensor) and t.requires_grad and torch.is_grad_enabled():
        raise InputError("`t` that needs a gradient given; gradients don't flow to the times, so give t.detach()")
    times = torch.tensor(nan)
    if "complex" not in str(getattr(t, "dtype", "")):
        with suppress(TypeError, ValueError, OverflowError, RuntimeError):
            times = torch.as_tensor(t, dtype=torch.float64, device="cpu").detach()
    gaps = times.diff() if times.dim() == 1 and len(times) else torch.tensor(nan)
    if not times.isfinite().all() or not ((gaps > 0).all() or (gaps < 0).all()):
        raise InputError(
            f"`t={_show(t)}` given; it must be a list of real, finite times that increase, or decrease, all along, "
            "as in [0.0, 1.0]"
        )
    return times


def check_range(times: Tensor, precision: torch.dtype) -> None:
    """Raise InputError for times, or gaps between them, that are too large for the precision of the solve."""
    most = torch.finfo(precision).max
    if max(float(each.abs().max()) for each in (times, times.diff()) if len(each)) > most:
        raise InputError(
            f"`t={_show(times.tolist())}` given; the solve is in {precision}, which holds numbers up to {most:.3g}, so "
            "give times, and gaps between them, that are smaller"
        )


def read_positive(name: str, given: object) -> float:
    """Return a positive, finite number; one in a tensor or of NumPy is a number too."""
    value = _unwrap(given)
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
    except OverflowError:
        number = inf
    if not 0 < number < inf:
        raise InputError(f"`{name}={_show(given)}` given; it must be a positive number, as in `{name}=0.001`")
    return number


def read_count(name: str, given: object) -> int:
    """Return a whole number of at least 1; one in a tensor or of NumPy is a number too."""
    value = _unwrap(given)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"`{name}={_show(given)}` given; it must be a whole number of at least 1")
    return int(value)


def read_parameters(given: Iterable[Tensor] | None, f: object) -> tuple[Tensor, ...]:
    """Return the tensors that f reads: those given, or else those of f itself where f is a module."""
    if given is None:
        return tuple(f.parameters()) if isinstance(f, nn.Module) else ()
    found: tuple[object, ...] = (None,)
    if isinstance(given, Iterable) and not isinstance(given, Tensor):
        found = tuple(given)
    if not all(isinstance(each, Tensor) for each in found):
        raise InputError(f"`parameters={_show(given)}` given; it must be a list of tensors, as in [weight, bias]")
    return tuple(each for each in found if isinstance(each, Tensor))


def read_steps(method: str, steps: object, h: object) -> tuple[int | None, float | None]:
    """Return the number or the size of equal steps, of which one must be given."""
    if (steps is None) == (h is None):
        raise InputError(
            f"{method} takes equal steps; give either steps, their number between two times, or h, their size"
        )
    return (read_count("steps", steps), None) if h is None else (None, read_positive("h", h))


def count_steps(steps: int | None, h: float | None, start: float, end: float) -> int:
    """Return the number of equal steps from start to end that have at most the size h."""
    if h is None:
        assert steps is not None
        return steps
    count = abs(end - start) / h - 1e-9  # 0.3 / 0.1 is more than 3 in floating point
    if not count < MOST_STEPS:
        raise InputError(f"`h={h}` given; it is too small to step from {start} to {end}, so give a larger one")
    return max(1, ceil(count))


def _unwrap(given: Any) -> Any:
    """Return the number in a tensor or an array without dimensions; anything else as it is."""
    return given.item() if getattr(given, "ndim", None) == 0 else given


def _show(given: object) -> str:
    return shorten(" ".join(repr(given).split()))
