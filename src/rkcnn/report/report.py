"""The report: everything that is found out about one table or several, computed once and then only rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.report.claims.judge import judge_claims, speaks_of
from rkcnn.report.claims.verdict import JudgedClaim
from rkcnn.report.compare import Comparison, compare
from rkcnn.report.costs import CostCheck, check_costs
from rkcnn.report.figures import FIGURES
from rkcnn.report.footnotes import list_footnotes, list_limits
from rkcnn.report.machines import describe_machine
from rkcnn.report.results import Records, ResultTable
from rkcnn.report.sentences import (
    Statement,
    describe_comparison,
    introduce_comparisons,
    preset_warning,
    say_coverage,
    say_findings,
    title,
)
from rkcnn.report.tables.cells import RowText, write_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Origin(NamedTuple):
    """A number of runs that were made by the same code on the same kind of machine.

    `commit` and `source` list each stretch of epochs, where a run was continued by another version of the code.
    """

    rkcnn: str
    commit: str
    source: str
    torch: str
    python: str
    machine: str
    engine: str
    runs: int = 1


def find_origins(results: Iterable[Result]) -> list[Origin]:
    """Return each origin once, the one of the most runs first; a run that stands in several tables counts once."""
    runs: dict[Run, Result] = {}
    for result in results:
        runs.setdefault(result.run, result)
    found = Counter(map(_origin, runs.values()))
    return [origin._replace(runs=number) for origin, number in found.most_common()]


def _origin(result: Result) -> Origin:
    versions = result.versions
    commits, sources = _list_code(result)
    return Origin(
        versions.get("rkcnn", "unknown"),
        commits,
        sources,
        versions.get("torch", "unknown"),
        versions.get("python", "unknown"),
        describe_machine(result),
        result.engine,
    )


def _list_code(result: Result) -> tuple[str, str]:
    """Return the commits and source hashes that computed a run, with their numbers of epochs if there are several."""
    if len(result.stretches) == 1:
        return _shorten(result.commit), result.source
    commits = [f"{_shorten(each.commit)} ({each.epochs} epochs)" for each in result.stretches]
    sources = [f"{each.source} ({each.epochs} epochs)" for each in result.stretches]
    return ", then ".join(commits), ", then ".join(sources)


def _shorten(commit: str | None) -> str:
    """Return the first 12 digits of a commit, and the + of changed files."""
    return commit.rstrip("+")[:12] + "+" * commit.endswith("+") if commit else "unknown"


@dataclass(frozen=True)
class TableReport:
    """What is found out about one table. Everything is computed when it is first asked for, and kept."""

    results: ResultTable
    pairs: tuple[Comparison, ...]  # every row against its reference, also rows of a single run
    _drawn: dict[str, Figure | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name that begins its files."""
        return self.results.name

    @cached_property
    def title(self) -> str:
        """What the table is, and how much of it has run."""
        return title(self.results)

    @cached_property
    def preset_warning(self) -> str:
        """The warning that belongs to every number of a fast or smoke table, else empty."""
        return preset_warning(self.results)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The pairs with two runs or more on both sides."""
        return tuple(pair for pair in self.pairs if pair.tested)

    @cached_property
    def shown(self) -> tuple[Comparison, ...]:
        """The comparisons that are listed: of runs that a user named also those of single runs, without an interval."""
        return self.pairs if self.results.of_any_runs else self.comparisons

    @cached_property
    def checks(self) -> tuple[tuple[CostCheck, CostCheck], ...]:
        """Parameters and FLOPs of each row beside the paper's."""
        return tuple(check_costs(self.results, row) for row in self.results.rows)

    @cached_property
    def texts(self) -> tuple[RowText, ...]:
        """Each row as the texts of its cells."""
        return tuple(
            write_row(self.results, row, checks) for row, checks in zip(self.results.rows, self.checks, strict=True)
        )

    @cached_property
    def coverage(self) -> str:
        """How much was run and what it shows, in one line."""
        return say_coverage(self.results, self.comparisons)

    @cached_property
    def findings(self) -> tuple[Statement, ...]:
        """What the runs show."""
        return tuple(say_findings(self.results, self.comparisons))

    @cached_property
    def limits(self) -> tuple[str, ...]:
        """What the runs can't show."""
        return tuple(list_limits(self.results, self.comparisons))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The footnotes of the table."""
        return tuple(list_footnotes(self.results, self.checks, self.comparisons))

    @cached_property
    def introduction(self) -> tuple[str, ...]:
        """How the comparisons were made, or why there are none."""
        return tuple(introduce_comparisons(self.results, self.comparisons))

    @cached_property
    def conclusions(self) -> tuple[str, ...]:
        """One sentence for each of the comparisons that are shown."""
        return tuple(describe_comparison(comparison, self.results.decimals) for comparison in self.shown)

    def figure(self, stem: str) -> Figure | None:
        """Return one figure by the stem of its file, drawn once; None where there is too little to draw."""
        if stem not in self._drawn:
            self._drawn[stem] = FIGURES[stem](self.results, self.pairs)
        return self._drawn[stem]

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by the stems of their files; those with too little to draw are left out."""
        return {stem: figure for stem in FIGURES if (figure := self.figure(stem)) is not None}


@dataclass(frozen=True)
class Report:
    """What is found out about several tables, and about the paper's claims from all records of each way of training."""

    tables: tuple[TableReport, ...]
    claims: Mapping[str, tuple[JudgedClaim, ...]]  # by `ResultTable.way`
    records: Records = ()  # of these tables and of others

    @cached_property
    def origins(self) -> tuple[Origin, ...]:
        """Which code and machines made the runs; a run that stands in several tables counts once."""
        rows = [row for part in self.tables for row in part.results.rows]
        return tuple(find_origins(result for row in rows for result in (*row.results, *row.diverged)))

    @property
    def runs(self) -> int:
        """How many different runs the tables show."""
        return sum(origin.runs for origin in self.origins)

    def other_tables(self, way: str) -> list[str]:
        """Return the tables that are not in this report and have runs from which its claims are judged."""
        shown = {part.name for part in self.tables if part.results.way == way}
        judged = (finding.pair.table for claim in self.claims.get(way, ()) for finding in claim.findings)
        return [table for table in dict.fromkeys(judged) if table not in shown]

    def claims_of(self, part: TableReport) -> list[JudgedClaim]:
        """Return the claims that are judged from this table's records."""
        return [judged for judged in self.claims.get(part.results.way, ()) if speaks_of(judged, part.name)]


def build_report(tables: Sequence[ResultTable], records: Records = ()) -> Report:
    """Compare the rows of each table, and judge the paper's claims from `records`, which may hold more than the tables.

    The tables may be the paper's (`build_result_table`) or hold rows of any other runs. Without `records` no claim is
    judged.
    """
    ways = {results.way: results for results in tables if results.preset}
    return Report(
        tuple(TableReport(results, tuple(compare(results))) for results in tables),
        {way: tuple(_judge(records, results)) for way, results in ways.items()} if records else {},
        records,
    )


def _judge(records: Records, results: ResultTable) -> list[JudgedClaim]:
    assert results.preset is not None
    return judge_claims(records, results.preset, results.other_precision or None)
