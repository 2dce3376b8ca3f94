"""Which runs belong to which row: the records of a folder arranged as a table of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.fit.recipe import CHOICES, Recipe
from rkcnn.record.errors_by_statistics import find_errors_by_statistics
from rkcnn.record.memory import Memory
from rkcnn.record.result import Result, find_results
from rkcnn.record.run import Run
from rkcnn.record.tables import PRESETS, PaperTable, Table
from rkcnn.report.other_recipes import count_others
from rkcnn.report.paper import family_of, label_of, printed_error, reference_of
from rkcnn.report.row import Row
from rkcnn.report.same_images import keep_published_images

Records = Sequence[tuple[Path, Result]]
"""Results, each with the folder that it was read from."""


@dataclass(frozen=True)
class ResultTable:
    """Networks trained on the same data by the same recipe, and which row each is compared with.

    `build_result_table` makes one from a table of `rkcnn reproduce`. Rows of any other runs on the same data by the
    same recipe make one too, without `table` and `preset`.
    """

    name: str  # begins the names of its files
    about: str
    data: str
    recipe: Recipe
    rows: tuple[Row, ...]  # in the table's order, also those without any result
    references: Mapping[str, str]  # of a row, the row that it is compared with; both by `network`
    images: int | None = None  # held-out images that the errors were counted on
    table: Table | None = None
    preset: str | None = None  # of `table`: paper, fast or smoke
    control: Memory | None = None  # of Identity on this table's data, also where it is no row
    others: Mapping[str, int] = field(default_factory=dict)  # results of these networks by other recipes

    @property
    def empty(self) -> bool:
        """Whether no run of any row has ended."""
        return not self.ended

    @property
    def paper(self) -> PaperTable | None:
        """The table of the paper that has these rows."""
        return self.table.paper if self.table else None

    @property
    def of_any_runs(self) -> bool:
        """Whether these are runs that a user named, and not those of a table of `rkcnn reproduce`."""
        return self.table is None

    @property
    def unverified(self) -> bool:
        """Whether the data set is a published one, and a run's images were not verified to be those."""
        return self.data in SETS and not all(result.data.get("verified") for result in self.ended)

    @property
    def other_precision(self) -> str:
        """The precision of all runs of the table if it is not that of the preset's recipe, else empty."""
        own = self.table.recipe_at(self.preset).precision if self.table and self.preset else self.recipe.precision
        return "" if self.recipe.precision == own else self.recipe.precision

    @property
    def way(self) -> str:
        """The preset, with the precision where that is not the preset's: paper, fast, paper in bf16."""
        return " in ".join(filter(None, (self.preset or "", self.other_precision)))

    @property
    def tag(self) -> str:
        """FAST, SMOKE or BF16, to mark every line of a table that was not trained by the paper's recipe; else empty."""
        preset = self.preset if self.preset in ("fast", "smoke") else ""
        return " ".join(filter(None, (preset, self.other_precision))).upper()

    @property
    def decimals(self) -> int:
        """Of means and deviations in percent: three on MNIST, as the paper gives there, else two."""
        return 3 if self.data == "mnist" else 2

    @property
    def held_out(self) -> str:
        """What the errors were counted on: the `test` or the `validation` images."""
        return next((result.run.held_out for result in self.ended), "test")

    @property
    def ended(self) -> list[Result]:
        """The results of all rows, diverged runs included."""
        return [result for row in self.rows for result in (*row.results, *row.diverged)]

    @property
    def runs(self) -> int:
        """How many runs have ended, diverged ones included."""
        return len(self.ended)

    @property
    def trained_alone(self) -> bool:
        """Whether each run had its device to itself; runs side by side share one wall time, which tells nothing."""
        return all(row.side_by_side == 1 for row in self.rows if row.results)

    def compares_with_paper(self, row: Row) -> bool:
        """Whether a row's errors may be set against the paper's: trained by its recipe, and no run diverged."""
        return row.all_finished and self.way == "paper"


def read_records(folder: Path) -> tuple[Records, list[InputError]]:
    """Read every result below a folder; return them, and an error for each that can't be read or used.

    A run of a table on other images than the published ones can't be used (`keep_published_images`), nor can what was
    measured of a run if it doesn't fit its result (`find_errors_by_statistics`).
    """
    if not folder.is_dir():
        raise InputError(f"no folder {folder} here; train a table first (rkcnn reproduce) or name another folder")
    found, unreadable = [], []
    for path, result in find_results(folder):
        if isinstance(result, InputError):
            unreadable.append(result)
        else:
            found.append((path.parent, result))
    kept, left_out = keep_published_images(found)
    return kept, [*unreadable, *left_out, *find_errors_by_statistics(kept)[1]]


def find_conflicts(records: Records) -> Iterator[str]:
    """Yield a sentence for each run that has several records with different errors: the first one counts."""
    runs: dict[Run, list[tuple[Path, Result]]] = {}
    for folder, result in records:
        runs.setdefault(result.run, []).append((folder, result))
    for copies in runs.values():
        (first, taken), *rest = copies
        others = [str(folder) for folder, result in rest if _outcome(result) != _outcome(taken)]
        if others:
            word = "is a copy" if len(others) == 1 else "are copies"
            yield (
                f"{', '.join(others)} {word} of the run in {first} with a different result; the report uses {first}, "
                "so remove the wrong one"
            )


def build_result_table(
    table: Table,
    records: Records,
    preset: str | None = None,
    memories: Sequence[Memory] = (),
    precision: str | None = None,
) -> ResultTable:
    """Arrange the records that belong to a table; without a preset, those of the first preset that has any.

    All runs of the table have the same precision: the given one, or that of the preset's recipe.
    """
    measured = {memory.network: memory for memory in reversed(memories) if memory.data == table.data}
    for name in (preset,) if preset else PRESETS:
        found = _arrange(table, records, name, precision, measured)
        if not found.empty:
            return found
    return _arrange(table, (), preset or PRESETS[0], precision, measured)


def find_precisions(table: Table, records: Records, preset: str | None = None) -> list[str]:
    """Return the precisions in which there are results of a table, by that preset or by any."""
    presets = (preset,) if preset else PRESETS
    return [
        precision
        for precision in CHOICES["precision"]
        if any(not build_result_table(table, records, name, precision=precision).empty for name in presets)
    ]


def _arrange(
    table: Table, records: Records, preset: str, precision: str | None, memories: Mapping[str, Memory]
) -> ResultTable:
    recipe = table.recipe_at(preset, precision)
    wanted: dict[str, list[Run]] = {}
    for run in table.runs(preset, precision=precision):
        wanted.setdefault(run.network, []).append(run)
    found: dict[tuple[str, str], list[tuple[Path, Result]]] = {}
    for folder, result in records:
        found.setdefault((result.run.data, result.run.network), []).append((folder, result))
    data = table.data_at(preset)
    rows = tuple(
        replace(_row(table, runs, found.get((data, spec), ())), memory=memories.get(spec))
        for spec, runs in wanted.items()
    )
    return ResultTable(
        name=table.name,
        about=table.about,
        data=data,
        recipe=recipe,
        rows=rows,
        references={spec: reference_of(table, spec) for spec in wanted},
        images=SETS[data].test.images,
        table=table,
        preset=preset,
        control=memories.get(table.control),
        others=count_others(table, records, recipe, data),
    )


def _row(table: Table, runs: Sequence[Run], known: Records) -> Row:
    """Make a row of these runs and of whatever other seeds there are: more seeds are more evidence."""
    by_seed: dict[int, tuple[Path, Result]] = {}
    for folder, result in known:
        if replace(result.run, seed=runs[0].seed) == runs[0]:
            by_seed.setdefault(result.run.seed, (folder, result))  # a copy in another folder counts once
    found = [by_seed[seed] for seed in sorted(by_seed)]
    finished = [(folder, result) for folder, result in found if result.finished and result.error is not None]
    diverged = tuple(result for _, result in found if not result.finished)
    latest = found[-1][1] if found else None
    paper, spec = table.paper, runs[0].network
    return Row(
        network=spec,
        family=family_of(spec),
        label=label_of(paper.label, spec) if paper else spec,
        params=latest.params if latest else None,
        flops=latest.flops if latest else None,
        printed=printed_error(paper.label, spec, table.data) if paper else None,
        results=tuple(result for _, result in finished),
        diverged=diverged,
        missing=max(0, len(runs) - len(finished) - len(diverged)),
        paper_flops=latest.paper_flops if latest else None,
        folders=tuple(folder for folder, _ in finished),
        by_statistics=tuple(find_errors_by_statistics(finished)[0]),
    )


def _outcome(result: Result) -> tuple[str, float | None, float | None]:
    return result.status, result.error, result.error_best
