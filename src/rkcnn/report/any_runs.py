"""Runs of any networks, on the same data by the same recipe, arranged as a table of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rkcnn.data.sets import SETS
from rkcnn.disk import MissingFile
from rkcnn.error import InputError, did_you_mean
from rkcnn.escape import escape_text
from rkcnn.record.result import Result
from rkcnn.report.compare import read_classes
from rkcnn.report.paper import family_of
from rkcnn.report.results import Records, ResultTable
from rkcnn.report.row import Row
from rkcnn.report.same_images import CONTENT, list_other_content
from rkcnn.run_folder import PREDICTIONS

NAME = "comparison"  # begins the names of the files


def arrange_runs(records: Records, reference: str | None = None) -> ResultTable:
    """Arrange runs as a table with a row for each network, in the order in which they are given.

    Every row is compared with `reference`, or with the first row. Of several records of one run the first counts.
    Raises InputError, which names what differs, unless all runs are on the same data by the same recipe.
    """
    networks: dict[str, dict[int, tuple[Path, Result]]] = {}
    for record in records:
        run = record[1].run
        seeds = networks.setdefault(run.network, {})
        check_comparable(records[0], record)
        check_comparable(next(iter(seeds.values()), record), record)
        seeds.setdefault(run.seed, record)
    rows = tuple(_row(spec, list(seeds.values())) for spec, seeds in networks.items())
    chosen = _choose(reference, list(networks))
    run = records[0][1].run
    number = f"{len(rows)} network{'s' * (len(rows) != 1)}"
    return ResultTable(
        name=NAME,
        about=escape_text(f"{number} on {run.data}"),
        data=run.data,
        recipe=run.recipe,
        rows=rows,
        references=dict.fromkeys(networks, chosen),
        images=_count_images(records),
    )


def check_comparable(first: tuple[Path, Result], other: tuple[Path, Result]) -> None:
    """Raise InputError unless two runs are on the same data by the same recipe.

    Two networks that were trained further start from weights of their own, which is no difference of the recipes.
    """
    (folder, result), (other_folder, other_result) = first, other
    one, two = result.run, other_result.run
    both = f"{folder} and {other_folder} can't be compared"
    all_known = CONTENT.keys() <= result.data.keys() & other_result.data.keys()
    differing = list_other_content(result.data, other_result.data)
    # Own images may be named by several paths, so where all checksums are known they decide and not the names.
    renamed = all_known and not differing and one.validation == two.validation
    if one.data != two.data and not renamed:
        raise InputError(f"{both}: they are on different data, {one.data} and {two.data}; {_REMEDY}")
    if differing:
        raise InputError(f"{both}: {one.data} had other {' and '.join(differing)} in the second run; {_REMEDY}")
    fields, others = asdict(one.recipe), asdict(two.recipe)
    if one.network != two.network and one.recipe.initial_weights and two.recipe.initial_weights:
        others["initial_weights"] = one.recipe.initial_weights
    changes = list_changes(fields, others)
    if changes:
        names = f"{one.recipe.name} and {two.recipe.name}" if one.recipe.name != two.recipe.name else one.recipe.name
        raise InputError(f"{both}: their recipes ({names}) differ in {', '.join(changes)}; {_REMEDY}")


_REMEDY = "name runs on the same data by the same recipe, as in runs/DATA/*/RECIPE"


def list_changes(one: Mapping[str, object], two: Mapping[str, object]) -> list[str]:
    """Return the fields in which two recipes differ, each as "epochs (18 and 30)"; a name alone changes nothing."""
    return [
        f"{field} ({_write(one[field])} and {_write(two[field])})"
        for field in one
        if field != "name" and one[field] != two[field]
    ]


def _write(value: object) -> str:
    """Write the value of a recipe's field as `--set` takes it; "none" for an empty one."""
    if isinstance(value, tuple):
        value = "_".join(map(str, value))
    return "none" if value == "" else str(value)


def _choose(reference: str | None, specs: Sequence[str]) -> str:
    """Return the network that the others are compared with; upper and lower case count as the same."""
    if reference is None:
        return specs[0]
    folded = {spec.lower(): spec for spec in specs}
    if reference.lower() not in folded:
        hint = did_you_mean(reference, specs)
        raise InputError(f"`reference={reference}` given{hint}; the networks are {', '.join(specs)}")
    return folded[reference.lower()]


def _row(spec: str, records: Records) -> Row:
    ordered = sorted(records, key=lambda record: record[1].run.seed)
    finished = [(folder, result) for folder, result in ordered if result.finished and result.error is not None]
    latest = ordered[-1][1]
    return Row(
        network=spec,
        family=escape_text(family_of(spec)),
        label=escape_text(spec),
        params=latest.params,
        flops=latest.flops,
        printed=None,
        results=tuple(result for _, result in finished),
        diverged=tuple(result for _, result in ordered if not result.finished),
        missing=0,
        paper_flops=latest.paper_flops,
        folders=tuple(folder for folder, _ in finished),
    )


def _count_images(records: Records) -> int | None:
    """Return how many images the errors were counted on: as a record says, as its name tells, or as were predicted."""
    run = records[0][1].run
    counts = [result.data.get("held_out_images") for _, result in records]
    known = [number for number in counts if isinstance(number, int) and number > 0]
    if known:
        return known[0]
    if run.validation:
        return run.validation
    if run.data in SETS:
        return SETS[run.data].test.images
    return next((number for folder, _ in records if (number := _count_predictions(folder / PREDICTIONS))), None)


def _count_predictions(path: Path) -> int | None:
    try:
        predictions = read_classes(path)
    except MissingFile:
        return None
    return None if predictions is None else len(predictions)
