"""How far a run is, as its folder shows."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from outcome import outcome, write_checkpoint
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, NEW, BegunRun, find_begun_runs, find_shorter_run, find_state

HISTORY = tuple(replace(epoch, seconds=2.0) for epoch in outcome().epochs)
IMAGES = "1" * 64


def keep(folder: Path, epoch: int, step: int = 0) -> Path:
    identity = {**outcome().run.as_dict(), "train_sha256": "0" * 64}
    stretches = [asdict(replace(outcome().stretches[0], epochs=epoch))]
    history = {"epochs": [asdict(done) for done in HISTORY[:epoch]], "stretches": stretches}
    return write_checkpoint(folder, epoch, step, identity, history)


def test_new_begun_and_done(tmp_path: Path) -> None:
    result = outcome()
    run = result.run
    assert find_state(run, tmp_path) == NEW
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    assert find_state(run, tmp_path) == NEW
    (folder / "checkpoint-00001-000000.json").write_text("{}")
    assert find_state(run, tmp_path) == BEGUN
    assert find_state(run, tmp_path / "elsewhere") == NEW
    assert find_state(run, tmp_path / "elsewhere", store=tmp_path) == BEGUN
    (folder / "result.json").write_bytes(result.to_json())
    assert find_state(run, tmp_path) == result


def test_a_result_of_another_recipe_is_not_this_runs(tmp_path: Path) -> None:
    result = outcome()
    run = result.run
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    other = replace(run, recipe=replace(run.recipe, lr=0.05))
    (folder / "result.json").write_bytes(replace(result, run=other).to_json())
    with pytest.raises(InputError, match=r"is of another run, made by mini,epochs=3,lr=0\.05; move it away"):
        find_state(run, tmp_path)


@pytest.mark.parametrize("target", ["nothing", "result.json"])
def test_a_result_that_is_a_link_to_nothing_is_not_a_new_run(tmp_path: Path, target: str) -> None:
    """Found by the fuzz harness: `reproduce --plan` would have counted the run as new, without a word."""
    run = outcome().run
    folder = tmp_path / run.folder
    keep(folder, 1)
    (folder / "result.json").symlink_to(target)
    with pytest.raises(InputError, match=r"result\.json: can't be read"):
        find_state(run, tmp_path)
    assert list(find_begun_runs(tmp_path)) == []  # it is listed among the results, as one that can't be read


def test_the_newest_tells_how_far_it_came(tmp_path: Path) -> None:
    keep(tmp_path / "b", 1)
    keep(tmp_path / "b", 2, 7)
    keep(tmp_path / "a", 0)
    keep(tmp_path / "done", 3)
    (tmp_path / "done" / "result.json").write_bytes(outcome().to_json())
    assert list(find_begun_runs(tmp_path)) == [
        (tmp_path / "a", BegunRun(outcome().run, (), 0)),
        (tmp_path / "b", BegunRun(outcome().run, HISTORY[:2], 4.0)),
    ]


def test_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, 1)
    damaged = keep(tmp_path, 2)
    damaged.write_bytes(b"{")
    assert list(find_begun_runs(tmp_path)) == [(tmp_path, BegunRun(outcome().run, HISTORY[:1], 2.0, (damaged,)))]


@pytest.mark.parametrize(
    "sums", [{"check": "0" * 64}, {"check": None}, {"sha256": "0" * 64}, {"sha256": 7}, {"sha256": None}, {"step": 1}]
)
def test_one_with_another_checksum_or_none_is_passed_over(tmp_path: Path, sums: dict[str, object]) -> None:
    keep(tmp_path, 1)
    damaged = keep(tmp_path, 2)
    facts = json.loads(damaged.read_text()) | sums
    damaged.write_text(json.dumps({name: value for name, value in facts.items() if value is not None}))
    assert list(find_begun_runs(tmp_path)) == [(tmp_path, BegunRun(outcome().run, HISTORY[:1], 2.0, (damaged,)))]
    damaged.with_suffix(".safetensors").unlink()
    ((_, found),) = find_begun_runs(tmp_path)
    assert isinstance(found, BegunRun)
    assert found.damaged == (damaged,)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"identity": {}, "history": []}',
        b'{"identity": 3, "history": 4}',
        b'{"identity": {}, "history": {"epochs": [], "stretches": []}}',
        b"\xff",
    ],
)
def test_where_none_can_be_read_that_is_said(tmp_path: Path, content: bytes) -> None:
    keep(tmp_path, 1).write_bytes(content)
    ((folder, trouble),) = find_begun_runs(tmp_path)
    assert folder == tmp_path
    assert isinstance(trouble, InputError)
    assert str(trouble) == f"no checkpoint in {tmp_path} can be read; remove them to start anew"


def run_of(epochs: int) -> Run:
    return Run("mnist-mini", "ResNet@k=4", replace(find_recipe("mini"), **read_changes({"epochs": str(epochs)})), 0)


def put(out: Path, epochs: int, images: str = IMAGES) -> Path:
    """A finished run's result and last checkpoint."""
    run = run_of(epochs)
    folder = out / run.folder
    folder.mkdir(parents=True)
    result = outcome((0.03,) * epochs, run=run, data={"train_sha256": images})
    (folder / "result.json").write_bytes(result.to_json())
    write_checkpoint(folder, epochs, 0, {}, {})
    return folder


def offered(out: Path, run: Run | None = None) -> Path | None:
    run = run or run_of(9)
    found = find_shorter_run(run, out / run.folder, {"train_sha256": IMAGES})
    return found and found.folder


def test_the_longest_that_is_shorter(tmp_path: Path) -> None:
    assert offered(tmp_path) is None
    folders = {epochs: put(tmp_path, epochs) for epochs in (2, 5, 9, 12)}
    assert offered(tmp_path) == folders[5]
    assert offered(tmp_path, replace(run_of(9), seed=1)) is None
    assert offered(tmp_path, replace(run_of(9), recipe=replace(find_recipe("mini"), epochs=9, lr=1.0))) is None


@pytest.mark.parametrize("gone", ["*.json", "*.safetensors", "*"])
def test_without_its_checkpoint_it_is_passed_over(tmp_path: Path, gone: str) -> None:
    """As a record that was copied without them."""
    shorter, longer = put(tmp_path, 3), put(tmp_path, 5)
    for path in longer.glob(f"checkpoint-{gone}"):
        path.unlink()
    assert offered(tmp_path) == shorter


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"epoch": 4, "step": 3}', b"\xff"])
def test_with_a_damaged_checkpoint_it_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (put(tmp_path, 5) / "checkpoint-00005-000000.json").write_bytes(content)
    assert offered(tmp_path) is None


def test_with_damaged_tensors_it_is_passed_over(tmp_path: Path) -> None:
    (put(tmp_path, 5) / "checkpoint-00005-000000.safetensors").write_bytes(b"tensorz")
    assert offered(tmp_path) is None


def test_of_other_images_it_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, 5, images="2" * 64)
    assert offered(tmp_path) is None
