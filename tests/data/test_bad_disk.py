"""A read-only and a full disk, as root too: a read-only mount and a small tmpfs in a mount namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from mounts import needs_mounts

BUNDLED = Path(str(files("rkcnn.data") / "bundled"))


def run_mounted(mount: str, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a mount namespace of its own after `mount`; lists what is left there."""
    script = f'mount --make-rprivate / && {mount} && "$@"; code=$?; find "$FOLDER" -type f -size +0; exit $code'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", code]
    environment = os.environ | {"FOLDER": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@needs_mounts
def test_a_read_only_data_folder_is_a_sentence(mini: Path, prelude: str) -> None:
    mini.mkdir()
    mount = 'mount -t tmpfs -o ro none "$FOLDER"'
    code = f'{prelude}\nmain(["data", "get", "mini", "--mirror", "http://127.0.0.1:9"])'
    done = run_mounted(mount, mini, code)
    assert done.returncode == 2, done.stderr
    assert "is on a read-only file system; name another folder with --data-dir" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@needs_mounts
def test_a_set_already_decoded_opens_on_a_read_only_disk(mini: Path, prelude: str) -> None:
    (mini / "mini").mkdir(parents=True)
    for path in BUNDLED.iterdir():
        shutil.copy(path, mini / "mini")
    code = f'{prelude}\nmain(["data", "get", "mini", "--offline"])'
    first = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    mount = 'mount --bind "$FOLDER" "$FOLDER" && mount -o remount,ro,bind "$FOLDER"'
    again = run_mounted(mount, mini, code)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(first.stdout)


@needs_mounts
@pytest.mark.parametrize("size", ["256k", "6m"])  # full in the download; full in decoding
def test_a_full_disk_is_a_sentence_and_leaves_nothing_half_written(
    size: str, mini: Path, prelude: str, server: object
) -> None:
    mini.mkdir()
    url = server.url  # type: ignore[attr-defined]
    code = f'{prelude}\nmain(["data", "get", "mini", "--mirror", "{url}"])'
    done = run_mounted(f'mount -t tmpfs -o size={size} none "$FOLDER"', mini, code)
    assert done.returncode == 2, done.stderr
    assert "the disk is full; name another folder" in done.stderr
    assert "Traceback" not in done.stderr
    left = [name for name in done.stdout.split() if not name.endswith(".lock")]
    assert all(name.endswith(".part") for name in left)  # a download that the next run continues


@needs_mounts
def test_a_full_disk_under_the_contact_sheet(tmp_path: Path, prelude: str) -> None:
    code = f'{prelude}\nmain(["data", "show", "mnist-mini", "-o", {str(tmp_path / "sheet.png")!r}])'
    done = run_mounted('mount -t tmpfs -o size=16k none "$FOLDER"', tmp_path, code)
    assert done.returncode == 2, done.stderr
    assert "the disk is full; give another file" in done.stderr
    assert done.stdout == ""
