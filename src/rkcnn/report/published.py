"""The published results: which runs the README and docs/ show of each data set, and the README's part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rkcnn.escape import escape_markdown
from rkcnn.record.tables import TABLES, Table
from rkcnn.report.figures.overview import Panel, can_be_drawn, draw_overview
from rkcnn.report.footnotes import note_images, note_norms, note_records, say_shared_norms
from rkcnn.report.report import Report, TableReport, build_report
from rkcnn.report.results import Records, ResultTable, build_result_table, find_precisions
from rkcnn.report.row import CORRECTED, Row
from rkcnn.report.sentences import count, count_outcomes, find_agreement, join, percent, signed
from rkcnn.report.tables.cells import write_sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rkcnn.record.memory import Memory

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}
"""The tables that are published, by the names of their data sets."""
PAGE = Path("docs/results.md")  # from where the README lies
PICTURE = Path("docs/results.svg")
FOREST = "forest"
NO_RUNS = "No data set of the paper has runs of two networks or more yet."
DASH = "A dash: not run yet or, in a column of the paper's, no such number there."
WITH_EACH = (
    "In parentheses, and as circles in the picture: the mean of what the same weights err in float32 if each "
    "evaluation of f has running statistics of its own, taken anew after the training "
    "([docs/batch-norm.md](docs/batch-norm.md))."
)
FEWEST = 2  # networks with results of a table that is shown

SHOWN: dict[str, tuple[str, str]] = {
    "ResNet (bottleneck)": ("ResNet-bottleneck@k=32", "ResNet-bottleneck@k=120_120_120"),
    "ResNet": ("ResNet@k=32", "ResNet@k=120_120_120"),
    "RKNN": ("RKNN-rk4_38@k=32", "RKNN-rk4_38@k=120_120_120"),
    "RK-Net (explicit)": ("RKNet-rk4_38@k=32", "RKNet-rk4_38@k=120_120_120"),
    "RK-Net (implicit)": ("RKNet-radau3@k=32", "RKNet-radau3@k=120_120_120"),
    "ODE-Net (explicit)": ("ODENet-ab@k=32", "ODENet-ab@k=120_120_120"),
    "ODE-Net (implicit)": ("ODENet-abm@k=32", "ODENet-abm@k=120_120_120"),
    "DenseNet": ("DenseNet-2@k=32", "DenseNet-2_2_2@k=120"),
    "CliqueNet": ("CliqueNet-2@k=32", "CliqueNet-2_2_2@k=120"),
    "RKCNN-E": ("RKCNN-E-2@k=32", "RKCNN-E-2_2_2@k=120"),
    "RKCNN-I": ("RKCNN-I-2@k=32", "RKCNN-I-2_2_2@k=120"),
    "RKCNN-R": ("RKCNN-R-2@k=32", "RKCNN-R-2_2_2@k=120"),
    "Identity": ("Identity@k=32", "Identity@k=120_120_120"),
}
"""The README's rows: a name, and the network on MNIST and on the sets of colour images."""


def report_published(records: Records, memories: Sequence[Memory] = ()) -> Report:
    """Build the report that the README and docs/ show.

    Of each data set it has the recipe with the most networks, the paper's own if that has as many; then what else was
    trained by the paper's recipe, or has networks that those before lack. Each has at least FEWEST networks, and no two
    are mixed.
    """
    return build_report([each for name in TITLES for each in _choose(TABLES[name], records, memories)], records)


def _choose(table: Table, records: Records, memories: Sequence[Memory]) -> list[ResultTable]:
    ways = [
        (preset, precision) for preset in ("paper", "fast") for precision in find_precisions(table, records, preset)
    ]
    built = [build_result_table(table, records, preset, memories, precision) for preset, precision in ways]
    networks = [{row.network for row in each.rows if row.results or row.diverged} for each in built]
    chosen: list[ResultTable] = []
    shown: set[str] = set()
    for each, found in sorted(zip(built, networks, strict=True), key=lambda pair: -len(pair[1])):
        if len(found) >= FEWEST and (not chosen or each.preset == "paper" or found - shown):
            chosen.append(each)
            shown |= found
    return chosen


def choose_headlines(report: Report) -> dict[str, TableReport]:
    """Return the table of each data set that the README shows, by the set's title."""
    first: dict[str, TableReport] = {}
    for part in report.tables:
        first.setdefault(TITLES[part.name], part)
    return first


def name_table(part: TableReport) -> str:
    """Return the name of a published table's data set and recipe, as in CIFAR-10, fast-cifar."""
    precision = f" in {part.results.other_precision}" * bool(part.results.other_precision)
    return f"{TITLES[part.name]}, {part.results.recipe.name}{precision}"


def name_recipe(results: ResultTable) -> str:
    """Return the recipe by which a table was trained: the paper's recipe, `fast-cifar`."""
    name = "the paper's recipe" if results.preset == "paper" else f"`{results.recipe.name}`"
    return f"{name} in {results.other_precision}" if results.other_precision else name


def say_recipe(results: ResultTable) -> str:
    """Say by which recipe a table was trained, for how long and in which precision, and what the paper has."""
    recipe = results.recipe
    length = f"{recipe.epochs} epochs in {recipe.precision}"
    if results.preset != "paper" and results.table:
        length += f"; the paper has {results.table.recipe_at('paper').epochs}"
    return f"{name_recipe(results)} ({length})"


def has_step(row: Row) -> bool:
    """Whether a network has any step: it is not Identity, the control."""
    return row.family != "Identity"


def picture_of(part: TableReport) -> Path:
    """Return where the forest plot of a table lies, from where the README lies."""
    return PICTURE.with_stem(f"{PICTURE.stem}-{part.name}-{part.results.way.replace(' in ', '-')}")


def draw_pictures(report: Report) -> dict[Path, Figure]:
    """Return every picture of the published results, by its path from where the README lies."""
    forests = {picture_of(part): part.figure(FOREST) for part in report.tables}
    overview = draw_overview(_make_panels(choose_headlines(report)))
    return {path: figure for path, figure in {PICTURE: overview, **forests}.items() if figure is not None}


def write_readme_part(report: Report) -> str:
    """Return the README's results: a table and a picture over all data sets, what they show, and links to the rest."""
    headlines = choose_headlines(report)
    if not headlines:
        return NO_RUNS
    bullets = [*_say_agreements(headlines), *_say_outcomes(headlines), *_say_limits(headlines)]
    lines = [introduce(headlines), _write_table(headlines), DASH, *_list_notes(headlines)]
    rows = (_find(part, specs) for part in headlines.values() for specs in SHOWN.values())
    if any(row and row.errors_with_a_set_each for row in rows):
        lines.append(WITH_EACH)
    if can_be_drawn(_make_panels(headlines)):
        lines.append(f"![The errors of every run, by network and data set]({PICTURE.as_posix()})")
    lines.append("\n".join(f"- {line}" for line in bullets))
    page = f"[{PAGE.as_posix()}]({PAGE.as_posix()})"
    lines.append(f"All networks, comparisons and the paper's claims with our verdicts are in {page}.")
    return "\n\n".join(lines)


def introduce(headlines: dict[str, TableReport]) -> str:
    """Say what the errors are, and how each data set was trained."""
    ended = [result for part in headlines.values() for row in part.results.rows for result in row.results]
    machines = sorted({escape_markdown(result.machine.get("gpu") or "CPUs") for result in ended})
    runs = sum(part.results.runs for part in headlines.values())
    trained = "; ".join(
        f"{title} by {say_recipe(part.results)}, {_count_seeds(part.results)}, {_count_networks(part.results)}"
        for title, part in headlines.items()
    )
    missing = [title for title in TITLES.values() if title not in headlines]
    absent = f" No table of {join(missing)} is run yet." if missing else ""
    best = ""
    if any(part.results.way == "paper" for part in headlines.values()):
        best = (
            " Best epochs: the mean over runs of each run's lowest test error, as the paper seems to count; that epoch "
            "is chosen on the test set, so this error is lower."
        )
    return (
        "Test errors in percent. Last epoch: mean ± standard deviation over seeds; nothing in it was chosen on the "
        f"test set.{best} {count(runs, 'run')} on {', '.join(machines)}: {trained}.{absent}"
    )


def _count_seeds(results: ResultTable) -> str:
    """Write 5 seeds, or 1 to 5 seeds."""
    counts = [len(row.results) + len(row.diverged) for row in results.rows if row.results or row.diverged]
    low, high = min(counts), max(counts)
    return count(high, "seed") if low == high else f"{low} to {high} seeds"


def _count_networks(results: ResultTable) -> str:
    """Write 16 of the paper's 18 networks so far; Identity, which is not the paper's, doesn't count."""
    rows = [row for row in results.rows if has_step(row)]
    ended = sum(bool(row.results or row.diverged) for row in rows)
    return f"{ended} of the paper's {len(rows)} networks{' so far' * (ended < len(rows))}"


def _make_panels(headlines: dict[str, TableReport]) -> list[Panel]:
    return [
        Panel(title, part.results, tuple((name, _find(part, specs)) for name, specs in SHOWN.items()))
        for title, part in headlines.items()
    ]


def _find(part: TableReport, specs: tuple[str, str]) -> Row | None:
    """Return the row of one of these networks, if it has runs that ended."""
    rows = (row for row in part.results.rows if row.network in specs)
    return next((row for row in rows if row.results or row.diverged), None)


def _write_table(headlines: dict[str, TableReport]) -> str:
    """Return the README's table: a row for each kind of network, and a column or two for each data set."""
    costs = {title: headlines[title] for title in ("MNIST", "CIFAR-10") if title in headlines}
    heads = ["network", *(f"parameters, {title}" for title in costs)]
    for title, part in headlines.items():
        heads.append(f"{title}, last epoch")
        if part.results.way == "paper":
            heads += [f"{title}, best epochs, ours", f"{title}, best epochs, the paper's"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'|'.join('--:' for _ in heads[1:])}|"]
    for name, specs in SHOWN.items():
        found = {title: (part, _find(part, specs)) for title, part in headlines.items()}
        if not any(row for _, row in found.values()):
            continue
        params = [found[title][1] for title in costs]
        cells = [name, *(f"{row.params:,}" if row and row.params else "-" for row in params)]
        for part, row in found.values():
            cells += _write_errors(part.results, row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _write_errors(results: ResultTable, row: Row | None) -> Iterator[str]:
    """Yield the cells of one data set: the last epoch and, where the paper's recipe was used, best epochs."""
    digits, seeds = results.decimals, results.table.seeds if results.table else 0
    if row is None or row.last is None:
        yield "-" if row is None else "diverged"
    else:
        lost = f", {len(row.diverged)} diverged" if row.diverged else ""
        number = f" (n = {row.last.n}{lost})" if row.last.n != seeds or lost else ""
        measured = row.errors_with_a_set_each
        other = f" ({percent(fmean(measured), digits)} with statistics for each evaluation)" if measured else ""
        yield write_sample(row.last, digits).replace("±", " ± ") + number + other
    if results.way == "paper":
        yield percent(row.best.mean, digits) if row and row.best and row.all_finished else "-"
        yield percent(row.printed_mean, digits) if row and row.printed_mean is not None else "-"


def _list_notes(headlines: dict[str, TableReport]) -> list[str]:
    """Return what the tables note about their images, and their records about their errors."""
    tables = [part.results for part in headlines.values()]
    notes = (note for results in tables for note in (*note_images(results), *note_records(results)))
    return [escape_markdown(note) for note in notes if CORRECTED not in note]


def _say_agreements(headlines: dict[str, TableReport]) -> Iterator[str]:
    """Yield how far the errors of each data set are from the paper's, where its recipe was used."""
    for title, part in headlines.items():
        agreement, digits = find_agreement(part.results), part.results.decimals
        if agreement:
            low, high, left, right = (signed(value, digits) for value in (*agreement.differences, *agreement.intervals))
            apart = ", ".join(row.label for row, _ in agreement.apart) or "none of them"
            yield (
                f"{title}, against the paper: at best epochs our means are {low} to {high} points from the paper's "
                f"over {count(agreement.tested, 'network')}, with 95 % intervals within {left} to {right}; Welch's "
                f"test with Holm's correction separates {apart}."
            )


def _say_outcomes(headlines: dict[str, TableReport]) -> Iterator[str]:
    """Yield which networks of each data set err more or less than its reference."""
    for title, part in headlines.items():
        if not part.comparisons:
            yield f"{title}: {part.coverage}"
            continue
        more, less, level = count_outcomes(part.comparisons)
        outcomes = (
            _say_outcome(part, more, "err more", True),
            _say_outcome(part, less, "err less", False),
            f"{level} can't be told from it with so few seeds" * bool(level),
        )
        reference = name_row(part.comparisons[0].reference)
        among = f"of {count(len(part.comparisons), 'network')}, narrower ones included, compared with {reference}"
        absent = [name_row(row) for row in part.results.rows if not row.results and not row.diverged]
        waiting = f" Not run yet: {', '.join(absent)}." if absent else ""
        single = [name_row(row) for row in part.results.rows if len(row.results) == 1]
        alone = f" Not compared, since there is one run: {', '.join(single)}." if single else ""
        yield f"{title}: {among}, {'; '.join(filter(None, outcomes))}.{alone}{waiting}"


def _say_outcome(part: TableReport, number: int, outcome: str, worse: bool) -> str:
    """Write `2 err more (ResNet, RKNN)`, or `none errs more`."""
    if not number:
        return f"none {outcome.replace('err', 'errs')}"
    apart = [each for each in part.comparisons if each.separable and (each.difference.value > 0) == worse]
    named = [name_row(each.row) for each in apart]
    counted = "all" if number == len(part.comparisons) > 1 else str(number)
    return f"{counted} {outcome if number > 1 else outcome.replace('err', 'errs')} ({', '.join(named)})"


def name_row(row: Row) -> str:
    """Return the README's name of a network, or the table's for one that is not shown there."""
    return next((name for name, specs in SHOWN.items() if row.network in specs), row.label)


def _say_limits(headlines: dict[str, TableReport]) -> Iterator[str]:
    """Yield how much of a difference the draw of the test images may make, and what else differs between networks."""
    errors = {
        title: [each.sampling.se for each in part.comparisons if each.sampling and has_step(each.row)]
        for title, part in headlines.items()
    }
    known = [f"±{percent(max(found), 2)} points on {title}" for title, found in errors.items() if found]
    if known:
        yield (
            "The test images are a sample too: their draw gives the difference between one run of that RKCNN and one "
            f"of another network (Identity aside) a standard error of up to {join(known)}; a difference of means has "
            "less."
        )
    for title, part in headlines.items():
        shared = say_shared_norms(part.results)
        if shared:
            page = "[docs/batch-norm.md](docs/batch-norm.md)"
            yield f"{title}: {escape_markdown(shared)}; {page} measures what that can cost."
    norms = [title for title, part in headlines.items() if any(note_norms(part.results))]
    mixed = f"; on {join(norms)} RKCNN, DenseNet and CliqueNet have batch norm and the rest group norm" if norms else ""
    yield (
        f"At the same width RKCNN-I and -R have more parameters than the others{mixed}. "
        "[docs/comparisons.md](docs/comparisons.md) compares networks of similar size, and with the same norm."
    )
