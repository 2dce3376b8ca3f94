"""One process a folder, and none that is dead."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.record.lock import HOLDER, Locked, locked

HOLD = """
import sys, time
from pathlib import Path
from rkcnn.record.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_refused_while_the_other_lives_and_free_when_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    with other.stdout:
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(InputError, match=f"process {other.pid} is training in"), locked(folder):
                pass
        finally:
            other.kill()
            other.wait()
    for _ in range(2):  # free after the death, and again after use
        with locked(folder):
            pass


def test_a_folder_that_cant_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name another --out"), locked(tmp_path / "file" / "run"):
        pass


def test_the_remedy_is_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"; name another --store$"), locked(tmp_path / "file", "name another --store"):
        pass


def test_the_driver_is_named_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped is replaced, so it is of no use to name it."""
    monkeypatch.setenv(HOLDER, "4321")
    with locked(tmp_path), pytest.raises(Locked, match=r"^process 4321 is training in") as refused, locked(tmp_path):
        pass
    assert refused.value.holder == "process 4321"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    says = rf"^can't hold .*: its file system locks no files \({os.strerror(number)}\); name another --out$"
    with pytest.raises(InputError, match=says) as refused, locked(tmp_path):
        pass
    assert not isinstance(refused.value, Locked)


def test_a_full_disk_takes_no_number_and_the_folder_is_held_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with locked(tmp_path), pytest.raises(InputError, match=r"^another process is training in"), locked(tmp_path):
        pass
