"""What a task is sent comes back as what it was; tests/reproduce/test_on_ray.py carries some out."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from rkcnn.data.load import load
from rkcnn.record.run import Run
from rkcnn.reproduce.task import Task, facts_of, images_of, read_task
from rkcnn.train.recipe import recipe_of

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
