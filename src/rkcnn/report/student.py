"""Student's t distribution, for any real degrees of freedom, without scipy."""

from __future__ import annotations

from math import exp, lgamma, log

from rkcnn.error import InputError

STEPS = 100_000  # of the continued fraction, which takes about sqrt(max(a, b)) of them
CLOSE = 1e-15
TINY = 1e-300


def tail(t: float, dof: float) -> float:
    """P(|T| >= |t|), which is I_x(dof / 2, 1 / 2) at x = dof / (dof + t²)."""
    if dof <= 0:
        raise InputError(f"{dof} degrees of freedom given; Student's t needs more than 0")
    return incomplete_beta(dof / 2, 0.5, dof / (dof + t * t), t * t / (dof + t * t))


def quantile(level: float, dof: float) -> float:
    """The t > 0 with P(|T| < t) = level, by bisection."""
    if not 0 < level < 1:
        raise InputError(f"level {level} given; a level lies between 0 and 1, as 0.95 does")
    low, high = 0.0, 1.0
    while tail(high, dof) > 1 - level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:  # until no number lies between
        low, high = (middle, high) if tail(middle, dof) > 1 - level else (low, middle)
    return high


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised I_x(a, b); `rest` is 1 - x, given apart since x may be too near 1 to tell."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast below this
        return 1 - incomplete_beta(b, a, rest, x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    return min(1.0, front / _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), DLMF 8.17.22, from the front by Lentz's method."""
    value = upper = 1.0
    lower = 0.0
    for step in range(1, STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + term * lower or TINY)
        upper = 1 + term / upper or TINY
        value *= upper * lower
        if abs(upper * lower - 1) < CLOSE:
            return value
    raise InputError(f"the t distribution with {2 * max(a, b):g} degrees of freedom is out of reach; give fewer values")
