"""What is sent to a task arrives unchanged, and what it sends is new; test_on_ray.py carries tasks out."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rkcnn.data.load import load_data_set
from rkcnn.disk import lock_folder
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.reproduce.ray.task import (
    Sender,
    Task,
    images_from_values,
    images_to_values,
    read_task,
    scratch_folder,
)
from rkcnn.reproduce.ray.transfer import Files
from rkcnn.run.job import Job
from rkcnn.run.side_by_side import Execution, train_side_by_side

RUN = Run("mnist-mini", "ResNet@k=4", replace(find_recipe("mini"), milestones=(2, 3)), 3)


@pytest.mark.parametrize("store", [None, Path("/shared/runs")])
def test_a_task_as_values(store: Path | None) -> None:
    task = Task(4, RUN, "cpu", "eager", 10.0, 1, store)
    values = task.as_values()
    assert read_task(values) == task
    assert b"rkcnn" not in pickle.dumps(values), "plain values, nothing of ours to import"


def test_images_as_values() -> None:
    for images in load_data_set("mnist-mini"):
        values = images_to_values(images)
        values["pixels"].flags.writeable = False  # as Ray's object store gives it
        again = images_from_values(values)
        assert torch.equal(again.pixels, images.pixels)
        assert again.pixels.data_ptr() == values["pixels"].ctypes.data, "shared, not copied"
        assert (again.mean, again.pixels_sha256, again.verified) == (images.mean, images.pixels_sha256, True)
        again.check()


def test_after_a_damaged_checkpoint_it_sends_what_it_makes(tmp_path: Path) -> None:
    """And not the damaged one again and again, which is named later than all that it makes until there."""
    run = Run("mnist-mini", "Identity@k=4", replace(find_recipe("smoke"), max_steps_per_epoch=4), 0)
    task = Task(0, run, "cpu", "eager", 0.0, 1, None)
    execution = Execution(tmp_path, "cpu", "eager", checkpoint_interval=0.0)
    sent: list[Files] = []

    class Stopping(Sender):
        def checkpoint_written(self, job: Job) -> None:
            super().checkpoint_written(job)
            if len(sent) == 4:
                raise KeyboardInterrupt

    images = load_data_set("mnist-mini")
    with pytest.raises(KeyboardInterrupt):
        train_side_by_side([run], *images, execution, Stopping(task, lambda event: None, sent.append))
    (tmp_path / run.folder / "checkpoint-00000-000003.safetensors").write_bytes(b"")
    sent.clear()
    train_side_by_side([run], *images, execution, Sender(task, lambda event: None, sent.append))
    steps = ["00000-000002", "00000-000003", "00001-000000"]
    assert [min(files) for files in sent] == [f"checkpoint-{step}.json" for step in steps]
    assert all(files[min(files)] and files[max(files)] for files in sent)


GET_KILLED = """
import os, signal
from rkcnn.reproduce.ray.task import scratch_folder
with scratch_folder() as made:
    (made / "checkpoint").write_text("")
    print(made, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def _temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where scratch folders are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.usefixtures("_temporary_folder")
def test_the_scratch_folder_of_a_killed_process_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", GET_KILLED], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "checkpoint").exists()
    dead = left.name.split("-")[1]
    elsewhere, own = tmp_path / f"rkcnn-{dead}-elsewhere", tmp_path / f"rkcnn-{dead}-results"
    own.mkdir()
    (tmp_path / f"rkcnn-{dead}-link").symlink_to(left)
    with lock_folder(elsewhere), scratch_folder() as first, scratch_folder() as second:
        assert first != second
        assert first.is_dir()
        assert not left.exists()
        assert elsewhere.exists(), "locked by a process whose id is not known here"
        assert own.exists(), "a folder of somebody else that has such a name"
    assert not first.exists()
