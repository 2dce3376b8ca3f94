"""What a table shows and what it can't, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from rkcnn.data.sets import SETS
from rkcnn.record.table import Table
from rkcnn.report.compare import LEVEL, Contrast, reference_of
from rkcnn.report.cost_check import check_costs
from rkcnn.report.entry import decimals, percent, printed_mean, signed
from rkcnn.report.proportion import sampling_error
from rkcnn.report.view import Row, View
from rkcnn.train.recipe import recipe_of


def mark(view: View) -> str:
    """What any number of a view must be read with; empty for the paper's recipe."""
    recipe = recipe_of(view.table.recipe_at(view.pace))
    if view.pace == "smoke":
        return f"SMOKE: {recipe.most_steps} steps on {view.table.data_at('smoke')}; says nothing about accuracy"
    if view.pace == "fast":
        paper = recipe_of(view.table.recipe_at("paper"))
        return f"FAST: {recipe.epochs} epochs by {recipe.name}, the paper has {paper.epochs}; not the paper's recipe"
    return ""


def tag(view: View) -> str:
    """SMOKE or FAST, for each line of a table; empty for the paper's recipe."""
    return "" if view.pace == "paper" else view.pace.upper()


def title(view: View) -> str:
    runs = sum(len(row.results) + len(row.diverged) for row in view.rows)
    total = runs + sum(row.missing for row in view.rows)
    return f"{view.table.name}: {view.table.about}; {view.table.recipe_at(view.pace)}, {runs} of {total} runs"


def conclude(contrast: Contrast, digits: int) -> str:
    """One comparison: the difference with its interval, whether it separates, and the tests beside it."""
    row, other = contrast.row, contrast.reference
    found = contrast.difference
    points = f"{signed(found.value, digits)} points"
    who = f"{row.label} minus {other.label}"
    if found.interval is None or contrast.p is None:
        return f"{who}: {points}, no interval ({found.missing})"
    low, high = (signed(bound, digits) for bound in found.interval)
    tests = [
        f"{100 * LEVEL:.0f} % interval {low} to {high}",
        f"corrected p {contrast.p:.2g}",
        f"permutation p {contrast.permutation.p:.2g}, the smallest possible {contrast.permutation.smallest:.1g}",
    ]
    if contrast.mcnemar:
        only_a, only_b, p = contrast.mcnemar
        tests.append(f"McNemar of seed 0: {only_a} images wrong here alone, {only_b} there alone, p {p:.2g}")
    if contrast.separable:
        verdict = f"errs {'more' if found.value > 0 else 'less'}"
    else:
        verdict = f"not separable with {_runs(row, other)} seeds"
    return f"{who}: {verdict}: {points} ({'; '.join(tests)})"


def _runs(row: Row, other: Row) -> str:
    n, m = len(row.results), len(other.results)
    return str(n) if n == m else f"{n} and {m}"


def note_comparisons(view: View, contrasts: Sequence[Contrast]) -> Iterator[str]:
    """What the comparisons are, before they are listed; or why there are none."""
    names = {reference_of(view.table, row.spec) for row in view.rows}
    labels = [row.label for row in view.rows if row.spec in names]
    if not contrasts:
        yield f"No comparison: {' and '.join(labels)} and another row need two finished runs each."
        return
    chosen = "chosen since the paper has it best, not by our errors" if view.rows[0].printed else "where the table starts"
    yield (
        f"Each row of two runs or more against {' and '.join(labels)} ({chosen}): last epoch, Welch's interval, each "
        f"{100 * LEVEL:.0f} % by itself; p is Welch's, corrected for {len(contrasts)} comparisons (Holm), and decides."
    )
    smallest = min(contrast.permutation.smallest for contrast in contrasts)
    yield (
        f"The permutation test is exact and uncorrected: its smallest possible p here, {smallest:.1g}, would be "
        f"{min(1.0, smallest * len(contrasts)):.2g} when corrected."
    )


def footnotes(view: View) -> Iterator[str]:
    """How to read the table: how theirs was counted, where it came from, how far a test set can be trusted."""
    if any(row.printed for row in view.rows):
        yield (
            "theirs: lowest(mean±std) over the paper's runs, each at its best epoch on the test set; compare it with "
            "ours of the best epoch. Ours of the last epoch is the fairer number: nothing was chosen by the test set."
        )
    quoted = [row for row in view.rows if row.printed and row.printed.quoted]
    if quoted:
        sources = ", ".join(dict.fromkeys(row.printed.quoted for row in quoted if row.printed and row.printed.quoted))
        yield (
            f"* quoted by the paper from {sources}: trained by their own recipes. Ours beside them is trained by this "
            f"table's ({view.table.recipe_at(view.pace)}), so a difference may be the recipe's."
        )
    for row in view.rows:
        if row.printed and row.printed.note:
            yield f"{row.label}, theirs {row.printed.printed}: {row.printed.note}."
    yield from _note_costs(view)
    yield from _note_sampling(view)
    if view.table.data == "mnist" and view.table.name != "norms" and view.pace != "smoke":
        yield (
            "The blocks of RKCNN, DenseNet and CliqueNet have batch norm here, the others group norm (docs/spec.md, 3.5): "
            "a difference between the two groups may be the norm's. The table `norms` separates them."
        )
    for row in view.rows:
        if row.diverged:
            seeds = ", ".join(str(result.run["seed"]) for result in row.diverged)
            yield f"{row.label} diverged with seed {seeds}: {row.diverged[0].status.removeprefix('diverged: ')}."


def _note_costs(view: View) -> Iterator[str]:
    for row in view.rows:
        for check in check_costs(view, row):
            if check.state == "slip":
                yield f"{row.label}, {check.column}: {check.why}."
            elif check.state == "differs":
                yield f"{row.label}, {check.column}: the paper has {check.printed}, the records {check.counted:,}."


def _note_sampling(view: View) -> Iterator[str]:
    """The test set is a sample itself, which more seeds don't mend."""
    means = [row.last.mean for row in view.rows if row.last]
    if not means or view.pace == "smoke":
        return
    images = SETS[view.table.data_at(view.pace)].test.images
    error = fmean(means)
    spread = sampling_error(error, images)
    yield (
        f"The test set is a sample too: an error of {percent(error, 2)} % of {images:,} images is known to "
        f"±{percent(spread.se, 2)} points (one standard error; 95 %: ±{percent(spread.half, 2)}), however many seeds."
    )


def describe_rows(rows: Sequence[Row]) -> str:
    return ", ".join(row.label for row in rows)


def place_of(table: Table) -> str:
    return {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}[table.data]


def agree_with_paper(view: View) -> str:
    """How far our best-epoch means lie from the paper's."""
    pairs = [(row, row.best.mean - theirs) for row in view.rows if row.best and (theirs := printed_mean(row))]
    if not pairs:
        return ""
    digits = decimals(view)
    low, high = (f(gap for _, gap in pairs) for f in (min, max))
    within = sum(
        row.printed is not None and row.printed.std is not None and abs(gap) <= row.printed.std for row, gap in pairs
    )
    return (
        f"Counted as the paper counts (best epoch), our means lie {signed(low, digits)} to {signed(high, digits)} points "
        f"from the paper's over {len(pairs)} networks, {within} of them within the paper's own ± std."
    )
