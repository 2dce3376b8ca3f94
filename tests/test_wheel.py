"""What is published works on its own: the wheel, in an empty environment, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rkcnn import __version__
from rkcnn.model.catalogue import list_models

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
# Unpinned, pip may take the newest torch, which brings gigabytes of CUDA.
PIN = ["--constraint", str(CONSTRAINTS)] if CONSTRAINTS.exists() else ["torch==2.13.0"]


@pytest.mark.timeout(600)
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    away = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def call(*command: str | Path, cwd: Path = tmp_path) -> str:
        done = subprocess.run(command, cwd=cwd, env=away, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("rkcnn-*.whl")
    packed = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("licenses/LICENSE") for name in packed)
    assert all(name.startswith("rkcnn") for name in packed), "the wheel holds more than the package"

    call(sys.executable, "-m", "venv", tmp_path / "empty")
    bin_ = tmp_path / "empty" / "bin"
    call(bin_ / "python", "-m", "pip", "install", "--quiet", *PIN, wheel)
    assert call(bin_ / "rkcnn", "--version").strip() == __version__
    table = call(bin_ / "rkcnn", "models")
    assert all(name in table for name in list_models())
