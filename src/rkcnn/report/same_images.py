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

    Where the published checksums are not known, those of the first run on that set count. Runs of no table are kept.
    """
    kept, left_out = [], []
    expected: dict[str, dict[str, object]] = {}
    for folder, result in records:
        data = result.run.data
        fault = ""
        if data in SETS and _is_of_a_table(result.run):
            known = expected.setdefault(data, _read_published(data))
            fault = _find_fault(result, known)
            if not fault:
                expected[data] = {**result.data, **known}
        if fault:
            left_out.append(InputError(f"{folder} is left out: {fault}; train it again on the published images"))
        else:
            kept.append((folder, result))
    return kept, left_out


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
    if not result.data.get("verified"):
        return f"its record does not say that {result.run.data} was verified to be the published set"
    other = list_other_content(result.data, expected)
    return f"{result.run.data} had other {' and '.join(other)} than the published set" if other else ""
