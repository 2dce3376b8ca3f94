"""What a table is and what its comparisons allow one to say, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rkcnn.fit.recipe import recipe_of
from rkcnn.report.compare import Contrast, reference_of
from rkcnn.report.entry import percent, signed
from rkcnn.report.statistics import LEVEL, separates
from rkcnn.report.view import Row, View


def mark(view: View) -> str:
    """What any number of a view must be read with; empty for the paper's recipe."""
    recipe = recipe_of(view.table.recipe_at(view.preset))
    if view.preset == "smoke":
        return f"SMOKE: {recipe.most_steps} steps on {view.table.data_at('smoke')}; says nothing about accuracy"
    if view.preset == "fast":
        paper = recipe_of(view.table.recipe_at("paper"))
        return f"FAST: {recipe.epochs} epochs by {recipe.name}, the paper has {paper.epochs}; not the paper's recipe"
    return ""


def tag(view: View) -> str:
    """SMOKE or FAST, for each line of a table; empty for the paper's recipe."""
    return "" if view.preset == "paper" else view.preset.upper()


def title(view: View) -> str:
    runs = sum(len(row.results) + len(row.diverged) for row in view.rows)
    total = runs + sum(row.missing for row in view.rows)
    return f"{view.table.name}: {view.table.about}; {view.table.recipe_at(view.preset)}, {runs} of {total} runs"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def conclude(contrast: Contrast, digits: int) -> str:
    """One comparison: whether it separates, the difference with its interval, and the tests beside it."""
    row, other, found = contrast.row, contrast.reference, contrast.difference
    both = f"{row.label} and {other.label}"
    shuffled = _say_permutation(contrast)
    difference = f"the difference is {signed(found.value, digits)} points"
    if found.interval is None or contrast.p is None:
        return f"{both}: {difference}, without an interval ({'; '.join(filter(None, (found.missing, shuffled)))})."
    low, high = found.interval
    tests = [
        f"{100 * LEVEL:.0f} % interval {signed(low, digits)} to {signed(high, digits)}",
        f"corrected p {contrast.p:.2g}",
    ]
    if shuffled:
        tests.append(shuffled)
    if contrast.mcnemar:
        only_a, only_b, p = contrast.mcnemar
        alone = f"{only_a} images wrong in the first alone, {only_b} in the second"
        tests.append(f"McNemar, seed 0 of each: {alone}, uncorrected p {p:.2g}")
    details = "; ".join(tests)
    if contrast.separable:
        which = "more" if found.value > 0 else "less"
        return f"{row.label} errs {which} than {other.label} by {percent(abs(found.value), digits)} points ({details})."
    once = "" if low < 0 < high else " once corrected"
    return f"{both} are not separable with {_seeds(row, other)}{once}: {difference} ({details})."


def note_comparisons(view: View, contrasts: Sequence[Contrast]) -> Iterator[str]:
    """What the comparisons are, before they are listed; or why there are none."""
    yield from note_diverged(view)
    names = {reference_of(view.table, row.spec) for row in view.rows}
    against = " and ".join(row.label for row in view.rows if row.spec in names)
    if view.preset == "smoke":
        yield "No comparison: smoke says nothing about accuracy, with however many seeds."
        return
    if not contrasts:
        yield f"No comparison: {against} and another row need two finished runs each, none diverged."
        return
    printed = any(row.printed for row in view.rows)
    chosen = "the paper's best, so that our errors don't choose it" if printed else "where the table starts"
    yield (
        f"Each row of two runs or more against {against} ({chosen}): last epoch, Welch's interval, each "
        f"{100 * LEVEL:.0f} % by itself; p is Welch's, corrected for {count_tested(contrasts)} (Holm); "
        "below 0.05 it separates."
    )
    smallest = min((each.permutation.smallest for each in contrasts if each.permutation), default=0.0)
    corrected = min(1.0, smallest * contrasts[0].among)
    if not separates(corrected):
        yield (
            f"The permutation test is exact and stands uncorrected: the smallest p that so few seeds allow, "
            f"{smallest:.2g}, would be {corrected:.2g} when corrected, so it can't decide alone."
        )
    if not any(contrast.mcnemar for contrast in contrasts):
        yield (
            f"No McNemar test: it needs predictions.npy beside the results of seed 0, and the labels of "
            f"{view.table.data_at(view.preset)} on this machine (rkcnn data get)."
        )


def count_tested(contrasts: Sequence[Contrast]) -> str:
    """How many p were corrected together: a difference without an interval has none."""
    return count(contrasts[0].among, "comparison")


def note_diverged(view: View) -> Iterator[str]:
    """Which rows are left out of every comparison, though they have errors."""
    for row in view.rows:
        if row.results and row.diverged:
            runs = len(row.results) + len(row.diverged)
            yield (
                f"{len(row.diverged)} of {runs} runs of {row.label} diverged: what is left is chosen, so it is not "
                "compared."
            )


def _say_permutation(contrast: Contrast) -> str:
    if contrast.permutation is None:
        return ""
    p, smallest, _ = contrast.permutation
    sides = f"{len(contrast.row.results)} against {len(contrast.reference.results)}"
    return f"permutation p {p:.2g}, the smallest that {sides} allow {smallest:.2g}"


def _seeds(row: Row, other: Row) -> str:
    n, m = len(row.results), len(other.results)
    return f"{n} seeds" if n == m else f"{n} and {m} seeds"
