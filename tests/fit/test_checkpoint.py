"""Checkpoints: whole or not at all, and never the only copy at risk."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fit.bench import trainer
from rkcnn.error import InputError
from rkcnn.fit.checkpoint import load_checkpoint, prune, save_checkpoint
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.trainer import Trainer

IDENTITY = {"network": "RKCNN-R-2@k=4", "seed": 3}


def advanced(steps: int, spec: str = "RKCNN-R-2@k=4") -> Trainer:
    run = trainer(spec)
    for _ in range(steps):
        run.learn(*run.prepare())
        run.step += 1
    return run


def same(one: Trainer, two: Trainer) -> bool:
    a, b = one.state(), two.state()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_everything_comes_back(tmp_path: Path) -> None:
    run, fresh = advanced(2), trainer()
    save_checkpoint(tmp_path, run, IDENTITY, {"loss": 0.5})
    history, note = load_checkpoint(tmp_path, fresh, IDENTITY)
    assert same(run, fresh)
    assert (fresh.epoch, fresh.step, history, note) == (0, 2, {"loss": 0.5}, "")


def test_a_checkpoint_of_another_number_format_is_refused(tmp_path: Path) -> None:
    """A run that continued from rounded float64 weights would end with other results."""
    run = advanced(1)
    run.network.double()
    save_checkpoint(tmp_path, run, IDENTITY, {})
    with pytest.raises(InputError, match="was made by another version of rkcnn; remove it to start anew"):
        load_checkpoint(tmp_path, trainer(), IDENTITY)


SOLVED = "ODENet-abm@k=4,converge=image,tol=0.002"


def test_the_time_and_the_solvers_totals_come_back(tmp_path: Path) -> None:
    """So that a resumed epoch has the numbers of the whole epoch."""
    run, fresh = advanced(2, SOLVED), trainer(SOLVED)
    run.seconds = 1.5
    save_checkpoint(tmp_path, run, IDENTITY, {})
    load_checkpoint(tmp_path, fresh, IDENTITY)
    assert fresh.seconds == 1.5
    assert [stats.sums() for stats in fresh.solver_stats] == [stats.sums() for stats in run.solver_stats]
    assert fresh.solver_stats[0].sums()[0] == 2


def test_a_checkpoint_has_the_mean_of_the_ranks_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, fresh = trainer(SOLVED, ranks=Ranks(0, 2)), trainer(SOLVED)
    run.solver_stats[0].restore((2, 0.5, 24.0, 0.0, 0.0))
    other = torch.tensor([[2, 1.5, 25.0, 3.0, 1.0]])
    monkeypatch.setattr(Ranks, "sum", lambda _, values: values + other)
    save_checkpoint(tmp_path, run, IDENTITY, {})
    load_checkpoint(tmp_path, fresh, IDENTITY)
    assert fresh.solver_stats[0].sums() == (2, 1.0, 24.5, 1.5, 0.5)


def test_channels_last_comes_back_as_it_was(tmp_path: Path) -> None:
    run, fresh = advanced(1), trainer()
    run.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    fresh.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    save_checkpoint(tmp_path, run, IDENTITY, {})
    load_checkpoint(tmp_path, fresh, IDENTITY)
    weight = fresh.network.get_parameter("preprocessor.conv2.weight")
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert same(run, fresh)


def test_the_last_two_are_kept_and_equal_states_are_equal_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for steps in (1, 2, 3):
        save_checkpoint(tmp_path / "a", advanced(steps), IDENTITY, {})
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [f"checkpoint-00000-00000{n}.{end}" for n in (2, 3) for end in ("json", "safetensors")]
    (tmp_path / "b").mkdir()
    save_checkpoint(tmp_path / "b", advanced(3), IDENTITY, {})
    for name in names[2:]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("ending", ["json", "safetensors"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_newest_one_falls_back_and_says_so(tmp_path: Path, ending: str, damage: str) -> None:
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    save_checkpoint(tmp_path, advanced(2), IDENTITY, {})
    path = tmp_path / f"checkpoint-00000-000002.{ending}"
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    run = trainer()
    _, note = load_checkpoint(tmp_path, run, IDENTITY)
    assert same(run, advanced(1))
    assert note == (
        "" if (ending, damage) == ("json", "gone") else "skipped damaged checkpoints: checkpoint-00000-000002.json"
    )


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_after_a_damaged_newest_one_the_next_two_are_kept(tmp_path: Path) -> None:
    """It is named later than what is written now, and must not pass for the newest."""
    for steps in (1, 4):
        save_checkpoint(tmp_path, advanced(steps), IDENTITY, {})
    (tmp_path / "checkpoint-00000-000004.safetensors").write_bytes(b"")
    load_checkpoint(tmp_path, trainer(), IDENTITY)
    for steps in (1, 2, 3):
        save_checkpoint(tmp_path, advanced(steps), IDENTITY, {})
        written = range(max(1, steps - 1), steps + 1)
        assert names_in(tmp_path) == [
            f"checkpoint-00000-00000{n}.{end}" for n in written for end in ("json", "safetensors")
        ]


def test_what_a_kill_left_behind_goes(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    whole = names_in(tmp_path)
    for name in ("checkpoint-00000-000002.safetensors", ".checkpoint-00000-000002.json.part", "weights.safetensors"):
        (tmp_path / name).write_bytes(b"")
    prune(tmp_path)
    assert names_in(tmp_path) == [*whole, "weights.safetensors"]


def test_nothing_sound_left_is_said(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    (tmp_path / "checkpoint-00000-000001.json").write_text("{}")
    with pytest.raises(InputError, match=r"every checkpoint in .* is damaged"):
        load_checkpoint(tmp_path, trainer(), IDENTITY)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    with pytest.raises(InputError, match=r"another run \(seed 3 instead of 4\)"):
        load_checkpoint(tmp_path, trainer(), {**IDENTITY, "seed": 4})


def test_a_checkpoint_of_other_shapes_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, trainer("RKCNN-R-2@k=6"), IDENTITY, {})
    with pytest.raises(InputError, match="another version of rkcnn; remove it to start anew"):
        load_checkpoint(tmp_path, trainer(), IDENTITY)


def test_a_checkpoint_of_an_older_shape_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("rkcnn.fit.checkpoint.SCHEMA", 1)
        save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    with pytest.raises(InputError, match="another version of rkcnn; remove it to start anew"):
        load_checkpoint(tmp_path, trainer(), {})


def test_without_a_checkpoint_there_is_no_history(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path, trainer(), IDENTITY) == (None, "")


FULL = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from fit.test_checkpoint import IDENTITY, advanced
from rkcnn.error import InputError
from rkcnn.fit.checkpoint import save_checkpoint
folder = Path(sys.argv[1])
save_checkpoint(folder, advanced(1), IDENTITY, {})
try:
    (folder / "filler").write_bytes(bytes(400_000))
except OSError:
    pass
try:
    save_checkpoint(folder, advanced(2), IDENTITY, {})
except InputError as error:
    print(error)
print(sorted(path.name for path in folder.iterdir()))
"""


def test_a_full_disk_leaves_the_one_before(tmp_path: Path) -> None:
    """A small tmpfs in a mount namespace of its own: root can fill it too."""
    tests = Path(__file__).parents[1]
    script = f"mount -t tmpfs -o size=384k tmpfs {tmp_path} && exec {sys.executable} - {tmp_path} {tests}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], input=FULL, capture_output=True, text=True, timeout=600, check=False
    )
    assert "the disk is full; free some space there or choose another folder" in done.stdout, done.stderr
    assert "['checkpoint-00000-000001.json', 'checkpoint-00000-000001.safetensors', 'filler']" in done.stdout


@pytest.mark.parametrize(
    "content", [b"[" * 200_000, b'{"a":' * 200_000, b"", b"[]", b"{}", b'{"check": NaN}', b" " * (7 << 20)]
)
def test_json_of_any_kind_is_a_damaged_checkpoint(tmp_path: Path, content: bytes) -> None:
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {"loss": 0.5})
    save_checkpoint(tmp_path, advanced(2), IDENTITY, {})
    (tmp_path / "checkpoint-00000-000002.json").write_bytes(content)
    fresh = trainer()
    history, note = load_checkpoint(tmp_path, fresh, IDENTITY)
    assert (fresh.step, history) == (1, {"loss": 0.5})
    assert note == "skipped damaged checkpoints: checkpoint-00000-000002.json"


@pytest.mark.parametrize(
    "changes", [{"epoch": -1}, {"step": "2"}, {"solver_stats": [[]]}, {"identity": []}, {"history": 3}, {"sha256": 1}]
)
def test_values_of_any_kind_are_a_damaged_checkpoint(tmp_path: Path, changes: dict[str, object]) -> None:
    """Also where the checksums agree with them."""
    save_checkpoint(tmp_path, advanced(1), IDENTITY, {})
    path = tmp_path / "checkpoint-00000-000001.json"
    facts = {name: value for name, value in json.loads(path.read_bytes()).items() if name != "check"} | changes
    facts["check"] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"every checkpoint in .* is damaged"):
        load_checkpoint(tmp_path, trainer(), IDENTITY)


def test_another_runs_recipe_is_not_printed_whole(tmp_path: Path) -> None:
    recipe = {f"field{i}": i for i in range(30)}
    save_checkpoint(tmp_path, advanced(1), IDENTITY | {"recipe": recipe}, {})
    with pytest.raises(InputError, match=r"is of another run \(recipe field7\); remove it"):
        load_checkpoint(tmp_path, trainer(), IDENTITY | {"recipe": recipe | {"field7": 8}})


def test_a_folder_that_was_deleted_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its folder doesn't exist or was deleted in the meantime; name another") as e:
        save_checkpoint(tmp_path / "gone", advanced(1), IDENTITY, {})
    assert "free some space" not in str(e.value)
