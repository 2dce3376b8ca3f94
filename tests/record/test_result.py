"""Results go through their files unchanged, and a file that is none says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.result import Result, find_results, read_result


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    made = outcome(status="diverged: the loss is not finite", error=None)
    (tmp_path / "result.json").write_bytes(made.to_json())
    assert read_result(tmp_path / "result.json") == made
    assert not made.finished
    assert outcome().finished


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"{}", b'{"run": {}}', b"\xff\xfe"])
def test_a_file_that_is_no_result(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"result\.json can't be read as a result of rkcnn: .*; move it away"):
        read_result(path)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("run", "spec"), None, "run has no spec"),
        (("run", "data"), None, "run has no data"),
        (("run", "seed"), "0", "run's seed is of type str"),
        (("run", "recipe"), [], "run's recipe is of type list"),
        (("run", "recipe", "name"), None, "recipe has no name"),
        (("run", "recipe", "epochs"), "3", "recipe's epochs is of type str"),
        (("run", "recipe", "precision"), None, "recipe has no precision"),
        (("run",), [], "result's run is of type list"),
        (("status",), 3, "result's status is of type int"),
        (("engine",), None, "result has no engine"),
        (("machine",), [], "result's machine is of type list"),
        (("machine", "gpu"), [], "machine's gpu is of type list"),
        (("versions",), [], "result's versions is of type list"),
        (("flops",), "x", "result's flops is of type str"),
        (("params",), -3, "run's params is not a number from 1 to 1e.18"),
        (("flops",), 10**40, "run's flops is not a number from 1 to 1e.18"),
        (("seconds",), float("nan"), "run's seconds is not a number from 0 to 1e.18"),
        (("seconds",), -1.0, "run's seconds is not a number from 0 to 1e.18"),
        (("images_per_second",), float("inf"), "run's images_per_second is not a number from 0 to 1e.18"),
        (("epochs", 0, "test_error"), float("nan"), "test error of epoch 0 is nan"),
        (("mood",), "good", "result has mood, which this version doesn't know"),
        (("error",), "low", "result's error is of type str"),
        (("error",), 1.7, "error is 1.7, and 0.02 at best"),
        (("error",), float("nan"), "error is nan, and 0.02 at best"),
        (("error_best",), 0.9, "error is 0.03, and 0.9 at best"),
        (("error_best",), -0.1, "error is 0.03, and -0.1 at best"),
        (("seconds",), [], "result's seconds is of type list"),
        (("data",), [], "result's data is of type list"),
        (("epochs",), {}, "result's epochs is of type dict"),
        (("epochs", 0), 3, "epoch is of type int"),
        (("epochs", 2, "test_error"), None, "epoch has no test_error"),
        (("epochs", 1, "loss"), "x", "epoch's loss is of type str"),
    ],
)
def test_a_part_that_readers_rely_on(tmp_path: Path, path: tuple[Any, ...], value: object, says: str) -> None:
    facts = json.loads(outcome().to_json())
    *way, last = path
    inner = facts
    for name in way:
        inner = inner[name]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    (tmp_path / "result.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=f"can't be read as a result of rkcnn: the {says}; move it"):
        read_result(tmp_path / "result.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_result(tmp_path / "result.json")


def test_all_below_a_folder_also_past_a_bad_one(tmp_path: Path) -> None:
    for name in ("b", "a/deep", "c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "result.json").write_bytes(outcome().to_json() if name != "b" else b"{")
    found = list(find_results(tmp_path))
    assert [path.parent.relative_to(tmp_path).as_posix() for path, _ in found] == ["a/deep", "b", "c"]
    assert [isinstance(result, Result) for _, result in found] == [True, False, True]
