"""A task's folder goes with it; should it be killed, with the next task."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rkcnn.disk import locked
from rkcnn.reproduce.scratch import scratch_folder

DIE = """
import os, signal
from rkcnn.reproduce.scratch import scratch_folder
with scratch_folder() as made:
    (made / "checkpoint").write_text("")
    print(made, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_what_a_killed_one_left_goes_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DIE], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "checkpoint").exists()
    dead = left.name.split("-")[1]
    elsewhere, own = tmp_path / f"rkcnn-{dead}-elsewhere", tmp_path / f"rkcnn-{dead}-results"
    own.mkdir()
    (tmp_path / f"rkcnn-{dead}-link").symlink_to(left)
    with locked(elsewhere), scratch_folder() as first, scratch_folder() as second:
        assert first != second
        assert first.is_dir()
        assert not left.exists()
        assert elsewhere.exists(), "held by a process whose number is not known here"
        assert own.exists(), "a folder that somebody named so"
    assert not first.exists()
