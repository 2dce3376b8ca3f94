"""Progress on a terminal and in a log."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

import rkcnn.cli.progress
from fit.bench import digits
from outcome import outcome
from rkcnn.cli.progress import BenchProgress, CountProgress, RunProgress
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.run import Run
from rkcnn.run.job import Job, start_job
from rkcnn.use.progress import describe_job


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_goes_away(clock: list[float]) -> None:
    out = Terminal()
    progress = CountProgress(out, "pictures")
    for done, clock[0] in ((1, 0.5), (1500, 2.0), (1600, 2.1), (2000, 2.5)):
        progress.show(done, 3000)
    assert out.getvalue() == "\r1,500 of 3,000 pictures, 0:02 left\033[K\r2,000 of 3,000 pictures, 0:01 left\033[K"
    progress.clear()
    assert out.getvalue().endswith("\r\033[K")


def test_a_log_has_a_line_now_and_then(clock: list[float]) -> None:
    out = io.StringIO()
    progress = CountProgress(out, "pictures")
    for done, clock[0] in ((1, 2.0), (2, 5.0), (3, 13.0)):
        progress.show(done, 3)
    progress.clear()
    assert out.getvalue() == "3 of 3 pictures, 0:00 left\n"


@pytest.mark.parametrize("out", [Terminal(), io.StringIO()])
def test_what_shows_anything_ends_with_all(out: io.StringIO, clock: list[float]) -> None:
    progress = CountProgress(out, "networks")
    for done, clock[0] in ((56, 11.0), (57, 11.1)):
        progress.show(done, 57)
    assert out.getvalue().replace("\r", "").replace("\033[K", "\n").splitlines() == [
        "56 of 57 networks, 0:00 left",
        "57 of 57 networks, 0:00 left",
    ]


def test_short_work_and_nobody_to_read_it_say_nothing(clock: list[float]) -> None:
    out = Terminal()
    for progress in (CountProgress(out, "pictures"), CountProgress(None, "pictures")):
        clock[0] += 0.9
        progress.show(1, 2)
        progress.clear()
    assert out.getvalue() == ""


@pytest.mark.parametrize("live", [False, True])
def test_a_line_that_cant_be_written_stops_nothing(live: bool, clock: list[float]) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def isatty(self) -> bool:
            return live

    with CountProgress(Full(), "images") as progress:
        for done in (1, 2):
            clock[0] += 20
            progress.show(done, 2)


def test_a_terminal_shows_each_turn_with_the_time_left(clock: list[float]) -> None:
    out = Terminal()
    progress = BenchProgress(out)
    progress.show("preparing a", None, 2)
    clock[0] = 50.0
    progress.show("a", 0, 6)
    clock[0] = 60.0
    progress.show("b", 1, 6)
    progress.clear()
    assert out.getvalue() == (
        "\rpreparing a\033[K\r0 of 6: a\033[K\r1 of 6, 0:50 left: b\033[K\r\033[K"  # 10 s for one, five are left
    )


def test_a_log_has_what_is_prepared_and_then_a_line_every_ten_seconds(clock: list[float]) -> None:
    out = io.StringIO()
    progress = BenchProgress(out)
    progress.show("preparing a", None, 2)
    for turn in range(1, 13):
        clock[0] += 1
        progress.show("turn", turn, 20)
    progress.clear()
    assert out.getvalue().splitlines() == ["preparing a", "10 of 20, 0:09 left: turn"]


def test_a_closed_stream_is_no_error() -> None:
    BenchProgress(None).show("a", 1, 2)


def job_of(folder: Path, **changes: str) -> Job:
    """70 images: a batch of 64 and one of 6."""
    recipe = replace(find_recipe("mini"), **read_changes({"epochs": "3", "batch": "64", "drop_last": "off", **changes}))
    images = digits(70)
    run = Run("mnist-mini", "ResNet@k=4", recipe, 0)
    return start_job(run, folder / run.folder, images, images, torch.device("cpu"), "eager", Ranks())[0]


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
    monkeypatch.setattr(rkcnn.cli.progress, "time", SimpleNamespace(monotonic=lambda: now))
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
    monkeypatch.setattr(rkcnn.cli.progress, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(rkcnn.cli.progress, "save_curves", lambda *_: ())
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
    monkeypatch.setattr(rkcnn.cli.progress, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(rkcnn.cli.progress, "save_curves", lambda *_: ())
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
    monkeypatch.setattr(rkcnn.cli.progress, "time", SimpleNamespace(monotonic=lambda: now))
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
