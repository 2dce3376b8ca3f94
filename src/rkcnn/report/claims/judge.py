"""Judges the paper's claims: ours by last-epoch errors, and by the same rules the numbers that the paper prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from rkcnn.data.sets import SETS
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.claims import CLAIMS, Claim, Key, Pair
from rkcnn.report.claims.verdict import Finding, JudgedClaim, Verdict, tally
from rkcnn.report.paper import printed_sample
from rkcnn.report.results import Records, build_result_table
from rkcnn.report.statistics import Difference, Sample, correct_by_holm, is_significant, welch_from_samples

COUNTED_PARAMETERS = {
    "RKNet-64": 208_266,
    "ODENet-64": 208_266,
    "SONODE-64": 283_658,
    "RKCNN-E-2@k=32": 55_498,
    "RKCNN-I-2@k=32": 78_410,
    "RKCNN-R-2@k=32": 78_410,
}
"""The parameters of the networks of the sota-mnist table; a test counts them again."""

CLAIMED_SHARE = 21, 36  # percent
ROUNDED_SHARE = (0.055 / 0.285, 0.065 / 0.275), (0.075 / 0.225, 0.085 / 0.215)
"""Where the two ends may be when the printed cells behind them, 0.06 / 0.28 and 0.08 / 0.22, are read as rounded."""

CORRECTION = (
    "Each claim is judged from all tables that have results by this recipe, whether they are shown here or not. It is "
    "corrected for its own comparisons, and a table for all of the table's: a pair may separate in one and not in the "
    "other."
)


def judge_claims(records: Records, preset: str, precision: str | None = None) -> list[JudgedClaim]:
    """Judge every claim from all tables at one preset, since a claim may speak of several; smoke judges nothing.

    All runs have one precision: the given one, or in each table that of the preset's recipe.

    Rows of which runs diverged are named and not judged by the runs that survived.
    """
    if preset == "smoke":
        return []
    tables = [build_result_table(table, records, preset, precision=precision) for table in TABLES.values()]
    if all(results.empty for results in tables):
        return []
    rows = {(results.name, row.network): row for results in tables for row in results.rows}
    errors = {key: row.last for key, row in rows.items() if row.last}
    runs = {key: (len(row.diverged), len(row.results) + len(row.diverged)) for key, row in rows.items()}
    diverged = {key: f"{lost} of {total}" for key, (lost, total) in runs.items() if lost}
    printed = {key: sample for key, row in rows.items() if (sample := printed_sample(row.printed))}
    noted = {key: row.label for key, row in rows.items() if row.notes_on_errors}
    noted |= {
        (results.name, row.network): results.data for results in tables if results.unverified for row in results.rows
    }
    judged = [judge(claim, errors, diverged) for claim in CLAIMS]
    return [
        replace(each, noted=_find_noted(each.findings, noted), by_paper=_judge_printed(each.claim, printed))
        for each in judged
    ]


def judge(
    claim: Claim,
    errors: Mapping[Key, Sample],
    diverged: Mapping[Key, str] | None = None,
    params: Mapping[str, int] = COUNTED_PARAMETERS,
) -> JudgedClaim:
    """Judge a claim from errors by (table, network), and one about parameters from `params` by network on MNIST.

    `diverged` gives for each row of which runs diverged how many did, as "3 of 5": such rows are named, and not judged.

    A pair separates when Welch's p, corrected by Holm's method over all pairs of the claim that were tested or lost to
    a divergence, is below 0.05; the intervals shown are 95 % each by itself. A pair of a claim
      better:    is supported when it separates as claimed, contradicted when it separates the other way.
      alike:     is supported when its interval lies within the margin on both sides, contradicted when it separates
                 and its interval lies outside altogether.
      no better: is contradicted when the first separates as better, supported when its interval contains no gain as
                 large as the margin and does not consist of gains alone.
    The margin is one standard error of one run's error on the test set, at the mean error of the two: no evidence of
    a difference isn't evidence of none, so an interval wider than that stays undecided. It is generous, since another
    draw of the images changes a difference of means over seeds by less.

    A claim is contradicted when one pair is, supported when all that were tested are, else undecided; one that says
    "usually" goes by more than half of all its pairs, tested or not. It is not yet tested when no pair was, or not
    judged where the reason is that runs diverged or have no spread; `heading` and `why` say how many pairs are missing,
    and which.
    """
    if claim.kind == "share":
        return judge_share(claim, params)
    lost = diverged or {}
    pairs = claim.find_pairs(errors)
    known = [pair for pair in pairs if all(_runs(errors, key) > 1 and key not in lost for key in _keys(pair))]
    differences = {
        pair: welch_from_samples(errors[pair.table, pair.first], errors[pair.table, pair.second]) for pair in known
    }
    p_values = {pair: difference.p for pair, difference in differences.items() if difference.p is not None}
    touched = [pair for pair in pairs if any(key in lost for key in _keys(pair))]
    corrected = dict(zip(p_values, correct_by_holm([*p_values.values()], lost=len(touched)), strict=True))
    missing = tuple(pair for pair in pairs if pair not in corrected)
    left_out = "; ".join(_say_missing(errors, missing, known, lost))
    if not corrected:
        verdict: Verdict = "not judged" if known or touched else "not yet tested"
        return JudgedClaim(claim, verdict, left_out, missing=missing)
    findings = tuple(_judge_pair(claim, errors, pair, differences[pair], p) for pair, p in corrected.items())
    verdict = _combine_verdicts(findings, len(pairs) if claim.usually else None)
    why = "; ".join(filter(None, (_say_why(claim, findings, verdict), left_out)))
    return JudgedClaim(claim, verdict, why, findings, missing, lost=len(touched))


def speaks_of(judged: JudgedClaim, table: str) -> bool:
    """Whether a claim is judged from the records of this table."""
    if judged.claim.kind == "share":
        return table in ("mnist", "sota-mnist")
    pairs = (*(finding.pair for finding in judged.findings), *judged.missing)
    return any(pair.table == table for pair in pairs)


def list_verdicts(claims: Iterable[JudgedClaim]) -> Iterator[str]:
    """Yield one line for each claim that was tested, and one that names all that were not."""
    claims = list(claims)
    if any(judged.findings for judged in claims):
        yield CORRECTION
    for judged in claims:
        if judged.verdict != "not yet tested":
            yield _say_verdict(judged)
    waiting = [judged.claim.short for judged in claims if judged.verdict == "not yet tested"]
    if waiting:
        yield f"not yet tested: {'; '.join(waiting)}."


def _judge_printed(claim: Claim, printed: Mapping[Key, Sample]) -> str:
    """Return the heading of a claim by the means and deviations that the paper printed; empty where it has none."""
    judged = judge(claim, printed)
    return judged.heading if judged.findings else ""


def _find_noted(findings: Iterable[Finding], noted: Mapping[Key, str]) -> tuple[str, ...]:
    used = (key for finding in findings for key in _keys(finding.pair))
    return tuple(dict.fromkeys(noted[key] for key in used if key in noted))


def _keys(pair: Pair) -> tuple[Key, Key]:
    return (pair.table, pair.first), (pair.table, pair.second)


def _runs(errors: Mapping[Key, Sample], key: Key) -> int:
    return errors[key].n if key in errors else 0


def _judge_pair(claim: Claim, errors: Mapping[Key, Sample], pair: Pair, found: Difference, p: float) -> Finding:
    assert found.interval is not None  # it comes with p
    low, high = found.interval
    apart = is_significant(p)
    if claim.kind == "better":
        holds, fails = apart and found.value < 0, apart and found.value > 0
        return Finding(pair, found, p, None, _decide(holds, fails))
    mean = fmean(errors[key].mean for key in _keys(pair))
    margin = sampling_error(mean, SETS[TABLES[pair.table].data].test.images).se
    if claim.kind == "alike":
        holds, fails = -margin < low and high < margin, apart and (high < -margin or margin < low)
    else:
        holds, fails = -margin < low and high >= 0, apart and high < 0
    return Finding(pair, found, p, margin, _decide(holds, fails))


def _decide(holds: bool, fails: bool) -> Verdict:
    return "supported" if holds else "contradicted" if fails else "undecided"


def _combine_verdicts(findings: Sequence[Finding], usually_of: int | None) -> Verdict:
    """Return the verdict on a claim; `usually_of` is the number of all pairs, tested or not, if most of them decide."""
    counts = Counter(finding.verdict for finding in findings)
    if counts["contradicted"] > (usually_of / 2 if usually_of else 0):
        return "contradicted"
    if counts["supported"] > usually_of / 2 if usually_of else counts["supported"] == len(findings):
        return "supported"
    return "undecided"


def _say_verdict(judged: JudgedClaim) -> str:
    printed = f"the paper's own numbers, by the same rules: {judged.by_paper}" if judged.by_paper else None
    why = "; ".join(filter(None, (judged.why, printed, judged.caveat)))
    return f"{judged.heading}: {judged.claim.short} ({why})."


def _say_why(claim: Claim, findings: Sequence[Finding], verdict: Verdict) -> str:
    """Say how many pairs are so, and give the one that matters most: weakest support, clearest contradiction."""
    counts = f"{len(findings)} tested: {tally(findings)}"
    same = [finding for finding in findings if finding.verdict == verdict]
    if not same:  # "usually", without enough for it or against it
        return counts
    against = verdict == "contradicted"
    shown = min(same, key=lambda f: f.p) if against else max(same, key=lambda f: _distance_from_support(claim, f))
    which = "" if len(same) == 1 else "the clearest: " if against else "the least clear: "
    return f"{counts}; {which}{shown}"


def _distance_from_support(claim: Claim, finding: Finding) -> float:
    """Return how far a finding is from support: p, or how far its interval reaches beyond the margin."""
    if finding.margin is None or finding.difference.interval is None:
        return finding.p
    low, high = finding.difference.interval
    return (max(-low, high) if claim.kind == "alike" else -low) - finding.margin


def _say_missing(
    errors: Mapping[Key, Sample], missing: Sequence[Pair], known: Collection[Pair], lost: Mapping[Key, str]
) -> Iterator[str]:
    """Name the rows that diverged, the tables without results, and in other tables the networks that lack runs."""
    flat = [
        f"{pair.first} and {pair.second} on {pair.table} (no spread on either side)"
        for pair in missing
        if pair in known
    ]
    keys = dict.fromkeys(key for pair in missing for key in _keys(pair) if key in lost)
    diverged = [f"{name} on {table} ({lost[table, name]} runs diverged)" for table, name in keys]
    if diverged or flat:
        yield f"not judged: {', '.join((*diverged, *flat))}"
    parts = []
    for table in dict.fromkeys(pair.table for pair in missing):
        names = dict.fromkeys(key for pair in missing if pair.table == table for key in _keys(pair))
        lacking = [key[1] for key in names if _runs(errors, key) < 2 and key not in lost]
        begun = any(pair.table == table for pair in known) or any(key in lost for key in names)
        if lacking:
            parts.append(f"{table} (fewer than 2 runs of {', '.join(lacking)})" if begun else table)
    if parts:
        yield f"not yet tested: {', '.join(parts)}"


def judge_share(claim: Claim, params: Mapping[str, int]) -> JudgedClaim:
    """Judge "21~36 %": the RKCNNs' share of their published rivals' parameters, from the smallest to the largest.

    `supported` when both ends, in whole percent, are the claimed ones; `close` when they are not, and the rounding of
    the cells that the paper divides explains both; else `contradicted`.
    """
    ours = [params[name] for name in TABLES["sota-mnist"].specs if name.startswith("RKCNN-")]
    rivals = [params[name] for name in TABLES["sota-mnist"].specs if not name.startswith("RKCNN-")]
    ends = min(ours) / max(rivals), max(ours) / min(rivals)
    verdict: Verdict = "contradicted"
    if tuple(round(100 * end) for end in ends) == CLAIMED_SHARE:
        verdict = "supported"
    elif all(low <= end <= high for end, (low, high) in zip(ends, ROUNDED_SHARE, strict=True)):
        verdict = "close"
    low, high = (f"{100 * least:.0f} to {100 * most:.0f} %" for least, most in ROUNDED_SHARE)
    counted = f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f} % as counted"
    why = (
        f"we count {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %; the paper divides cells printed to 0.01 M, whose "
        f"rounding allows {low} for its lower end and {high} for its upper, and prints 0.22 M for networks of 208,266"
    )
    return JudgedClaim(claim, verdict, why, counted=counted)
