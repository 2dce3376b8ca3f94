"""What the runs of a table show and what they can't, in sentences that text, Markdown and page all use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rkcnn.report.compare import Comparison
from rkcnn.report.paper import CHOICES_OF_REFERENCE, printed_sample
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.statistics import LEVEL, Difference, correct_by_holm, is_significant, welch_from_samples


class Statement(NamedTuple):
    """A sentence and what it lists: in each group a few words, and the networks that they hold for."""

    text: str
    groups: tuple[tuple[str, str], ...] = ()


class Agreement(NamedTuple):
    """How our best-epoch means differ from the paper's, over `tested` networks; all values are fractions."""

    tested: int
    differences: tuple[float, float]  # the lowest and the highest
    intervals: tuple[float, float]  # the ends that contain every network's 95 % interval
    apart: tuple[tuple[Row, Difference], ...]  # the networks that Welch's test tells apart after correction


def percent(value: float, digits: int) -> str:
    """Write a fraction in percent, without the sign."""
    return f"{100 * value:.{digits}f}"


def signed(value: float, digits: int) -> str:
    """Write a difference of fractions in percentage points, with + or -; never -0.000."""
    return f"{round(100 * value, digits) + 0.0:+.{digits}f}"


def count(number: int, noun: str) -> str:
    """Write 1 run, 2 runs."""
    return f"{number} {noun}{'s' * (number != 1)}"


def title(results: ResultTable) -> str:
    """Return what a table is and how much of it has run."""
    if results.of_any_runs:
        return f"{results.name}: {results.about}; {results.recipe.describe_precision()}, {count(results.runs, 'run')}"
    total = results.runs + sum(row.missing for row in results.rows)
    recipe = results.recipe.describe_precision()
    return f"{results.name}: {results.about}; {recipe}, {results.runs} of {total} runs"


def preset_warning(results: ResultTable) -> str:
    """Return the warning that belongs to every number of a table in another precision, or of a fast or smoke table.

    It is empty for the paper's recipe.
    """
    recipe, table, warnings = results.recipe, results.table, []
    if results.preset == "smoke":
        warnings.append(f"SMOKE: {recipe.max_steps_per_epoch} steps on {results.data}; says nothing about accuracy")
    elif results.preset == "fast" and table:
        epochs = f"{recipe.epochs} epochs by {recipe.name}, the paper has {table.recipe_at('paper').epochs}"
        warnings.append(f"FAST: {epochs}; not the paper's recipe")
    if results.other_precision and table and results.preset:
        own = table.recipe_at(results.preset).precision
        warnings.append(f"{recipe.precision.upper()}: computed in {recipe.precision}, where {recipe.name} has {own}")
    return ". ".join(warnings)


def say_paper_counts(results: ResultTable) -> str:
    """Say how we know that the paper counts each run at its best epoch."""
    if results.table and results.table.data in ("cifar10", "cifar100"):
        return "as its public training code does"
    return "an inference: the paper doesn't say, and its public training code, which does so, is for CIFAR only"


def describe_comparison(comparison: Comparison, digits: int) -> str:
    """State one comparison: whether the two are separable, the difference with its interval, and the other tests."""
    row, other, found = comparison.row, comparison.reference, comparison.difference
    both = f"{row.label} and {other.label}"
    permutation = _say_permutation(comparison)
    difference = f"the difference is {signed(found.value, digits)} points"
    if found.interval is None or comparison.p is None:
        why = filter(None, (found.missing, permutation, _say_mcnemar(comparison)))
        return f"{both}: {difference}, without an interval ({'; '.join(why)})."
    low, high = found.interval
    tests = [
        f"{100 * LEVEL:.0f} % interval {signed(low, digits)} to {signed(high, digits)}",
        f"corrected p {comparison.p:.2g}",
    ]
    if permutation:
        tests.append(permutation)
    if comparison.mcnemar:
        tests.append(_say_mcnemar(comparison))
    details = "; ".join(tests)
    if comparison.separable:
        which = "more" if found.value > 0 else "less"
        return f"{row.label} errs {which} than {other.label} by {percent(abs(found.value), digits)} points ({details})."
    corrected = "" if low < 0 < high else " after correction"
    return f"{both} are not separable with {_say_seeds(row, other)}{corrected}: {difference} ({details})."


def introduce_comparisons(results: ResultTable, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Say how the comparisons were made, before they are listed; or why there are none."""
    yield from note_diverged(results)
    if results.preset == "smoke":
        yield "No comparison: smoke says nothing about accuracy, however many seeds there are."
        return
    names = set(results.references.values())
    labels = [row.label for row in results.rows if row.network in names]
    against = join(labels) if labels else ""
    if not comparisons:
        need = f"{against} and another row need two finished runs each, none diverged"
        yield f"No test over seeds: {need}." if results.of_any_runs else f"No comparison: {need}."
        return
    if results.paper:
        chosen = "the RKCNN with the lowest error in the paper, so that our own errors don't choose it"
    else:
        chosen = CHOICES_OF_REFERENCE.get(results.name, "where the table starts") if results.table else "the reference"
    how = (
        f"Each Welch interval is {100 * LEVEL:.0f} % by itself; p is Welch's, corrected for "
        f"{count_tested(comparisons)} by Holm's method, and below 0.05 the two networks are separable."
    )
    yield (
        f"Each row of two runs or more is compared with {against} ({chosen}) by its last-epoch errors. "
        f"{how if any_tested(comparisons) else 'No row has any spread, so there is no test over seeds.'}"
    )
    smallest = min((each.permutation.smallest for each in comparisons if each.permutation), default=0.0)
    corrected = min(1.0, smallest * comparisons[0].among)
    if not is_significant(corrected):
        yield (
            f"The permutation test is exact and not corrected: the smallest p that so few seeds allow, "
            f"{smallest:.2g}, would be {corrected:.2g} after correction, so it can't decide by itself."
        )
    if not any(comparison.mcnemar for comparison in comparisons):
        if results.of_any_runs:
            yield (
                "There is no McNemar test: it needs predictions.npy in the folders of seed 0, and labels.npy beside it "
                "or, for a published data set, the set on this machine (rkcnn data get)."
            )
            return
        yield (
            f"There is no McNemar test: it needs predictions.npy beside the results of seed 0, and the labels of "
            f"{results.data} on this machine (rkcnn data get)."
        )


def count_tested(comparisons: Sequence[Comparison]) -> str:
    """Say how many p-values were corrected together; a difference without an interval has none."""
    return count(comparisons[0].among, "comparison")


def any_tested(comparisons: Sequence[Comparison]) -> bool:
    """Whether any comparison has a p-value; runs without any spread have none."""
    return any(comparison.p is not None for comparison in comparisons)


def note_diverged(results: ResultTable) -> Iterator[str]:
    """Name the rows that are left out of every comparison though they have errors."""
    for row in results.rows:
        if row.results and row.diverged:
            runs = len(row.results) + len(row.diverged)
            yield (
                f"{len(row.diverged)} of {runs} runs of {row.label} diverged. The surviving runs are a biased sample, "
                "so this row is not compared."
            )


def say_coverage(results: ResultTable, comparisons: Sequence[Comparison]) -> str:
    """Say in one line how much was run and what it shows, or why nothing is compared."""
    rows = sum(bool(row.results or row.diverged) for row in results.rows)
    start = f"{count(results.runs, 'run')} of {rows} of {len(results.rows)} networks"
    if not results.runs:
        return f"{start}."
    if comparisons:
        against = " and ".join(dict.fromkeys(comparison.reference.label for comparison in comparisons))
        more, less, level = (str(number or "none") for number in count_outcomes(comparisons))
        found = f"{more} of {len(comparisons)} err more, {less} less; {level} can't be told apart"
        return f"{start}. Against {against}, {found}."
    *_, why = introduce_comparisons(results, comparisons)
    so_far = "nothing to compare" if results.preset == "smoke" else "nothing to compare yet"
    return f"{start}; {so_far}: {why.partition(': ')[2]}"


def count_outcomes(comparisons: Sequence[Comparison]) -> tuple[int, int, int]:
    """Return how many rows err more than their reference, how many less, and how many can't be told from it."""
    apart = [comparison.difference.value > 0 for comparison in comparisons if comparison.separable]
    return apart.count(True), apart.count(False), len(comparisons) - len(apart)


def say_findings(results: ResultTable, comparisons: Sequence[Comparison]) -> Iterator[Statement]:
    """State what the runs show: against the paper, and of the rows against each other."""
    agreement = find_agreement(results)
    if agreement:
        yield Statement(say_agreement(results, agreement))
    yield from map(Statement, note_diverged(results))
    for spec in dict.fromkeys(comparison.reference.network for comparison in comparisons):
        found = [comparison for comparison in comparisons if comparison.reference.network == spec]
        yield _say_comparisons(found, results.decimals, count_tested(comparisons))


def find_agreement(results: ResultTable) -> Agreement | None:
    """Test our best-epoch means against those that the paper prints; None where there is nothing to test."""
    rows = [row for row in results.rows if results.compares_with_paper(row)]
    pairs = [(row, row.best, printed_sample(row.printed)) for row in rows]
    known = [(row, welch_from_samples(ours, theirs)) for row, ours, theirs in pairs if ours and theirs]
    tested = [(row, found) for row, found in known if found.p is not None]
    if not tested:
        return None
    lost = sum(bool(row.printed and row.diverged) for row in results.rows)
    corrected = correct_by_holm([found.p for _, found in tested if found.p is not None], lost)
    apart = tuple(each for each, p in zip(tested, corrected, strict=True) if is_significant(p))
    values = [found.value for _, found in tested]
    ends = [end for _, found in tested for end in found.interval or ()]
    return Agreement(len(tested), (min(values), max(values)), (min(ends), max(ends)), apart)


def say_agreement(results: ResultTable, agreement: Agreement) -> str:
    """Say how far our best-epoch means are from the paper's, and how many of them Welch's test tells apart."""
    digits, apart = results.decimals, agreement.apart
    low, high = (signed(value, digits) for value in agreement.differences)
    left, right = (signed(end, digits) for end in agreement.intervals)
    named = f": {', '.join(_format_difference(row, found, digits) for row, found in apart)}" if apart else ""
    return (
        f"With each run counted at its best epoch, as the paper seems to count ({say_paper_counts(results)}), our "
        f"means are {low} to {high} points from the paper's over {count(agreement.tested, 'network')}. By Welch's test "
        "from the mean, standard deviation and number of runs that the paper prints, with Holm's correction, "
        f"{len(apart) or 'none'} of them {'separate' if len(apart) > 1 else 'separates'}{named}. The "
        f"{100 * LEVEL:.0f} % intervals are within {left} to {right}."
    )


def _say_comparisons(comparisons: Sequence[Comparison], digits: int, tested: str) -> Statement:
    """State the comparisons with one reference."""
    reference = comparisons[0].reference
    assert reference.last is not None  # a reference has two runs or more
    start = f"After the last epoch, against {reference.label} ({percent(reference.last.mean, digits)} %)"
    head = f"{start} (differences in points):"
    if any_tested(comparisons):
        head = (
            f"{start}, judged by Welch's test after Holm's correction for {tested} (differences in points, with "
            f"the {100 * LEVEL:.0f} % interval of each by itself):"
        )
    more = [each for each in comparisons if each.separable and each.difference.value > 0]
    less = [each for each in comparisons if each.separable and each.difference.value < 0]
    level = [each for each in comparisons if not each.separable and each.p is not None]
    flat = [each for each in comparisons if each.p is None]
    groups = ("err more", more), ("err less", less), ("not separable", level), ("without any spread, not tested", flat)
    return Statement(
        head,
        tuple(
            (word, ", ".join(_format_difference(each.row, each.difference, digits) for each in found))
            for word, found in groups
            if found
        ),
    )


def _format_difference(row: Row, found: Difference, digits: int) -> str:
    return f"{row.label} ({', '.join(format_difference(found, digits))})"


def format_difference(found: Difference, digits: int) -> tuple[str, ...]:
    """Return a difference in points and, where there is one, its interval: +0.158, and +0.098 to +0.218."""
    value = signed(found.value, digits)
    if found.interval is None:
        return (value,)
    low, high = (signed(bound, digits) for bound in found.interval)
    return value, f"{low} to {high}"


def join(words: Sequence[str]) -> str:
    """Write a, b and c."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _say_permutation(comparison: Comparison) -> str:
    if comparison.permutation is None:
        return ""
    p, smallest, _ = comparison.permutation
    sides = f"{len(comparison.row.results)} against {len(comparison.reference.results)}"
    return f"permutation p {p:.2g}, the smallest that {sides} allow {smallest:.2g}"


def _say_mcnemar(comparison: Comparison) -> str:
    if comparison.mcnemar is None:
        return ""
    only_a, only_b, p = comparison.mcnemar
    wrong = f"{only_a} images are wrong in the first alone, {only_b} in the second"
    return f"McNemar, seed 0 of each: {wrong}, uncorrected p {p:.2g}"


def _say_seeds(row: Row, other: Row) -> str:
    n, m = len(row.results), len(other.results)
    return f"{n} seeds" if n == m else f"{n} and {m} seeds"
