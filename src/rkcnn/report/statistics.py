"""Means, differences and tests of a few runs, corrected for the number of comparisons; Student's t without scipy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, exp, fsum, isfinite, lgamma, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple, Self

from rkcnn.error import InputError

MOST_SPLITS = 200_000  # the exact permutation test takes 0.1 s for so many
TIE = 1e-9
LEVEL = 0.95  # of every interval; a p below 1 - LEVEL separates two networks
STEPS = 100_000  # of the continued fraction, which takes about sqrt(max(a, b)) of them
CLOSE = 1e-15
TINY = 1e-300


class Sample(NamedTuple):
    """A few runs in four numbers; `std` divides by n - 1 and is None for a single run."""

    mean: float
    std: float | None
    n: int
    min: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Summarise one value or more."""
        _check(values)
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values), min(values))


def pool_deviations(samples: Sequence[Sample]) -> float | None:
    """Return the standard deviation of one run over several networks: sqrt(sum of (n - 1) s² / sum of (n - 1)).

    None where no sample has two runs or more.
    """
    known = [(each.n - 1, each.std) for each in samples if each.std is not None]
    return sqrt(sum(dof * std * std for dof, std in known) / sum(dof for dof, _ in known)) if known else None


class Difference(NamedTuple):
    """mean(a) - mean(b). Where no interval can be given, it, `dof` and `p` are None and `missing` says why."""

    value: float
    interval: tuple[float, float] | None
    dof: float | None
    p: float | None  # two-sided
    missing: str | None = None


class Permutation(NamedTuple):
    """The exact test's p; `smallest` is the lowest p that these numbers of runs could have given."""

    p: float
    smallest: float
    splits: int


def welch(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Difference:
    """Return the difference of means with Welch's interval: d ± t se, se² = s_a²/n_a + s_b²/n_b.

    dof = se⁴ / ((s_a²/n_a)²/(n_a - 1) + (s_b²/n_b)²/(n_b - 1)). Two samples without any spread have no
    interval: their spread of 0 is a coincidence of few runs, not a certainty.
    """
    return welch_from_samples(Sample.of(a), Sample.of(b), level)


def welch_from_samples(one: Sample, two: Sample, level: float = LEVEL) -> Difference:
    """Return Welch's difference of samples of which only mean, deviation and number are known, as the paper's are."""
    value = one.mean - two.mean
    if one.std is None or two.std is None:
        return Difference(value, None, None, None, f"{one.n} against {two.n} runs: a side of one run shows no spread")
    part_a, part_b = one.std**2 / one.n, two.std**2 / two.n
    if part_a + part_b == 0:
        return Difference(value, None, None, None, "neither side has any spread to measure it by")
    se = sqrt(part_a + part_b)
    share = part_a / (part_a + part_b)
    dof = 1 / (share**2 / (one.n - 1) + (1 - share) ** 2 / (two.n - 1))
    half = t_quantile(level, dof) * se
    return Difference(value, (value - half, value + half), dof, two_sided_p(value / se, dof))


def paired(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Difference:
    """Return the mean of a_i - b_i with Student's interval, d ± t s/sqrt(n), for values that belong together in pairs.

    s is the standard deviation of the n differences, and t has n - 1 degrees of freedom. Unlike Welch's, the interval
    leaves out what both values of a pair have in common, such as a seed.
    """
    differences = Sample.of([one - two for one, two in zip(a, b, strict=True)])
    if differences.std is None:
        return Difference(differences.mean, None, None, None, "one pair shows no spread")
    if differences.std <= TIE * max(map(abs, (*a, *b))):  # 0 but for rounding
        return Difference(differences.mean, None, None, None, "the differences have no spread to measure it by")
    se = differences.std / sqrt(differences.n)
    dof = differences.n - 1
    half = t_quantile(level, dof) * se
    interval = differences.mean - half, differences.mean + half
    return Difference(differences.mean, interval, dof, two_sided_p(differences.mean / se, dof))


def is_significant(p: float | None) -> bool:
    """Whether a corrected p tells two networks apart; without any spread there is no p."""
    return p is not None and p < 1 - LEVEL


def permutation_test(a: Sequence[float], b: Sequence[float]) -> Permutation:
    """Return the exact two-sided p: the share of all splits of the pooled runs whose means differ at least as much.

    `smallest` is 2 of C(2n, n) with equal sides, since swapping them gives the same difference, else 1.
    """
    _check(a)
    _check(b)
    n, m = len(a), len(b)
    splits = comb(n + m, n)
    if splits > MOST_SPLITS:
        raise InputError(
            f"{n} against {m} runs have {splits:,} splits; the exact test takes up to {MOST_SPLITS:,} "
            "(10 against 10 runs)"
        )
    pooled = [*a, *b]
    total = fsum(pooled)
    # mean(a) - mean(b) = ((n + m) sum(a) - n total) / (n m). For errors k/N that numerator is a multiple of 1/N: two
    # of them are equal or at least 1/N > 1e-6 apart, while rounding moves them by less than 1e-12. TIE lies between.
    distances = [abs((n + m) * fsum(split) - n * total) for split in combinations(pooled, n)]
    least = distances[0] - TIE * max(map(abs, pooled))
    return Permutation(sum(d >= least for d in distances) / splits, (2 if n == m else 1) / splits, splits)


def correct_by_holm(ps: Sequence[float], lost: int = 0) -> list[float]:
    """Correct p-values by Holm's method and return them in the order given.

    In rising order the corrected p is max over j <= i of (m - j + 1) p_j, at most 1. m also counts the `lost`
    comparisons: those whose runs were made and diverged, so that they have no p. If they were left out, a divergence
    would make the other comparisons look clearer.
    """
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) + lost - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def paired_standard_error(disagreeing: int, images: int) -> float:
    """Return the standard error of a difference between two networks' errors on the same test images.

    `disagreeing` counts the images that they judge differently. sqrt(b + c)/n is the standard error under McNemar's
    hypothesis of equal errors, where b and c images are wrong in one network alone.
    """
    return sqrt(disagreeing) / images


def independent_standard_error(first: float, second: float, images: int) -> float:
    """Return the standard error of a difference if the two networks erred independently: sqrt(se_1² + se_2²).

    Networks err on the same hard images more often than that, so the paired standard error is smaller.
    """
    return sqrt((first * (1 - first) + second * (1 - second)) / images)


def two_sided_p(t: float, dof: float) -> float:
    """Return P(|T| >= |t|) of Student's t, which is I_x(dof / 2, 1 / 2) at x = dof / (dof + t²)."""
    if dof <= 0:
        raise InputError(f"{dof} degrees of freedom given; Student's t needs more than 0")
    return incomplete_beta(dof / 2, 0.5, dof / (dof + t * t), t * t / (dof + t * t))


def t_quantile(level: float, dof: float) -> float:
    """Return the t > 0 with P(|T| < t) = level, found by bisection."""
    if not 0 < level < 1:
        raise InputError(f"level {level} given; a level lies between 0 and 1, as 0.95 does")
    low, high = 0.0, 1.0
    while two_sided_p(high, dof) > 1 - level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:  # until no number lies between
        low, high = (middle, high) if two_sided_p(middle, dof) > 1 - level else (low, middle)
    return high


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised I_x(a, b); `rest` is 1 - x, a value of its own since x may be too near 1 to tell."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # below this the fraction converges fast
        return 1 - incomplete_beta(b, a, rest, x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    return min(1.0, front / _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate 1 + d1 / (1 + d2 / (1 + ...)), DLMF 8.17.22, from the front by Lentz's method."""
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
    raise InputError(
        f"the t distribution with {2 * max(a, b):g} degrees of freedom can't be computed; give fewer values"
    )


def _check(values: Sequence[float]) -> None:
    if not len(values):
        raise InputError("no values given; statistics need the errors of one run at least")
    if not all(map(isfinite, values)):
        raise InputError(f"{list(values)} given; statistics need finite numbers, leave diverged runs out")
