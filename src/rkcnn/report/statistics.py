"""What several runs allow one to say: means, differences, exact tests, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, fsum, isfinite, sqrt
from statistics import fmean, stdev
from typing import NamedTuple, Self

from rkcnn.error import InputError
from rkcnn.report.student import quantile, tail

MOST_SPLITS = 200_000  # 0.1 s
TIE = 1e-9
LEVEL = 0.95  # of every interval; p below 1 - LEVEL separates


class Sample(NamedTuple):
    """A few runs in four numbers; `std` is the sample's (n - 1 below), None for a single run."""

    mean: float
    std: float | None
    n: int
    min: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        _check(values)
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values), min(values))


class Difference(NamedTuple):
    """mean(a) - mean(b). Where no interval can be given, it, `dof` and `p` are None and `missing` says why."""

    value: float
    interval: tuple[float, float] | None
    dof: float | None
    p: float | None  # two-sided
    missing: str | None = None


class Permutation(NamedTuple):
    """`smallest` is the lowest p that these numbers of runs could have given."""

    p: float
    smallest: float
    splits: int


def welch(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Difference:
    """The difference of means with Welch's interval: d ± t se, se² = s_a²/n_a + s_b²/n_b.

    dof = se⁴ / ((s_a²/n_a)²/(n_a - 1) + (s_b²/n_b)²/(n_b - 1)). Two samples without any spread have no
    interval: their spread of 0 is a coincidence of few runs, not a certainty.
    """
    return welch_of(Sample.of(a), Sample.of(b), level)


def welch_of(one: Sample, two: Sample, level: float = LEVEL) -> Difference:
    """The same of samples of which no more is known, as those that the paper printed."""
    value = one.mean - two.mean
    if one.std is None or two.std is None:
        return Difference(value, None, None, None, f"{one.n} against {two.n} runs: a side of one run shows no spread")
    part_a, part_b = one.std**2 / one.n, two.std**2 / two.n
    if part_a + part_b == 0:
        return Difference(value, None, None, None, "no spread on either side, so nothing to measure it by")
    se = sqrt(part_a + part_b)
    share = part_a / (part_a + part_b)
    dof = 1 / (share**2 / (one.n - 1) + (1 - share) ** 2 / (two.n - 1))
    half = quantile(level, dof) * se
    return Difference(value, (value - half, value + half), dof, tail(value / se, dof))


def separates(p: float | None) -> bool:
    """Whether a corrected p tells two apart; there is none without any spread."""
    return p is not None and p < 1 - LEVEL


def permute(a: Sequence[float], b: Sequence[float]) -> Permutation:
    """Exact two-sided test: the share of all splits of the pooled runs whose means differ at least as much.

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


def holm(ps: Sequence[float], lost: int = 0) -> list[float]:
    """Holm's corrected p: in rising order max over j <= i of (m - j + 1) p_j, at most 1; given back in their order.

    m counts the `lost` too: comparisons that runs were made for and that have no p, since some of those diverged. Were
    they left out, a divergence would make the other comparisons clearer.
    """
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) + lost - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def _check(values: Sequence[float]) -> None:
    if not len(values):
        raise InputError("no values given; statistics need the errors of one run at least")
    if not all(map(isfinite, values)):
        raise InputError(f"{list(values)} given; statistics need finite numbers, leave diverged runs out")
