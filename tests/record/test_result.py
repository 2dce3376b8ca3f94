"""Results."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.json_file import LONG, parse_json
from rkcnn.record.result import Epoch, Result, Stretch, find_other_code, find_results, read_result, select_results
from rkcnn.record.source import Equivalence, source_hash


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    made = outcome(status="diverged: the loss is not finite", error=None, notes=("found by hand",))
    (tmp_path / "result.json").write_bytes(made.to_json())
    assert read_result(tmp_path / "result.json") == made
    assert not made.finished
    assert outcome().finished


def test_a_result_of_another_schema_is_not_read(tmp_path: Path) -> None:
    facts = json.loads(outcome().to_json())
    assert facts["schema"] == 3
    (tmp_path / "result.json").write_text(json.dumps({**facts, "schema": 1}))
    with pytest.raises(InputError, match="it has schema 1, and this version of rkcnn reads 3; move it away"):
        read_result(tmp_path / "result.json")


def test_the_best_epoch_is_the_first_with_the_lowest_error() -> None:
    assert outcome((0.5, 0.02, 0.03, 0.02)).best_epoch == 2
    assert outcome((), status="diverged", error=None).best_epoch is None


def test_which_code_computed_which_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Stretch(commit="abc", source=source_hash(), hash_version=2, epochs=1)
    theirs = Stretch(commit="def", source="0" * 16, hash_version=1, epochs=2)
    made = outcome(stretches=(theirs, ours))
    assert (made.commit, made.source) == ("abc", source_hash()), "that it ended with"
    assert find_other_code(made.stretches, made.run.network) == (theirs,)
    equal = Equivalence(frozenset({theirs.source, ours.source}), ("ResNet*",))
    monkeypatch.setattr("rkcnn.record.source.EQUIVALENT", (equal,))
    assert find_other_code(made.stretches, made.run.network) == ()
    assert find_other_code(made.stretches, "CliqueNet-2@k=4") == (theirs,)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"{}", b'{"run": {}}', b"\xff\xfe"])
def test_a_file_that_is_no_result(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"result\.json can't be read as a result of rkcnn: .*; move it away"):
        read_result(path)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("run", "network"), None, "run has no network"),
        (("run", "network"), "", "run's network has no name"),
        (("run", "network"), " ", "run's network has no name"),
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
        (("flops",), 10**18 + 1, "run's flops is not a number from 1 to 1e.18"),
        (("seconds",), 1e19, "run's seconds is not a number from 0 to 1e.18"),
        (("seconds",), -1.0, "run's seconds is not a number from 0 to 1e.18"),
        (("images_per_second",), 1e300, "run's images_per_second is not a number from 0 to 1e.18"),
        (("epochs", 0, "held_out_error"), 1.5, "held-out error of epoch 0 is 1.5"),
        (("mood",), "good", "result has mood, which this version doesn't know"),
        (("error",), "low", "result's error is of type str"),
        (("error",), 1.7, "error is 1.7, and 0.02 at best"),
        (("error",), True, "result's error is of type bool"),
        (("error_best",), 0.9, "error is 0.03, and 0.9 at best"),
        (("error_best",), -0.1, "error is 0.03, and -0.1 at best"),
        (("error",), 0.04, "error is 0.04, and that of the last epoch 0.03"),
        (("error_best",), 0.01, "error is 0.01 at best, and the lowest of an epoch 0.02"),
        (("epochs", 1, "held_out_error"), 0.01, "error is 0.02 at best, and the lowest of an epoch 0.01"),
        (("run", "recipe", "epochs"), 4, "run is finished with 3 epochs, and its recipe has 4"),
        (("seconds",), [], "result's seconds is of type list"),
        (("data",), [], "result's data is of type list"),
        (("epochs",), {}, "result's epochs is of type dict"),
        (("epochs", 0), 3, "epoch is of type int"),
        (("epochs", 2, "held_out_error"), None, "epoch has no held_out_error"),
        (("epochs", 2, "source"), "x", "epoch has source, which this version doesn't know"),
        (("stretches", 0, "epochs"), 2, "stretches don't add up to its 3 epochs"),
        (("stretches",), [], "stretches don't add up to its 3 epochs"),
        (("stretches", 0, "hash_version"), None, "stretch has no hash_version"),
        (("stretches", 0, "mood"), 1, "stretch has mood, which this version doesn't know"),
        (("engine_note",), None, "result has no engine_note"),
        (("notes",), "x", "result's notes is of type str"),
        (("epochs", 1, "loss"), "x", "epoch's loss is of type str"),
        (("epochs", 1, "evaluations"), "x", "epoch's evaluations is of type str"),
        (("epochs", 1, "images"), -1, "number, images or seconds of epoch 1 are no number up to 1e.18"),
        (("stretches", 0, "epochs"), -3, "stretches don't add up to its 3 epochs"),
        (("status",), "done", "status is done, neither finished nor diverged"),
        (("peak_bytes",), -1, "run's peak_bytes is not a number from 0 to 1e.18"),
        (("run", "seed"), -1, r"run's seed is -1, and must be from 0 to 2\^63 - 1"),
        (("run", "seed"), True, "run's seed is of type bool"),
        (("run", "data"), "mnist~validation-xyz", "run's data is mnist~validation-xyz, which has an option .*"),
        (("run", "data"), f"mnist~validation-{'9' * 5000}", "run's data is mnist~validation-9+ ... 9+, which .*"),
        (("run", "recipe", "flip"), "yes", "recipe's flip is of type str"),
        (("run", "recipe", "lr"), True, "recipe's lr is of type bool"),
        (("run", "recipe", "milestones"), 3, "recipe's milestones is of type int"),
        (("run", "recipe", "milestones"), [[]], r"`milestones=\[\[\]\]` given; it must be a tuple of whole numbers"),
        (("data", "own"), [], "data's own is of type list"),
        (("data", "own"), {"size": [32]}, "field `own`'s size is of type list"),
        (("data", "own"), {"split": "x"}, "field `own`'s split is of type str"),
        (("data", "classes"), {}, "data's classes is of type dict"),
        (("data", "classes"), [], "data has no classes"),
        (("data", "classes"), ["cat", 3], "classes are not all text"),
        (("data", "test_sha256"), 3, "data's test_sha256 is of type int"),
        (("data", "held_out_images"), "x", "data's held_out_images is of type str"),
        (("data", "constant_error"), "x", "data's constant_error is of type str"),
        (("machine", "threads"), "x", "machine's threads is of type str"),
        (("versions", "torch"), 3, "versions's torch is of type int"),
        (("notes",), [[]], "notes are not all text"),
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
    with pytest.raises(InputError, match=f"can't be read as a result of rkcnn: (the )?{says}; move it"):
        read_result(tmp_path / "result.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[" * 200_000, "it holds 200,000 values, far more than"),
        (b'{"a":' * 40 + b"0" + b"}" * 40, "it has more than 32 lists and objects inside each other"),
        (outcome(seconds=float("nan")).to_json(), "it has the number NaN, and numbers must be finite"),
        (outcome(engine_note="\ud800").to_json(), "it has text with half of a surrogate pair"),
        (b"", "Expecting value"),
        (b"\xff{}", "can't decode byte 0xff"),
        (b"[]", "it holds a JSON list instead of object"),
    ],
)
def test_content_that_is_no_sound_json(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(InputError, match=r"can't be read as a result of rkcnn: .*; move it away") as raised:
        read_result(tmp_path / "result.json")
    assert says in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_record_of_the_most_epochs_can_be_read() -> None:
    """In a checkpoint, which indents them most, and with the longest numbers."""
    names = [each.name for each in fields(Epoch)]
    epoch = dict.fromkeys(names, -2.2250738585072014e-308) | {"number": 14_999, "images": 604_388}
    one, many = (json.dumps({"history": {"epochs": [epoch] * n}}, indent=1) for n in (1, 15_000))
    assert len(many) + (1 << 16) <= LONG, "with room for the run, its images and its classes"
    parse_json(many, dict)
    assert len(one) > 350
    with pytest.raises(InputError, match="epochs=15001 given; it must be from 1 to 15000"):
        replace(find_recipe("mini"), epochs=15001)


def test_a_record_without_epochs_has_nothing_to_contradict(tmp_path: Path) -> None:
    """As in a weight file, which leaves the epochs out."""
    made = outcome((), error=0.03, error_best=0.02)
    (tmp_path / "result.json").write_bytes(made.to_json())
    assert read_result(tmp_path / "result.json") == made


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_result(tmp_path / "result.json")


def test_all_below_a_folder_also_past_a_bad_one(tmp_path: Path) -> None:
    for name in ("b", "a/deep", "c", "link"):
        (tmp_path / name).mkdir(parents=True)
        if name != "link":
            (tmp_path / name / "result.json").write_bytes(outcome().to_json() if name != "b" else b"{")
    (tmp_path / "link" / "result.json").symlink_to("result.json")  # to itself
    (tmp_path / "folder" / "result.json").mkdir(parents=True)
    found = list(find_results(tmp_path))
    names = [path.parent.relative_to(tmp_path).as_posix() for path, _ in found]
    assert names == ["a/deep", "b", "c", "folder", "link"]
    assert [isinstance(result, Result) for _, result in found] == [True, False, True, False, False]


def test_every_record_of_this_repository_can_be_read() -> None:
    """Each in its run's own folder."""
    folder = Path(__file__).parents[2] / "results"
    found = list(find_results(folder))
    assert len(found) >= 77
    for path, result in found:
        assert isinstance(result, Result), result
        assert path.parent == folder / result.run.folder
        assert result.finished
        assert all(stretch.commit and not stretch.commit.endswith("+") for stretch in result.stretches)


def put(folder: Path, seed: int = 0) -> Path:
    made = outcome()
    folder.mkdir(parents=True)
    (folder / "result.json").write_bytes(replace(made, run=replace(made.run, seed=seed)).to_json())
    return folder


def test_a_run_its_file_and_a_folder_of_runs(tmp_path: Path) -> None:
    folders = [put(tmp_path / "runs" / f"seed-{seed}", seed) for seed in range(3)]
    (tmp_path / "runs" / "begun").mkdir()
    found, unreadable = select_results([folders[2], folders[1] / "result.json", tmp_path / "runs"])
    assert [folder for folder, _ in found] == [folders[2], folders[1], folders[0]], "in the order given, each once"
    assert [result.run.seed for _, result in found] == [2, 1, 0]
    assert unreadable == []


def test_what_cant_be_read_is_told_and_the_others_count(tmp_path: Path) -> None:
    put(tmp_path / "good")
    bad = put(tmp_path / "bad") / "result.json"
    bad.write_text("{}")
    found, (error,) = select_results([tmp_path])
    assert [folder.name for folder, _ in found] == ["good"]
    assert str(bad) in str(error)
    with pytest.raises(InputError, match="can't be read as a result of rkcnn"):
        select_results([bad.parent])


def test_nothing_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder .*nowhere here; name the folders of finished runs"):
        select_results([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"holds no result\.json; name the folders of finished runs"):
        select_results([tmp_path])
    with pytest.raises(InputError, match="no runs given; name the folders"):
        select_results([])
