"""What a table's runs show and what they can't, in sentences: of the README and of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rkcnn.report.compare import Contrast
from rkcnn.report.entry import decimals, is_comparable, percent, signed
from rkcnn.report.errors import sample_of
from rkcnn.report.footnotes import note_norms, note_sampling, note_single
from rkcnn.report.statistics import LEVEL, Difference, holm, separates, welch_of
from rkcnn.report.view import Row, View
from rkcnn.report.words import count, count_tested, note_comparisons, note_diverged


class Statement(NamedTuple):
    """A sentence, and what it lists: a word, and the networks it holds for."""

    text: str
    groups: tuple[tuple[str, str], ...] = ()


def say_coverage(view: View, contrasts: Sequence[Contrast]) -> str:
    """How much was run and what came of it in a line, or why nothing is compared."""
    runs = sum(len(row.results) + len(row.diverged) for row in view.rows)
    rows = sum(bool(row.results or row.diverged) for row in view.rows)
    start = f"{count(runs, 'run')} of {rows} of {len(view.rows)} networks"
    if not runs:
        return f"{start}."
    if contrasts:
        against = " and ".join(dict.fromkeys(contrast.reference.label for contrast in contrasts))
        apart = [contrast.difference.value > 0 for contrast in contrasts if contrast.separable]
        numbers = (apart.count(True), apart.count(False), len(contrasts) - len(apart))
        more, less, level = (str(number or "none") for number in numbers)
        found = f"{more} of {len(contrasts)} err more, {less} less; {level} can't be told apart"
        return f"{start}. Against {against}, {found}."
    *_, why = note_comparisons(view, contrasts)
    so_far = "nothing to compare" if view.preset == "smoke" else "nothing to compare yet"
    return f"{start}; {so_far}: {why.removeprefix('No comparison: ')}"


def say_shown(view: View, contrasts: Sequence[Contrast]) -> Iterator[Statement]:
    """What was found: against the paper, and of the rows among themselves."""
    agreed = agree_with_paper(view)
    if agreed:
        yield Statement(agreed)
    yield from map(Statement, note_diverged(view))
    for spec in dict.fromkeys(contrast.reference.spec for contrast in contrasts):
        found = [contrast for contrast in contrasts if contrast.reference.spec == spec]
        yield _say_contrasts(found, decimals(view), count_tested(contrasts))


def say_limits(view: View, contrasts: Sequence[Contrast]) -> list[str]:
    """What they can't show."""
    sampling = [note_sampling(view)] if contrasts else [*note_single(view)]
    return [*sampling, *(note_norms(view) if contrasts else ())]


def agree_with_paper(view: View) -> str:
    """How far our best-epoch means lie from the paper's, and how many of them Welch's test tells apart."""
    pairs = [(row, row.best, sample_of(row.printed)) for row in view.rows if row.best and is_comparable(view, row)]
    known = [(row, welch_of(ours, theirs)) for row, ours, theirs in pairs if theirs is not None]
    tested = [(row, found) for row, found in known if found.p is not None]
    if not tested:
        return ""
    digits = decimals(view)
    lost = sum(bool(row.printed and row.diverged) for row in view.rows)
    corrected = holm([found.p for _, found in tested if found.p is not None], lost)
    apart = [each for each, p in zip(tested, corrected, strict=True) if separates(p)]
    values = [found.value for _, found in tested]
    ends = [end for _, found in tested for end in found.interval or ()]
    named = f": {', '.join(_give(row, found, digits) for row, found in apart)}" if apart else ""
    return (
        f"Counted as the paper counts, our means lie {signed(min(values), digits)} to {signed(max(values), digits)} "
        f"points from the paper's over {count(len(tested), 'network')}; by Welch's test from the mean, std and number "
        f"of runs that it prints, with Holm's correction, {len(apart) or 'none'} of them "
        f"{'separate' if len(apart) > 1 else 'separates'}{named}. The {100 * LEVEL:.0f} % intervals "
        f"lie within {signed(min(ends), digits)} to {signed(max(ends), digits)}."
    )


def _say_contrasts(contrasts: Sequence[Contrast], digits: int, tested: str) -> Statement:
    """Those against one reference."""
    reference = contrasts[0].reference
    assert reference.last is not None  # a reference has two runs or more
    head = (
        f"After the last epoch, against {reference.label} ({percent(reference.last.mean, digits)} %), judged by "
        f"Welch's test after Holm's correction for {tested} (differences in points, with "
        f"the {100 * LEVEL:.0f} % interval of each by itself):"
    )
    more = [each for each in contrasts if each.separable and each.difference.value > 0]
    less = [each for each in contrasts if each.separable and each.difference.value < 0]
    level = [each for each in contrasts if not each.separable and each.p is not None]
    flat = [each for each in contrasts if each.p is None]
    groups = ("err more", more), ("err less", less), ("not separable", level), ("without any spread, not tested", flat)
    return Statement(
        head,
        tuple(
            (word, ", ".join(_give(each.row, each.difference, digits) for each in found))
            for word, found in groups
            if found
        ),
    )


def _give(row: Row, found: Difference, digits: int) -> str:
    if found.interval is None:
        return f"{row.label} ({signed(found.value, digits)})"
    low, high = (signed(bound, digits) for bound in found.interval)
    return f"{row.label} ({signed(found.value, digits)}, {low} to {high})"
