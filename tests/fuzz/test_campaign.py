"""A few seconds of `make fuzz`: the same cases each time. It must find nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the harness reads /proc")

CASES = 12


def test_a_short_campaign_finds_nothing(tmp_path: Path) -> None:
    arguments = ["--cases", str(CASES), "--seed", "0", "--kept", str(tmp_path / "kept")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.campaign", *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 violations\n")
    assert not (tmp_path / "kept").exists()
