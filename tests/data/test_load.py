"""Sets by name: the bundled one at once, real ones wherever their files are."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources

SHARED = Path(os.environ.get("RKCNN_SHARED") or Path(__file__).parents[2] / ".." / "shared")
needs_shared = pytest.mark.shared("data")


def test_mnist_mini_is_real_mnist_bundled_and_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path))
    train, test = load_data_set("mnist-mini", Sources(offline=True))
    assert (len(train), len(test)) == (10_000, 2_000)
    assert (train.mean, train.std) == ((0.0,), (1.0,))
    assert train.verified
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert train.pixels_sha256 == hashlib.sha256(train.pixels.numpy().tobytes()).hexdigest()
    assert list(tmp_path.iterdir()) == []


def test_mnist_mini_weighs_less_than_two_and_a_half_megabytes() -> None:
    from importlib.resources import files

    folder = Path(str(files("rkcnn.data") / "bundled"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_500_000


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CIFAR-100 in its published form, from ../shared."""
    folder = tmp_path_factory.mktemp("shared")
    script = SHARED / "data" / "unpack.py"
    subprocess.run([sys.executable, script, "cifar100", folder], check=True)
    return folder


@needs_shared
@pytest.mark.timeout(1200)  # unpacking takes a minute on an idle core
def test_the_whole_of_cifar_100_checks_out_and_opens_at_once(unpacked: Path) -> None:
    sources = Sources(data_dir=unpacked, offline=True)
    train, test = load_data_set("cifar100", sources)
    assert (train.pixels.shape, test.pixels.shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    assert train.verified
    assert torch.bincount(train.labels).tolist() == [500] * 100
    assert train.classes[int(train.labels[0])] == "cattle"
    decoded = {path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()}
    coarse = load_data_set("cifar100-coarse", sources)[0]
    assert decoded == {path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()}
    assert torch.bincount(coarse.labels).tolist() == [2500] * 20
    assert coarse.classes[int(coarse.labels[0])] == "large_omnivores_and_herbivores"
    coarse.pixels[0] = 0  # stays in this process
    assert load_data_set("cifar100", sources)[0].pixels[0].sum() > 0
    train.check()
