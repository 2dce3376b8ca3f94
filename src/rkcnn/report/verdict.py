"""What the records make of a claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from rkcnn.data.sets import SETS
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.record.tables import TABLES
from rkcnn.report.claims import Claim, Comparison, Key
from rkcnn.report.counted import COUNTED
from rkcnn.report.judgement import Finding, Judgement, Verdict, tally
from rkcnn.report.share import judge_share
from rkcnn.report.statistics import Difference, Sample, holm, separates, welch_of


def judge(
    claim: Claim,
    errors: Mapping[Key, Sample],
    diverged: Mapping[Key, str] | None = None,
    params: Mapping[str, int] = COUNTED,
) -> Judgement:
    """Judge a claim from errors by (table, network), and from params by network on MNIST.

    `diverged` says of rows of which runs diverged how many did, as "3 of 5": they are named, and judge nothing.

    A comparison separates when Welch's p, corrected by Holm over all comparisons of the claim that were tested or lost
    to a divergence, is below 0.05; the intervals shown are each one's own 95 %. A comparison is
      better:    supported when it separates as claimed, contradicted when it separates the other way.
      alike:     supported when its interval lies within the margin on both sides, contradicted when it separates and
                 its interval lies outside altogether.
      no better: contradicted when the first separates as better, supported when its interval holds no gain as large
                 as the margin, and doesn't hold gains alone.
    The margin is one standard error of the test set itself, at the mean error of the two: no evidence of a difference
    isn't evidence of none, so an interval wider than that stays not separable.

    A claim is contradicted when one comparison is, supported when all that were tested are, else not separable; one
    that says "usually" goes by more than half of them. It is not yet tested when no comparison was, or not judged where
    that is because runs diverged or have no spread; where some were not, `heading` and `why` say how many and which.
    """
    if claim.kind == "share":
        return judge_share(claim, params)
    lost = diverged or {}
    comparisons = claim.compare(errors)
    known = [c for c in comparisons if all(_runs(errors, key) > 1 and key not in lost for key in _keys(c))]
    differences = {c: welch_of(errors[c.table, c.first], errors[c.table, c.second]) for c in known}
    chances = {c: difference.p for c, difference in differences.items() if difference.p is not None}
    touched = [c for c in comparisons if any(key in lost for key in _keys(c))]
    corrected = dict(zip(chances, holm([*chances.values()], lost=len(touched)), strict=True))
    missing = tuple(c for c in comparisons if c not in corrected)
    left_out = "; ".join(_say_missing(errors, missing, known, lost))
    if not corrected:
        verdict: Verdict = "not judged" if known or touched else "not yet tested"
        return Judgement(claim, verdict, left_out, missing=missing)
    findings = tuple(_find(claim, errors, c, differences[c], p) for c, p in corrected.items())
    verdict = _sum_up(findings, claim.usually)
    why = "; ".join(filter(None, (_say(claim, findings, verdict), left_out)))
    return Judgement(claim, verdict, why, findings, missing, lost=len(touched))


def _keys(comparison: Comparison) -> tuple[Key, Key]:
    return (comparison.table, comparison.first), (comparison.table, comparison.second)


def _runs(errors: Mapping[Key, Sample], key: Key) -> int:
    return errors[key].n if key in errors else 0


def _find(claim: Claim, errors: Mapping[Key, Sample], comparison: Comparison, found: Difference, p: float) -> Finding:
    assert found.interval is not None  # it comes with p
    low, high = found.interval
    apart = separates(p)
    if claim.kind == "better":
        holds, fails = apart and found.value < 0, apart and found.value > 0
        return Finding(comparison, found, p, None, _decide(holds, fails))
    mean = fmean(errors[key].mean for key in _keys(comparison))
    margin = sampling_error(mean, SETS[TABLES[comparison.table].data].test.images).se
    if claim.kind == "alike":
        holds, fails = -margin < low and high < margin, apart and (high < -margin or margin < low)
    else:
        holds, fails = -margin < low and high >= 0, apart and high < 0
    return Finding(comparison, found, p, margin, _decide(holds, fails))


def _decide(holds: bool, fails: bool) -> Verdict:
    return "supported" if holds else "contradicted" if fails else "not separable"


def _sum_up(findings: Sequence[Finding], usually: bool) -> Verdict:
    counts = Counter(finding.verdict for finding in findings)
    if counts["contradicted"] > (len(findings) / 2 if usually else 0):
        return "contradicted"
    if counts["supported"] > len(findings) / 2 if usually else counts["supported"] == len(findings):
        return "supported"
    return "not separable"


def _say(claim: Claim, findings: Sequence[Finding], verdict: Verdict) -> str:
    """How many are so, and the one that tells most: the weakest support, the clearest contradiction."""
    counts = f"{len(findings)} tested: {tally(findings)}"
    so = [f for f in findings if f.verdict == verdict]
    if not so:  # "usually", with some for and some against
        return counts
    told = min(so, key=lambda f: f.p) if verdict == "contradicted" else max(so, key=lambda f: _doubt(claim, f))
    which = "" if len(so) == 1 else "the clearest: " if verdict == "contradicted" else "the least clear: "
    return f"{counts}; {which}{told}"


def _doubt(claim: Claim, finding: Finding) -> float:
    """How far a finding is from support: p, or how far beyond the margin its interval reaches."""
    if finding.margin is None or finding.difference.interval is None:
        return finding.p
    low, high = finding.difference.interval
    return (max(-low, high) if claim.kind == "alike" else -low) - finding.margin


def _say_missing(
    errors: Mapping[Key, Sample],
    missing: Sequence[Comparison],
    known: Collection[Comparison],
    lost: Mapping[Key, str],
) -> Iterator[str]:
    """`not yet tested: svhn, cifar10`; the networks that lack runs where a part of a table was; those that diverged."""
    flat = [f"{c.first} and {c.second} on {c.table} (no spread on either side)" for c in missing if c in known]
    keys = dict.fromkeys(key for c in missing for key in _keys(c) if key in lost)
    chosen = [f"{name} on {table} ({lost[table, name]} runs diverged)" for table, name in keys]
    if chosen or flat:
        yield f"not judged: {', '.join((*chosen, *flat))}"
    parts = []
    for table in dict.fromkeys(c.table for c in missing):
        names = dict.fromkeys(key for c in missing if c.table == table for key in _keys(c))
        lacking = [key[1] for key in names if _runs(errors, key) < 2 and key not in lost]
        begun = any(c.table == table for c in known) or any(key in lost for key in names)
        if lacking:
            parts.append(f"{table} (fewer than 2 runs of {', '.join(lacking)})" if begun else table)
    if parts:
        yield f"not yet tested: {', '.join(parts)}"
