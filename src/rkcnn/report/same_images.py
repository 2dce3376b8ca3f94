"""Whether runs were trained and tested on the same images, by the checksums in their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.record.tables import PRESETS, TABLES

CONTENT = {  # checksums in a record, and what they are of
    "train_sha256": "training images",
    "train_labels_sha256": "labels of the training images",
    "test_sha256": "test images",
    "test_labels_sha256": "labels of the test images",
}


def list_other_content(one: Mapping[str, object], two: Mapping[str, object]) -> list[str]:
    """Return what differs between the images of two records, as far as both have its checksum."""
    return [what for name, what in CONTENT.items() if name in one and name in two and one[name] != two[name]]


def keep_published_images(
    records: Iterable[tuple[Path, Result]],
) -> tuple[list[tuple[Path, Result]], list[InputError]]:
    """Return the records without the runs of a table on other images than the published ones, and an error for each.

    Where only the published files have a checksum (SVHN), and not their pixels, those of the first run on that set
    count: of the first verified one or, if none is verified, of the first. Runs of no table are kept.
    """
    kept, left_out = [], []
    found = [(folder, result, _is_of_a_table(result.run)) for folder, result in records]
    expected = _find_expected(result for _, result, of_a_table in found if of_a_table)
    for folder, result, of_a_table in found:
        fault = _find_fault(result, expected[result.run.data]) if of_a_table else ""
        if fault:
            left_out.append(InputError(f"{folder} is left out: {fault}; train it again on the published images"))
        else:
            kept.append((folder, result))
    return kept, left_out


def _find_expected(results: Iterable[Result]) -> dict[str, Mapping[str, object]]:
    """Return for each data set what its runs should say of their images."""
    expected: dict[str, Mapping[str, object]] = {}
    for result in sorted(results, key=lambda result: not result.data.get("verified")):  # the verified ones first
        data = result.run.data
        published = _read_published(data)
        own = {"verified": True, **published} if published else result.data
        expected[data] = {**own, **expected.get(data, {})}
    return expected


def _is_of_a_table(run: Run) -> bool:
    return any(
        run.network in table.specs
        and run.data == table.data_at(preset)
        and replace(run.recipe, precision="fp32") == table.recipe_at(preset, "fp32")
        for table in TABLES.values()
        for preset in PRESETS
    )


def _read_published(data: str) -> dict[str, object]:
    """Return the published checksums of a set by their names in a record, where they are known."""
    train, test = SETS[data].train, SETS[data].test
    sums = zip(CONTENT, (train.pixels, train.labels, test.pixels, test.labels), strict=True)
    return {name: value for name, value in sums if value}


def _find_fault(result: Result, expected: Mapping[str, object]) -> str:
    """Return what is wrong with the images of a run; empty if nothing is."""
    data = result.run.data
    if expected.get("verified") and not result.data.get("verified"):
        return f"its record does not say that {data} was verified to be the published set"
    other = list_other_content(result.data, expected)
    than = "the published set" if _read_published(data) else f"the first run on {data}"
    return f"{data} had other {' and '.join(other)} than {than}" if other else ""
