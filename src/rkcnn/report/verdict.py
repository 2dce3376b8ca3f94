"""What the records make of a claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rkcnn.data.sets import SETS
from rkcnn.evaluate.proportion import sampling_error
from rkcnn.model.catalogue import SOTA_MNIST
from rkcnn.record.table import TABLES
from rkcnn.report.claims import Claim, Comparison, Key
from rkcnn.report.counted import COUNTED
from rkcnn.report.statistics import Difference, Sample, holm, welch

Verdict = Literal["supported", "not separable", "contradicted", "not yet tested", "not judged"]
LEVEL = 0.95
SHARES = (0.055 / 0.285, 0.065 / 0.275), (0.075 / 0.225, 0.085 / 0.215)
"""Where the ends of "21~36 %" lie when the cells behind them, 0.06 / 0.28 and 0.08 / 0.22, are read as rounded."""


class Finding(NamedTuple):
    """One comparison: first - second, its p corrected (Holm), the margin where the claim is of no difference."""

    comparison: Comparison
    difference: Difference
    p: float | None
    margin: float | None
    verdict: Verdict

    def __str__(self) -> str:
        table, first, second = self.comparison
        text = f"{first} minus {second} on {table} is {100 * self.difference.value:+.3f} points"
        if self.difference.interval is None or self.p is None:
            return f"{text} ({self.difference.missing})"
        low, high = (100 * bound for bound in self.difference.interval)
        margin = f", margin {100 * self.margin:.3f}" if self.margin is not None else ""
        return f"{text} ({100 * LEVEL:.0f} % interval {low:+.3f} to {high:+.3f}{margin}, corrected p {self.p:.2g})"


@dataclass(frozen=True)
class Judgement:
    """`missing` are the comparisons that have no records, or a single run on a side; `why` is one sentence."""

    claim: Claim
    verdict: Verdict
    why: str
    findings: tuple[Finding, ...] = ()
    missing: tuple[Comparison, ...] = ()
    exactly: str = ""  # what was counted, where the claim is about that

    @property
    def heading(self) -> str:
        """The verdict, never wider than what was tested: `supported (2 of 8 comparisons)`."""
        total = len(self.findings) + len(self.missing)
        part = f"{len(self.findings)} of {total} comparisons" if self.findings and self.missing else self.exactly
        return f"{self.verdict} ({part})" if part else self.verdict


def judge(
    claim: Claim,
    records: Mapping[Key, Sequence[float]],
    diverged: Mapping[Key, str] | None = None,
    params: Mapping[str, int] = COUNTED,
) -> Judgement:
    """Judge a claim from last-epoch errors by (table, network), and from params by network on MNIST.

    `diverged` says of rows of which runs diverged how many did, as "3 of 5": they are named, and judge nothing.

    A comparison separates when Welch's p, corrected by Holm over all tested comparisons of the claim, is below 0.05;
    the intervals shown are each one's own 95 %. A comparison is supported
      better:    when it separates as claimed; contradicted when it separates the other way.
      alike:     when its interval lies within the margin on both sides; else contradicted when it separates.
      no better: when its interval holds no gain as large as the margin; else contradicted when the first separates as
                 better.
    The margin is one standard error of the test set itself, at the mean error of the two: no evidence of a difference
    isn't evidence of none, so an interval wider than that stays not separable.

    A claim is contradicted when one comparison is, supported when all that were tested are, else not separable; one
    that says "usually" goes by more than half of them. It is not yet tested when no comparison was, or not judged where
    that is because runs diverged; where some were not, `heading` and `why` say how many and which.
    """
    if claim.kind == "share":
        return _judge_share(claim, params)
    lost = diverged or {}
    comparisons = claim.compare(records)
    tested = [c for c in comparisons if all(len(records.get(key, ())) > 1 and key not in lost for key in _keys(c))]
    missing = tuple(c for c in comparisons if c not in tested)
    left_out = _say_missing(records, missing, tested, lost)
    if not tested:
        touched = any(key in lost for c in missing for key in _keys(c))
        return Judgement(claim, "not judged" if touched else "not yet tested", left_out, missing=missing)
    differences = [welch(records[c.table, c.first], records[c.table, c.second], LEVEL) for c in tested]
    corrected = iter(holm([d.p for d in differences if d.p is not None]))
    findings = tuple(
        _find(claim, records, c, d, None if d.p is None else next(corrected))
        for c, d in zip(tested, differences, strict=True)
    )
    verdict = _sum_up(findings, claim.usually)
    why = "; ".join(filter(None, (_say(claim, findings, verdict), left_out)))
    return Judgement(claim, verdict, why, findings, missing)


def _keys(comparison: Comparison) -> tuple[Key, Key]:
    return (comparison.table, comparison.first), (comparison.table, comparison.second)


def _find(
    claim: Claim, records: Mapping[Key, Sequence[float]], comparison: Comparison, found: Difference, p: float | None
) -> Finding:
    table, first, second = comparison
    margin = None
    if claim.kind != "better":
        mean = (Sample.of(records[table, first]).mean + Sample.of(records[table, second]).mean) / 2
        margin = sampling_error(mean, SETS[TABLES[table].data].test.images).se
    verdict: Verdict = "not separable"
    if found.interval is not None and p is not None:
        separates = p < 1 - LEVEL
        low, high = found.interval
        if margin is None:
            holds, fails = separates and found.value < 0, separates and found.value > 0
        elif claim.kind == "alike":
            holds, fails = -margin < low and high < margin, separates
        else:
            holds, fails = -margin < low, separates and found.value < 0
        verdict = "supported" if holds else "contradicted" if fails else "not separable"
    return Finding(comparison, found, p, margin, verdict)


def _sum_up(findings: Sequence[Finding], usually: bool) -> Verdict:
    counts = {verdict: sum(f.verdict == verdict for f in findings) for verdict in ("supported", "contradicted")}
    if counts["contradicted"] > (len(findings) / 2 if usually else 0):
        return "contradicted"
    if counts["supported"] > len(findings) / 2 if usually else counts["supported"] == len(findings):
        return "supported"
    return "not separable"


def _say(claim: Claim, findings: Sequence[Finding], verdict: Verdict) -> str:
    """How many are so, and the one that tells most: the weakest support, the clearest contradiction."""
    so = [f for f in findings if f.verdict == verdict]
    if not so:  # "usually", with some for and some against
        return f"no more than half of {len(findings)} tested go one way"
    word = {"supported": "as claimed", "contradicted": "against the claim", "not separable": "undecided"}[verdict]
    told = min(so, key=_chance) if verdict == "contradicted" else max(so, key=lambda f: _doubt(claim, f))
    which = "" if len(so) == 1 else "the clearest: " if verdict == "contradicted" else "the least clear: "
    return f"{len(so)} of {len(findings)} tested {'is' if len(so) == 1 else 'are'} {word}; {which}{told}"


def _chance(finding: Finding) -> float:
    return 1.0 if finding.p is None else finding.p


def _doubt(claim: Claim, finding: Finding) -> float:
    """How far a finding is from support: p, or how far beyond the margin its interval reaches."""
    if finding.margin is None or finding.difference.interval is None:
        return _chance(finding)
    low, high = finding.difference.interval
    return (max(-low, high) if claim.kind == "alike" else -low) - finding.margin


def _say_missing(
    records: Mapping[Key, Sequence[float]],
    missing: Sequence[Comparison],
    tested: Collection[Comparison],
    lost: Mapping[Key, str],
) -> str:
    """`not yet tested: svhn, cifar10`; the networks that lack runs where a part of a table was; those that diverged."""
    parts = []
    for table in dict.fromkeys(c.table for c in missing):
        names = dict.fromkeys(key for c in missing if c.table == table for key in _keys(c))
        lacking = [key[1] for key in names if len(records.get(key, ())) < 2 and key not in lost]
        begun = any(c.table == table for c in tested) or any(key in lost for key in names)
        if lacking:
            parts.append(f"{table} (fewer than 2 runs of {', '.join(lacking)})" if begun else table)
    keys = dict.fromkeys(key for c in missing for key in _keys(c) if key in lost)
    chosen = [f"{name} on {table} ({lost[table, name]} runs diverged)" for table, name in keys]
    waiting = f"not yet tested: {', '.join(parts)}" if parts else ""
    return "; ".join(filter(None, (f"not judged: {', '.join(chosen)}" if chosen else "", waiting)))


def _judge_share(claim: Claim, params: Mapping[str, int]) -> Judgement:
    ours = [params[name] for name in SOTA_MNIST if name.startswith("RKCNN-")]
    rivals = [params[name] for name in SOTA_MNIST if not name.startswith("RKCNN-")]
    ends = min(ours) / max(rivals), max(ours) / min(rivals)
    holds = all(low <= end <= high for end, (low, high) in zip(ends, SHARES, strict=True))
    low, high = (f"{100 * least:.0f} to {100 * most:.0f} %" for least, most in SHARES)
    exactly = f"exactly {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %"
    why = (
        f"it is {exactly}; the paper divides cells rounded to "
        f"0.01 M, which allows {low} for its lower end and {high} for its upper"
    )
    return Judgement(claim, "supported" if holds else "contradicted", why, exactly=exactly)
