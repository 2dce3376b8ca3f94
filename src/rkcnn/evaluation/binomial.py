"""Statistics of errors counted on one test set: Wilson's interval, McNemar's test, the sampling error."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from rkcnn.error import InputError


class McNemar(NamedTuple):
    """How many images only one of two networks gets wrong, and the exact two-sided p-value of that split."""

    only_a: int
    only_b: int
    p: float


class SamplingError(NamedTuple):
    """How much an error would vary over test sets of the same size: its standard error, and half a 95 % interval."""

    se: float
    half: float


def mcnemar(a_wrong: Iterable[bool], b_wrong: Iterable[bool]) -> McNemar:
    """Compare two networks on the same images, given in the same order, by whether each gets them wrong.

    With b and c images that only the first or only the second gets wrong, p = 2 P(X <= min(b, c)), at most 1, for X
    binomial(b + c, 1/2).
    """
    try:
        pairs = [(bool(a), bool(b)) for a, b in zip(a_wrong, b_wrong, strict=True)]
    except ValueError:
        raise InputError(
            "the two networks were given unequal numbers of images; give the same images to both"
        ) from None
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    n = only_a + only_b
    ways = term = 1  # C(n, 0); then C(n, i + 1) = C(n, i) (n - i) / (i + 1), in whole numbers and therefore exact
    for i in range(min(only_a, only_b)):
        term = term * (n - i) // (i + 1)
        ways += term
    return McNemar(only_a, only_b, min(1.0, 2 * ways / 2**n))


def wilson(wrong: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of p = wrong / n: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)."""
    if not 0 <= wrong <= n or n < 1:
        raise InputError(f"{wrong} wrong of {n} images given; give 0 to n wrong of 1 image or more")
    z = normal_quantile(level)
    p = wrong / n
    middle = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return max(0.0, min(low, p)), min(1.0, max(high, p))  # so that rounding can't leave p outside


def sampling_error(error: float, n: int) -> SamplingError:
    """Return the standard error sqrt(e(1 - e)/n) of an error e: for 0.3 % of 10,000 images it is 0.055 points."""
    if not 0 <= error <= 1 or n < 1:
        raise InputError(f"error {error} of {n} images given; an error is a fraction of 1 image or more")
    se = sqrt(error * (1 - error) / n)
    return SamplingError(se, normal_quantile(0.95) * se)


def normal_quantile(level: float) -> float:
    """Return the z with P(|Z| < z) = level for a standard normal Z."""
    if not 0 < level < 1:
        raise InputError(f"level {level} given; a level lies between 0 and 1, as 0.95 does")
    return NormalDist().inv_cdf((1 + level) / 2)
