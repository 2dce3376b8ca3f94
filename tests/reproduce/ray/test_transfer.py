"""Files that travel: written completely, the newest kept, and an old one that arrives late does no harm."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.reproduce.ray import transfer
from rkcnn.reproduce.ray.transfer import (
    Files,
    Mailbox,
    pack_checkpoints,
    pack_results,
    unpack_checkpoints,
    unpack_results,
)

REMEDY = "free some space"


def checkpoint(*steps: int) -> Files:
    made: Files = {}
    for step in steps:
        name = f"checkpoint-00000-{step:06d}"
        made |= {f"{name}.json": b"facts %d" % step, f"{name}.safetensors": b"numbers %d" % step}
    return made


@settings(max_examples=20)  # each writes to the disk for good
@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_in_whatever_order_they_come_the_two_newest_stay(steps: list[int]) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "run"
        for step in steps:
            unpack_checkpoints(folder, checkpoint(step), REMEDY)
        newest = sorted(set(steps))[-2:]
        assert pack_checkpoints(folder) == checkpoint(*newest)
        assert pack_checkpoints(folder, newest_only=True) == checkpoint(newest[-1])
        assert len(list(folder.iterdir())) == 2 * len(newest)


def test_facts_without_their_tensors_are_left_behind(tmp_path: Path) -> None:
    unpack_checkpoints(tmp_path, checkpoint(1, 2), REMEDY)
    (tmp_path / "checkpoint-00000-000002.safetensors").unlink()
    assert pack_checkpoints(tmp_path) == checkpoint(1)
    assert pack_checkpoints(tmp_path / "nothing") == {}


def test_what_a_driver_that_was_killed_left_behind_goes(tmp_path: Path) -> None:
    for name in ("checkpoint-00000-000001.safetensors", ".checkpoint-00000-000001.json.part"):
        (tmp_path / name).write_bytes(b"")
    unpack_checkpoints(tmp_path, checkpoint(2), REMEDY)
    assert {path.name for path in tmp_path.iterdir()} == checkpoint(2).keys()


def test_no_room_for_a_run_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"can't write to .*; name another --store$"):
        unpack_checkpoints(tmp_path / "file" / "run", checkpoint(1), "name another --store")


def test_what_vouches_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(transfer, "write_atomically", lambda path, content, remedy: written.append(path.name))
    unpack_checkpoints(tmp_path, checkpoint(7), REMEDY)
    unpack_results(tmp_path, {"result.json": b"", "weights.safetensors": b"", "predictions.npy": b""}, REMEDY)
    assert written[1].endswith(".json")
    assert written[-1] == "result.json"


def test_results_travel_without_checkpoints_and_lock(tmp_path: Path) -> None:
    files = {"result.json": b"{}", "weights.safetensors": b"w"}
    for name, content in {**files, **checkpoint(3), ".lock": b"1"}.items():
        (tmp_path / name).write_bytes(content)
    assert pack_results(tmp_path) == files


def test_a_mailbox_is_emptied_by_a_fetch_and_holds_only_the_newest_checkpoint_of_a_run() -> None:
    box = Mailbox()
    box.put_event("a")
    box.put_checkpoint(0, {"old": b"1"})
    box.put_checkpoint(1, {"other": b"2"})
    box.put_checkpoint(0, {"new": b"3"})
    box.put_event("b")
    assert box.fetch() == (["a", "b"], {0: {"new": b"3"}, 1: {"other": b"2"}})
    assert box.fetch() == ([], {})


def test_the_mailboxs_process_loads_no_torch() -> None:
    code = "import rkcnn.reproduce.ray.transfer, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
