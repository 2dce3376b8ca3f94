"""What a task is sent comes back as what it was, and what it sends is new; test_on_ray.py carries some out."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from rkcnn.data.load import load
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.run import Run
from rkcnn.reproduce.parcel import Parcel
from rkcnn.reproduce.task import Sender, Task, facts_of, images_of, read_task
from rkcnn.run.job import Job
from rkcnn.run.side_by_side import Execution, train_together

RUN = Run("mnist-mini", "ResNet@k=4", recipe_of("mini", {"milestones": "2_3"}), 3)


@pytest.mark.parametrize("store", [None, Path("/shared/runs")])
def test_a_task_as_facts(store: Path | None) -> None:
    task = Task(4, RUN, "cpu", "eager", 10.0, 1, store)
    facts = task.as_facts()
    assert read_task(facts) == task
    assert b"rkcnn" not in pickle.dumps(facts), "plain values, nothing of ours to import"


def test_images_as_facts() -> None:
    for images in load("mnist-mini"):
        facts = facts_of(images)
        facts["pixels"].flags.writeable = False  # as Ray's object store gives it
        again = images_of(facts)
        assert torch.equal(again.pixels, images.pixels)
        assert again.pixels.data_ptr() == facts["pixels"].ctypes.data, "shared, not copied"
        assert (again.mean, again.pixels_sha256, again.verified) == (images.mean, images.pixels_sha256, True)
        again.check()


def test_after_a_damaged_checkpoint_it_sends_what_it_makes(tmp_path: Path) -> None:
    """And not the damaged one again and again, which is named later than all that it makes until there."""
    run = Run("mnist-mini", "Identity@k=4", recipe_of("smoke", {"most_steps": "4"}), 0)
    task = Task(0, run, "cpu", "eager", 0.0, 1, None)
    way = Execution(tmp_path, "cpu", "eager", keep_seconds=0.0)
    sent: list[Parcel] = []

    class Stopping(Sender):
        def checkpoint_written(self, job: Job) -> None:
            super().checkpoint_written(job)
            if len(sent) == 4:
                raise KeyboardInterrupt

    images = load("mnist-mini")
    with pytest.raises(KeyboardInterrupt):
        train_together([run], *images, way, Stopping(task, lambda event: None, sent.append))
    (tmp_path / run.folder / "checkpoint-00000-000003.safetensors").write_bytes(b"")
    sent.clear()
    train_together([run], *images, way, Sender(task, lambda event: None, sent.append))
    steps = ["00000-000002", "00000-000003", "00001-000000"]
    assert [min(parcel) for parcel in sent] == [f"checkpoint-{step}.json" for step in steps]
    assert all(parcel[min(parcel)] and parcel[max(parcel)] for parcel in sent)
