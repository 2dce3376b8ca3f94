"""The record of a bench: statistics, and files that are what they should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from record.benches import made, measured
from rkcnn.error import InputError
from rkcnn.record.bench import compare_rounds, quartiles, read_bench


def test_quartiles() -> None:
    assert quartiles([5.0]) == (5.0, 5.0, 5.0)
    assert quartiles([4.0, 1.0, 2.0, 3.0, 5.0]) == (2.0, 3.0, 4.0)
    assert quartiles([1.0, 2.0]) == (1.25, 1.5, 1.75)


def test_a_ratio_is_taken_round_by_round() -> None:
    """A slow second round slows both, and changes nothing; medians alone would give 2 / 1."""
    first, other = measured("a", [2.0, 20.0, 2.0]), measured("b", [1.0, 10.0, 1.0])
    assert compare_rounds(first, other) == 2
    other.seconds = [4.0, 1.0, 4.0]
    assert compare_rounds(first, other) == 0.5
    other.seconds = [1.0]  # interrupted
    assert compare_rounds(first, other) == 2


def test_speeds() -> None:
    one = measured("a", [2.0, 1.0, 4.0], flops=1e9)
    record = made(one, measured("b", [1.0]))
    assert (one.images_per_second, one.flops_per_second) == (4.0, 5e8)
    assert record.share_of_product(one) == 0.25
    assert record.share_of_product(record.measurements[1]) is None
    assert record.first_of(record.measurements[1]) is one
    assert measured("a", [1.0], at_once=5).label == "a eager, 5 at once"


def test_written_and_read_again(tmp_path: Path) -> None:
    record = made(measured("a", [1.0, 2.0], difference=1e-16, kernels=12.0))
    (tmp_path / "bench.json").write_bytes(record.to_json())
    assert read_bench(tmp_path / "bench.json") == record


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda facts: facts.update(schema=99), "it has schema 99, and this version of rkcnn reads 1"),
        (lambda facts: facts.update(kind="sleep"), "its kind is 'sleep'"),
        (lambda facts: facts.pop("rounds"), "the record has no rounds"),
        (lambda facts: facts.update(more=1), "has more, which this version doesn't know"),
        (lambda facts: facts["measurements"][0].update(seconds=[]), "has no rounds"),
        (lambda facts: facts.update(kind="memory"), "has no rounds"),
        (lambda facts: facts["measurements"][0].update(idle_bytes=[1]), "has 1 idle_bytes for 0 rounds"),
        (lambda facts: facts["measurements"][0].update(seconds=[-1.0]), "its seconds must be numbers above 0"),
        (lambda facts: facts["measurements"][0].update(seconds=["1"]), "its seconds must be numbers above 0"),
        (lambda facts: facts["measurements"][0].update(batch=0), "are 1 or more"),
        (lambda facts: facts["measurements"][0].update(batch="8"), "the measurement's batch is of type str"),
        (lambda facts: facts["measurements"].append(3), "the measurement is of type int"),
        (lambda facts: facts.update(products={"fp32": 3}), "its products must be a list of numbers"),
        (lambda facts: facts.update(left_out=[1]), "what was left out must be text"),
    ],
)
def test_a_damaged_record_is_refused(change: Callable[[dict[str, Any]], Any], says: str, tmp_path: Path) -> None:
    facts = json.loads(made(measured("a", [1.0])).to_json())
    change(facts)
    (tmp_path / "bench.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="can't be read as a record of rkcnn bench") as error:
        read_bench(tmp_path / "bench.json")
    assert says in str(error.value)
