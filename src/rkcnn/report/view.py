"""A table of runs beside the paper's: what is there, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from rkcnn.error import InputError
from rkcnn.model.families import title_of
from rkcnn.model.published.originals import ORIGINALS
from rkcnn.record.memory import Memory, find_memories
from rkcnn.record.result import Result, find_results
from rkcnn.record.run import Run
from rkcnn.record.tables import PRESETS, Table
from rkcnn.report.cells import cells
from rkcnn.report.errors import PrintedError, printed_error
from rkcnn.report.statistics import Sample

Found = Sequence[tuple[Path, Result]]


@dataclass(frozen=True)
class Row:
    """One network of a table, its cell in the paper and its runs."""

    spec: str
    family: str
    label: str  # what the paper calls it, or its name
    params: int | None  # as the records count them
    flops: int | None  # 2 x MAC an image
    printed: PrintedError | None
    results: tuple[Result, ...]  # finished, by seed
    diverged: tuple[Result, ...]
    missing: int  # results to come before there are as many as the table has seeds
    paper_flops: int | None = None  # by the paper's rule
    folders: tuple[Path, ...] = ()  # of `results`, where predictions may lie
    memory: Memory | None = None  # as measured, whatever the recipe

    @property
    def last(self) -> Sample | None:
        """Errors of the last epoch: the headline, since nothing was chosen by looking at the test set."""
        return _sample(result.error for result in self.results)

    @property
    def best(self) -> Sample | None:
        """Errors of each run's best epoch, as the paper counts."""
        return _sample(result.error_best for result in self.results)

    @property
    def whole(self) -> bool:
        """Has results and no run that diverged: the survivors of others are chosen, so nothing is concluded of them."""
        return bool(self.results) and not self.diverged

    @property
    def together(self) -> int | None:
        """The most runs that were trained side by side; None where a record doesn't say."""
        counts = [result.machine.get("together") for result in self.results]
        known = [number for number in counts if isinstance(number, int)]
        return max(known) if known and len(known) == len(counts) else None

    @property
    def seconds(self) -> float | None:
        """The mean training time."""
        return fmean(result.seconds for result in self.results) if self.results else None


@dataclass(frozen=True)
class View:
    """A table at one preset: rows in the table's order, also those without any result."""

    table: Table
    preset: str  # paper, fast or smoke: a view never mixes recipes
    rows: tuple[Row, ...]
    control: Memory | None = None  # of Identity on this table's data, also where it is no row
    others: Mapping[str, int] = field(default_factory=dict)  # results of these networks by other recipes

    @property
    def empty(self) -> bool:
        return not any(row.results or row.diverged for row in self.rows)


def view(table: Table, folder: Path, preset: str | None = None) -> View:
    """The table's runs below a folder; without a preset that of the first of paper, fast, smoke that has any."""
    return view_of(table, read_records(folder)[0], preset, read_memories(folder)[0])


def read_records(folder: Path) -> tuple[Found, list[InputError]]:
    """Every result below a folder, with the folder it lies in; and why others can't be read."""
    if not folder.is_dir():
        raise InputError(f"no folder {folder} here; train a table first (rkcnn reproduce) or name another with --from")
    found, unreadable = [], []
    for path, result in find_results(folder):
        if isinstance(result, InputError):
            unreadable.append(result)
        else:
            found.append((path.parent, result))
    return found, unreadable


def read_memories(folder: Path) -> tuple[list[Memory], list[InputError]]:
    """Every record of memory below a folder; and why others can't be read."""
    found = [record for _, record in find_memories(folder)]
    unreadable = [record for record in found if isinstance(record, InputError)]
    return [record for record in found if isinstance(record, Memory)], unreadable


def view_of(table: Table, records: Found, preset: str | None = None, memories: Sequence[Memory] = ()) -> View:
    """The same from records read already, for several tables of one folder."""
    taken = {memory.spec: memory for memory in reversed(memories) if memory.data == table.data}
    control = taken.get(table.control)
    for name in (preset,) if preset else PRESETS:
        seen = View(table, name, _rows(table, records, name, taken), control, _count_others(table, records, name))
        if not seen.empty:
            return seen
    return View(table, preset or PRESETS[0], _rows(table, (), preset or PRESETS[0], taken), control)


def family_of(spec: str) -> str:
    """RKCNN-I of RKCNN-I-2@k=32, RK-Net of RKNet-rk4_38@k=32, ResNet of ResNet-1001."""
    return title_of(ORIGINALS[spec].family if spec in ORIGINALS else spec)


def _rows(table: Table, records: Found, preset: str, memories: Mapping[str, Memory]) -> tuple[Row, ...]:
    wanted: dict[str, list[Run]] = {}
    for run in table.runs(preset):
        wanted.setdefault(run.spec, []).append(run)
    known: dict[tuple[str, str], list[tuple[Path, Result]]] = {}
    for folder, result in records:
        known.setdefault((result.run.data, result.run.spec), []).append((folder, result))
    return tuple(
        replace(_row(table, runs, known.get((runs[0].data, spec), ())), memory=memories.get(spec))
        for spec, runs in wanted.items()
    )


def _count_others(table: Table, records: Found, preset: str) -> dict[str, int]:
    """By recipe; one with the table's name has other fields."""
    run = table.runs(preset)[0]
    found = [result.run for _, result in records if result.run.data == run.data and result.run.spec in table.specs]
    names = (other.recipe.name for other in found if other.recipe != run.recipe)
    changed = f"{run.recipe.name} with fields overridden"
    return dict(Counter(changed if name == run.recipe.name else name for name in names))


def _row(table: Table, runs: Sequence[Run], known: Found) -> Row:
    """A row of these runs, with whatever other seeds there are of them: more seeds are more evidence."""
    by_seed: dict[int, tuple[Path, Result]] = {}
    for folder, result in known:
        if _is_of(result, runs[0]):
            by_seed.setdefault(result.run.seed, (folder, result))  # a copy in another folder counts once
    found = [by_seed[seed] for seed in sorted(by_seed)]
    finished = [(folder, result) for folder, result in found if result.finished and result.error is not None]
    diverged = tuple(result for _, result in found if not result.finished)
    latest = found[-1][1] if found else None
    paper, spec = table.paper, runs[0].spec
    return Row(
        spec=spec,
        family=family_of(spec),
        label=_label(paper.label, spec) if paper else spec,
        params=latest.params if latest else None,
        flops=latest.flops if latest else None,
        printed=printed_error(paper.label, spec, table.data) if paper else None,
        results=tuple(result for _, result in finished),
        diverged=diverged,
        missing=max(0, len(runs) - len(finished) - len(diverged)),
        paper_flops=latest.paper_flops if latest else None,
        folders=tuple(folder for folder, _ in finished),
    )


def _is_of(result: Result, run: Run) -> bool:
    """Whether a result is of exactly this run, but for its seed."""
    return replace(result.run, seed=run.seed) == run


def _label(place: str, spec: str) -> str:
    """The paper's name of a row, where several have it with the width; or the network's own."""
    labels = {cell.row: cell.label for cell in cells(place)}
    label, width = labels.get(spec, spec), spec.partition("@")[2]
    if list(labels.values()).count(label) < 2:
        return label
    return f"{label} {width}" if width else spec


def _sample(errors: Iterable[float | None]) -> Sample | None:
    values = [error for error in errors if error is not None]
    return Sample.of(values) if values else None
