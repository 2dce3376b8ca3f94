"""rkcnn draw: a file that holds a picture, or nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rkcnn.model.families import ORIGINALS
from rkcnn.record.tables import list_models

Run = Callable[..., tuple[int, str, str]]


def test_the_file_is_a_picture_and_the_same_each_time(rkcnn: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "step.svg", tmp_path / "again.SVG"
    code, out, err = rkcnn("draw", "rkcnn-i-3@k=32", "-o", str(first))
    assert (code, out, err) == (0, f"{first}: one time-step of RKCNN-I-3@k=32\n", "")
    assert rkcnn("draw", "RKCNN-I-3@k=32", "--output", str(second))[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name}
    assert ElementTree.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("name", [name for name in list_models() if "@" in name or ORIGINALS[name].same_as])
def test_every_network_of_the_frame_can_be_drawn(rkcnn: Run, tmp_path: Path, name: str) -> None:
    assert rkcnn("draw", name, "-o", str(tmp_path / "step.svg"))[0] == 0


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("RKCNN-I-2@k=32", "step.png", "ends in .svg"),
        ("RKCNN-I-2@k=32", "step", "ends in .svg"),
        ("RKCNN-I-2@k=32", "missing/step.svg", "missing; name one that exists"),
        ("RKCNN-I-2@k=32", "folder.svg", "folder"),
        ("RKCNN-I-2@k=32", "kept.svg/step.svg", "there is no folder"),
        ("RKCNN-I-1@k=32", "step.svg", "at least 2"),
        ("RKCNN-I-2", "step.svg", "as in RKCNN-I-2@k=32"),
        ("RKCM-I-2", "step.svg", "did you mean RKCNN?"),
        ("resnet-1001", "step.svg", "RKNet-64, ODENet-64, SONODE-64"),
    ],
)
def test_a_refusal_leaves_nothing_behind(rkcnn: Run, tmp_path: Path, name: str, file: str, words: str) -> None:
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "kept.svg").write_text("kept")
    code, out, err = rkcnn("draw", name, "-o", str(tmp_path / file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder.svg", "kept.svg"]


@pytest.mark.parametrize("before", [None, "an older picture"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, before: str | None) -> None:
    file = tmp_path / "step.svg"
    if before is not None:
        file.write_text(before)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "rkcnn", "draw", "RKCNN-I-5@k=32", "-o", str(file)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == ({"step.svg": before} if before else {})


def test_the_readmes_picture_is_current(rkcnn: Run, tmp_path: Path) -> None:
    file = tmp_path / "step.svg"
    assert rkcnn("draw", "RKCNN-R-3@k=32", "-o", str(file))[0] == 0
    assert file.read_text() == (Path(__file__).parents[2] / "docs" / "step.svg").read_text()
