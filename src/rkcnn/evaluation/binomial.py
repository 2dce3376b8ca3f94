"""What one test set allows one to say about errors counted on it."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from rkcnn.error import InputError


class McNemar(NamedTuple):
    """Images that only one of two networks got wrong, and the exact two-sided p of such a split."""

    only_a: int
    only_b: int
    p: float


class SamplingError(NamedTuple):
    """What drawing another test set of the same size would do: one standard error, and half a 95 % interval."""

    se: float
    half: float


def mcnemar(a_wrong: Iterable[bool], b_wrong: Iterable[bool]) -> McNemar:
    """p = 2 P(X <= min(b, c)) for X binomial(b + c, 1/2), at most 1; both judged the same images in the same order."""
    try:
        pairs = [(bool(a), bool(b)) for a, b in zip(a_wrong, b_wrong, strict=True)]
    except ValueError:
        raise InputError("the two networks judged unequal numbers of images; give the same images to both") from None
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    n = only_a + only_b
    ways = term = 1  # C(n, 0), and on by C(n, i + 1) = C(n, i) (n - i) / (i + 1): whole numbers, so exact
    for i in range(min(only_a, only_b)):
        term = term * (n - i) // (i + 1)
        ways += term
    return McNemar(only_a, only_b, min(1.0, 2 * ways / 2**n))


def wilson(wrong: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of wrong / n: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)."""
    if not 0 <= wrong <= n or n < 1:
        raise InputError(f"{wrong} wrong of {n} images given; give 0 to n wrong of 1 image or more")
    z = normal_quantile(level)
    p = wrong / n
    middle = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return max(0.0, min(low, p)), min(1.0, max(high, p))  # rounding leaves the share itself inside


def sampling_error(error: float, n: int) -> SamplingError:
    """se = sqrt(e(1 - e)/n): 0.3 % of 10,000 images is known to ±0.055 points by one standard error."""
    if not 0 <= error <= 1 or n < 1:
        raise InputError(f"error {error} of {n} images given; an error is a fraction of 1 image or more")
    se = sqrt(error * (1 - error) / n)
    return SamplingError(se, normal_quantile(0.95) * se)


def normal_quantile(level: float) -> float:
    """The z with P(|Z| < z) = level."""
    if not 0 < level < 1:
        raise InputError(f"level {level} given; a level lies between 0 and 1, as 0.95 does")
    return NormalDist().inv_cdf((1 + level) / 2)
