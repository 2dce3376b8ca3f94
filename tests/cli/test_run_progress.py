"""What is shown of a run while it trains: the first lines, images per second of training, time left."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from fit.bench import digits
from outcome import outcome
from rkcnn.cli import run_progress
from rkcnn.cli.run_progress import RunProgress, describe_job
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.run.job import Job, start_job


def job_of(folder: Path, **changes: str) -> Job:
    """70 images: a batch of 64 and one of 6."""
    recipe = find_recipe("mini", {"epochs": "3", "batch": "64", "drop_last": "off", **changes})
    images = digits(70)
    run = Run("mnist-mini", "ResNet@k=4", recipe, 0)
    return start_job(run, folder, images, images, torch.device("cpu"), "eager", Ranks())[0]


def test_one_of_a_kind_is_singular(tmp_path: Path) -> None:
    several = "recipe    mini,epochs=3,batch=64,drop_last=False: 3 epochs of 2 steps of 64 images, lr 0.1"
    assert describe_job(job_of(tmp_path))[2] == several
    one = describe_job(job_of(tmp_path, epochs="1", batch="70"))[2]
    assert ": 1 epoch of 1 step of 70 images, " in one
    assert " of 70 steps of 1 image, " in describe_job(job_of(tmp_path, batch="1"))[2]


def test_tf32_on_a_cpu_is_said_to_do_nothing(tmp_path: Path) -> None:
    assert describe_job(job_of(tmp_path, precision="tf32"))[3].endswith("), tf32 (has no effect on a cpu), eager")
    assert describe_job(job_of(tmp_path, precision="bf16"))[3].endswith("), bf16, eager")


@pytest.mark.parametrize(
    ("changes", "images"),
    [({}, 70), ({"drop_last": "on"}, 64), ({"max_steps_per_epoch": "1"}, 64), ({"batch": "70"}, 70)],
)
def test_images_per_second_are_those_of_training_and_time_left_is_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], images: int
) -> None:
    """An epoch takes a second, half of it in its steps."""
    now = 100.0
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: now))
    screen = io.StringIO()
    shown, job = RunProgress(Console(file=screen)), job_of(tmp_path, **changes)
    shown.run_started(job, "")
    job.history.append(replace(outcome().epochs[0], seconds=0.5))
    job.trainer.epoch, now = 1, 101.0
    shown.epoch_done(job, job.history[-1])
    assert screen.getvalue().endswith(f"  {2 * images} images/s  0:02 left\n")


def test_a_run_that_has_ended_moves_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished trainer is at step 0 of the epoch after its last."""
    now = 100.0
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(run_progress, "save_curves", lambda *_: ())
    shown, job = RunProgress(Console(file=io.StringIO(), force_terminal=True)), job_of(tmp_path)
    with shown:
        shown.run_started(job, "")
        job.trainer.epoch, now = 3, 102.0
        shown.steps_done([job])
        shown.run_ended(job, outcome())
        assert [task.completed for task in shown._bar.tasks] == [210]
        now = 104.0
        shown.steps_done([job])
        assert [task.completed for task in shown._bar.tasks] == [210]


def test_a_run_that_diverged_moves_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(run_progress, "save_curves", lambda *_: ())
    shown, job = RunProgress(Console(file=io.StringIO(), force_terminal=True)), job_of(tmp_path)
    with shown:
        shown.run_started(job, "")
        job.trainer.epoch, job.trainer.step, now = 1, 1, 102.0
        shown.run_ended(job, outcome())
        shown.steps_done([job])
        assert [task.completed for task in shown._bar.tasks] == [134]
    assert shown.ended == {0}


def test_images_per_second_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: now))
    screen = io.StringIO()
    shown, job = RunProgress(Console(file=screen)), job_of(tmp_path)
    job.trainer.epoch = 1
    shown.run_started(job, "")
    job.trainer.step, now = 1, 102.0
    shown.steps_done([job])
    job.trainer.seconds, now = 1.0, 104.0
    shown.epoch_done(job, outcome().epochs[0])
    assert "seed      0, continues at epoch 2, step 1\n" in screen.getvalue()
    assert screen.getvalue().endswith("  64 images/s  0:05 left\n")  # 64 images in four seconds; 6 and 70 are left


def test_the_bar_names_the_epoch_that_its_numbers_are_of(tmp_path: Path) -> None:
    shown, job = RunProgress(Console(file=io.StringIO(), force_terminal=True)), job_of(tmp_path)
    with shown:
        shown.run_started(job, "")
        shown.steps_done([job])
        assert shown._bar.tasks[0].fields["status"].startswith("epoch 1/3")
        assert "loss" not in shown._bar.tasks[0].fields["status"]
        job.history.extend(outcome().epochs[:2])
        job.trainer.epoch, job.trainer.step, shown._last_update = 2, 1, 0.0
        shown.steps_done([job])
        assert shown._bar.tasks[0].fields["status"].startswith("epoch 2/3 loss 0.0600")
