"""The oracle itself: each way to break the law is noticed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.law import Place, list_silences, list_violations
from fuzz.watched import ACCEPTED, CRASHED, Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the harness reads /proc")

SOUND = Outcome(0, b"fine\n", b"", 0.1, 0.1, 1 << 20, "", (("subprocess.Popen", "git"),))
REFUSED = replace(SOUND, code=2, out=b"", err=b"rkcnn: x.json can't be read; move it away\n")
BROKEN = {
    "exit code 70": replace(SOUND, code=CRASHED, err=b"Traceback (most recent call last)\nKeyError: 'x'\n"),
    "a traceback": replace(SOUND, err=b"Traceback (most recent call last)\nKeyError: 'x'\n"),
    "hang: ended": replace(SOUND, code=-9, ended="hang"),
    "without a sentence": replace(SOUND, code=2),
    "2 sentences": replace(REFUSED, err=2 * REFUSED.err),
    "characters": replace(REFUSED, err=b"rkcnn: " + b"a" * 500),
    "a warning of Python": replace(SOUND, err=b"x.py:3: RuntimeWarning: overflow\n"),
    "the output holds": replace(SOUND, out=b"\x1b[2J"),
    "the message holds": replace(REFUSED, err="rkcnn: \u202e\n".encode()),
    "11.0 s": replace(REFUSED, seconds=11.0),
    "MB more": replace(REFUSED, peak=70 << 20),
    "ran or wrote: write /etc/passwd": replace(SOUND, events=(("write", "/etc/passwd"),)),
    "ran or wrote: os.system": replace(SOUND, events=(("os.system", "true"),)),
}
LAWFUL = {
    "read": SOUND,
    "refused": REFUSED,
    "passed over": replace(REFUSED, code=1, out=b"a table\n"),
    "long training": replace(SOUND, code=ACCEPTED, seconds=60.0, peak=1 << 30),
    "a progress bar": replace(SOUND, err=b"\rreading 3 of 4\x1b[K\n"),
}


def judge(found: Outcome, folder: Path) -> list[str]:
    own = folder / "own"
    own.mkdir()
    return list_violations(found, lambda: SOUND, 100, Place(folder, (own,), {}))


@pytest.mark.parametrize("words", BROKEN)
def test_each_violation_is_named(words: str, tmp_path: Path) -> None:
    found = judge(BROKEN[words], tmp_path)
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_lawful_passes(name: str, tmp_path: Path) -> None:
    assert judge(LAWFUL[name], tmp_path) == []


def test_exit_code_0_where_something_is_missing_is_noticed() -> None:
    sound = replace(SOUND, out=b"ResNet  0.4 %  3 seconds\nRKCNN   0.3 %  4 s\n", err=b"rkcnn: an old note 1\n")
    fewer = replace(sound, out=b"RKCNN  0.35 %  5 s\n")
    assert list_silences(fewer, sound, refused=True) == ["exit code 0 without a word, and missing: ResNet # % # #"]
    assert list_silences(fewer, sound, refused=False) == [], "a record with other values is read"
    said = replace(fewer, err=b"rkcnn: x.json can't be read\n")
    assert list_silences(said, sound, refused=True) == ["exit code 0, and it says: rkcnn: x.json can't be read"]
    fails = replace(sound, out=sound.out + b"FAILS  x.json can't be read\n")
    assert list_silences(fails, sound, refused=False) == ["exit code 0, and a run FAILS"]
    assert list_silences(replace(said, code=1), sound, refused=True) == []
    same = replace(sound, out=b"ResNet  0.41 %  13 minutes\nRKCNN  0.3 %  4 s\n", err=b"rkcnn: an old note 2\n")
    assert list_silences(same, sound, refused=True) == [], "it was not needed"


def test_files_of_others_and_half_written_ones_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("changed")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".result.json.part").touch()
    place = Place(tmp_path, (tmp_path / "own",), {tmp_path / "other": b"as it was"})
    assert list_violations(SOUND, lambda: SOUND, 0, place) == [
        "other, which is not its own, was changed",
        "left half-written: .result.json.part",
    ]


WATCHED = """
import os, sys
from pathlib import Path
from fuzz.watched import Accepted, run_watched

folder = Path(sys.argv[1])
os.mkfifo(folder / "fifo")

def accept():
    raise Accepted

def write():
    (folder / "written").write_text("x")

cases = {
    "hang": lambda: open(folder / "fifo"),
    "memory": lambda: len(bytearray(200 << 20)) and print("had it"),
    "write": write,
    "run": lambda: os.system("true"),
    "error": lambda: 1 / 0,
    "accepted": accept,
    "exit": lambda: sys.exit(2),
}
for name, work in cases.items():
    found = run_watched(work, folder, {}, folder, hang=1.0 if name == "hang" else 60.0)
    print(name, found.code, found.ended or "-", round(found.peak / (100 << 20)), len(found.events), b"fifo" in found.err
          or b"ZeroDivisionError" in found.err)
"""


def test_a_watched_child_is_measured_and_ended_where_it_hangs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    assert done.stdout.splitlines() == [
        "hang -9 hang 0 0 False",
        "memory 0 - 2 0 False",
        "write 0 - 0 1 False",
        "run 0 - 0 1 False",
        "error 70 - 0 0 True",
        "accepted 77 - 0 0 False",
        "exit 2 - 0 0 False",
    ]
