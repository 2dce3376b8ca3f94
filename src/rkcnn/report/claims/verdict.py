"""The verdict on a claim: what each pair of networks shows, and what all of them together say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rkcnn.report.claims.claims import Claim, Pair
from rkcnn.report.statistics import LEVEL, Difference, is_significant

Verdict = Literal["supported", "close", "undecided", "contradicted", "not yet tested", "not judged"]
WORDS: dict[Verdict, str] = {"supported": "as claimed", "undecided": "undecided", "contradicted": "against"}


class Finding(NamedTuple):
    """One pair of networks: the difference first - second, its p corrected by Holm's method, and the verdict on it.

    `margin` is set where the claim says that there is no difference: it is how large a difference counts as none.
    """

    pair: Pair
    difference: Difference
    p: float
    margin: float | None
    verdict: Verdict

    def __str__(self) -> str:
        table, first, second = self.pair
        assert self.difference.interval is not None  # it comes with p
        low, high = self.difference.interval
        margin = f", margin {100 * self.margin:.3f}" if self.margin is not None else ""
        within = self.margin is not None and -self.margin < low and high < self.margin
        small = "; they differ, by less than the margin" if within and is_significant(self.p) else ""
        return (
            f"{first} minus {second} on {table} is {100 * self.difference.value:+.3f} points ({100 * LEVEL:.0f} % "
            f"interval {100 * low:+.3f} to {100 * high:+.3f}{margin}, corrected p {self.p:.2g}{small})"
        )


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict; `why` is one sentence."""

    claim: Claim
    verdict: Verdict
    why: str
    findings: tuple[Finding, ...] = ()
    missing: tuple[Pair, ...] = ()  # pairs that can't be compared yet
    counted: str = ""  # what was counted, for a claim about parameters
    lost: int = 0  # how many pairs can't be judged because runs diverged
    noted: tuple[str, ...] = ()  # rows behind the findings whose runs have a note that bears on their errors
    by_paper: str = ""  # the heading that the paper's own numbers get by the same rules

    @property
    def caveat(self) -> str:
        """What to bear in mind beside the verdict: the claim's own caveat, and rows whose records have a note."""
        noted = f"see the note on the runs of {' and '.join(self.noted)}" if self.noted else None
        return "; ".join(filter(None, (self.claim.caveat if self.findings else None, noted)))

    @property
    def heading(self) -> str:
        """The verdict with how much of the claim was tested: `supported so far (2 of 8 comparisons)`."""
        parts = [self.counted]
        if self.findings and self.missing:
            parts.append(f"{len(self.findings)} of {len(self.findings) + len(self.missing)} comparisons")
        if {finding.verdict for finding in self.findings} - {self.verdict}:
            parts.append(tally(self.findings))
        part = ": ".join(filter(None, parts))
        if self.lost:
            part += f"; {self.lost} not judged because runs diverged"
        so_far = " so far" if self.verdict == "supported" and self.missing else ""
        return f"{self.verdict}{so_far} ({part})" if part else self.verdict


def tally(findings: Sequence[Finding]) -> str:
    """Count the findings by verdict: `6 as claimed, 6 undecided`."""
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in WORDS.items() if counts[verdict])
