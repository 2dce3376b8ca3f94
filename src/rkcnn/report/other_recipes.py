"""The results of a table's networks by other recipes than the table's: how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rkcnn.fit.recipe import Recipe
from rkcnn.record.result import Result
from rkcnn.record.tables import Table


def count_others(table: Table, records: Iterable[tuple[Path, Result]], recipe: Recipe, data: str) -> dict[str, int]:
    """Count the results of the table's networks by other recipes; one with the table's name has other fields."""
    found = [result.run for _, result in records if result.run.data == data and result.run.network in table.specs]
    return dict(Counter(_name_other(run.recipe, recipe) for run in found if run.recipe != recipe))


def _name_other(other: Recipe, recipe: Recipe) -> str:
    if other.name != recipe.name:
        return other.name
    if replace(other, precision=recipe.precision) == recipe:
        return other.describe_precision()
    return f"{recipe.name} with fields overridden"
