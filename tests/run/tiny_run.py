"""A run of a few seconds on real digits, and observers that stop it, for the tests of this room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.result import Epoch, Result
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer
from rkcnn.run.train import train

SPEC = "RKCNN-R-2@k=4"
CHANGES = {"epochs": "3", "batch": "64", "lr": "0.05", "milestones": "2", "drop_last": "off"}


def go(digits: str, out: Path, **settings: Any) -> Result:
    changes = settings.pop("changes", {})
    (result,) = train(
        SPEC, digits, replace(find_recipe("mini"), **read_changes({**CHANGES, **changes})), out=out, **settings
    )
    return result


def only(out: Path, name: str) -> Path:
    (path,) = out.rglob(name)
    return path


def start(
    digits: str,
    out: Path,
    engine: str = "eager",
    keep: float = 0.0,
    number: int = 0,
    changes: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[str]:
    """A run in a process of its own, which sends itself that signal after its third step."""
    script = f"""
import os
import torch
torch.set_num_threads(1)
from rkcnn.run.observer import Observer
from rkcnn.run.train import train
from rkcnn.run.side_by_side import Stopped
from dataclasses import replace
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
recipe = replace(find_recipe("mini"), **read_changes({CHANGES | dict(changes)!r}))
class Third(Observer):
    left = 3
    def steps_done(self, jobs):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), {int(number)})
try:
    options = {{"engine": {engine!r}, "checkpoint_interval": {keep}, "observer": Third()}}
    train({SPEC!r}, {digits!r}, recipe, out={str(out)!r}, **options)
except Stopped as stopped:
    print("stopped by", stopped)
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)


def wait_for(found: Any, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


class Count(Observer):
    def __init__(self) -> None:
        self.epochs = 0
        self.compiled = 0
        self.notes: list[str] = []

    def compiling(self, job: Job) -> None:
        self.compiled += 1

    def run_started(self, job: Job, note: str) -> None:
        self.notes.append(note)

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        self.epochs += 1


class Stop(Observer):
    """Asks for a stop after the first epoch, as a signal would."""

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class StopAfter(Observer):
    """Asks the run to stop after so many epochs."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


class Notes(Observer):
    """Keeps the note of the start."""

    said = ""

    def run_started(self, job: Job, note: str) -> None:
        self.said = note
