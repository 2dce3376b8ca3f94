"""A shorter run is offered only if a longer one can go on from it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.run import Run
from rkcnn.record.shorter import find_shorter

IMAGES = "1" * 64


def run_of(epochs: int) -> Run:
    return Run("mnist-mini", "ResNet@k=4", recipe_of("mini", {"epochs": str(epochs)}), 0)


def put(out: Path, epochs: int, images: str = IMAGES) -> Path:
    """A finished run's result and last checkpoint."""
    run = run_of(epochs)
    folder = out / run.folder
    folder.mkdir(parents=True)
    result = outcome(run=run, data={"train_sha256": images})
    (folder / "result.json").write_bytes(result.to_json())
    (folder / f"checkpoint-{epochs:05d}-000000.safetensors").write_bytes(b"tensors")
    facts = {"epoch": epochs, "step": 0, "sha256": hashlib.sha256(b"tensors").hexdigest()}
    (folder / f"checkpoint-{epochs:05d}-000000.json").write_text(json.dumps(facts))
    return folder


def offered(out: Path, run: Run | None = None) -> Path | None:
    run = run or run_of(9)
    found = find_shorter(run, out / run.folder, {"train_sha256": IMAGES})
    return found and found.folder


def test_the_longest_that_is_shorter(tmp_path: Path) -> None:
    assert offered(tmp_path) is None
    folders = {epochs: put(tmp_path, epochs) for epochs in (2, 5, 9, 12)}
    assert offered(tmp_path) == folders[5]
    assert offered(tmp_path, replace(run_of(9), seed=1)) is None
    assert offered(tmp_path, replace(run_of(9), recipe=recipe_of("mini", {"epochs": "9", "lr": "1"}))) is None


@pytest.mark.parametrize("gone", ["*.json", "*.safetensors", "*"])
def test_without_its_checkpoint_it_is_passed_over(tmp_path: Path, gone: str) -> None:
    """As a record that was copied without them."""
    shorter, longer = put(tmp_path, 3), put(tmp_path, 5)
    for path in longer.glob(f"checkpoint-{gone}"):
        path.unlink()
    assert offered(tmp_path) == shorter


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"epoch": 4, "step": 3}', b"\xff"])
def test_with_a_damaged_checkpoint_it_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (put(tmp_path, 5) / "checkpoint-00005-000000.json").write_bytes(content)
    assert offered(tmp_path) is None


def test_with_damaged_tensors_it_is_passed_over(tmp_path: Path) -> None:
    (put(tmp_path, 5) / "checkpoint-00005-000000.safetensors").write_bytes(b"tensorz")
    assert offered(tmp_path) is None


def test_of_other_images_it_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, 5, images="2" * 64)
    assert offered(tmp_path) is None
