"""Pretrained weights by name."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.use.pretrained import catalogue
from rkcnn.use.pretrained.catalogue import (
    find_pretrained,
    list_pretrained,
    locate_weights,
    read_catalogue,
    select_pretrained,
)


def test_a_name_in_any_spelling_finds_its_file(pretrained: str, shipped: Path) -> None:
    assert list_pretrained() == [pretrained]
    path = shipped / "weights" / f"{pretrained}.safetensors"
    for name in (pretrained, pretrained.lower(), "RKCNN-E-2@r=1,k=4.mnist-mini", Path(pretrained)):
        assert locate_weights(name) == path, name
    found = select_pretrained("rkcnn-e-2@k=4", "MNIST-mini")
    assert (found.name, found.network, found.data, found.path) == (pretrained, "RKCNN-E-2@k=4", "mnist-mini", path)


def test_a_file_of_that_name_comes_first(pretrained: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / pretrained).mkdir()
    assert find_pretrained(pretrained) is None
    assert locate_weights(pretrained) == Path(pretrained)


@pytest.mark.parametrize("name", ["runs/seed-0", "nothing", "weights.safetensors", "RKCNN-E-2@k=4.5", "OWNER/NAME"])
def test_other_names_are_left_to_others(pretrained: str, name: str) -> None:
    assert locate_weights(name) == Path(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "RKCNN-E-2@k=4.cifar10",
            "no weights of RKCNN-E-2@k=4 trained on cifar10; there are some trained on mnist-min",
        ),
        ("RKCNN-E-2@k=4.mnist-min", r"on mnist-min \(did you mean mnist-mini\?\); there are"),
        ("ResNet@k=4.mnist", "there are no pretrained weights of ResNet@k=4; this package has some of RKCNN-E-2@k=4"),
        ("ResNet-1001.cifar10", "there are no pretrained weights of ResNet-1001; this package has some of"),
        ("RKCNN-E-2@k=4", r"the name of a network, and not of trained weights; give RKCNN-E-2@k=4\.mnist-mini, or tra"),
        ("ResNet@k=4", r"of which the package has no trained weights .*; train it \(rkcnn train ResNet@k=4\)"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(pretrained: str, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        find_pretrained(name)
    assert len(str(refused.value)) < 300


def test_a_package_without_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    assert list_pretrained() == []
    with pytest.raises(InputError, match="no pretrained weights of ResNet@k=4; this package has none of any network"):
        select_pretrained("ResNet@k=4", "mnist")


def test_its_metadata_says_where_it_comes_from(pretrained: str, shipped: Path) -> None:
    (weights,) = read_catalogue()
    (run,) = shipped.glob("runs/*/*/*/*")
    record = json.loads((run / "result.json").read_bytes())
    assert weights.result.as_dict() == record
    about = weights.metadata
    assert (about["name"], about["data"], about["seed"], about["format"]) == (pretrained, "mnist-mini", "0", "pt")
    assert about["recipe"] == "mini,epochs=2,milestones=,max_steps_per_epoch=30"
    assert float(about["test_error"]) == record["error"]
    assert set(json.loads(about["rkcnn"])) == {"network", "channels", "size", "classes", "mean", "std"}
    row = weights.describe()
    assert (row["name"], row["error"], row["params"]) == (pretrained, record["error"], record["params"])
    assert row["bytes"] == weights.path.stat().st_size


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_installation_gets_a_sentence(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    (tmp_path / "ResNet@k=4.mnist.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="install rkcnn again"):
        select_pretrained("ResNet@k=4", "mnist").describe()


def test_weights_in_a_zip_file(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "RKCNN-E-2@k=4.mnist-mini"
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.write(shipped / "weights" / f"{name}.safetensors", f"weights/{name}.safetensors")
    with zipfile.ZipFile(tmp_path / "package.zip") as archive:
        folder: Traversable = zipfile.Path(archive, "weights/")
        monkeypatch.setattr(catalogue, "FOLDER", folder)
        (weights,) = read_catalogue()
        assert (weights.name, weights.describe()["data"]) == (name, "mnist-mini")


def test_the_listing_needs_no_torch() -> None:
    code = (
        "import rkcnn, sys; rkcnn.list_pretrained(); import rkcnn.use.pretrained.page; sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_is_located_once(pretrained: str, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an archive each time would extract it again, and keep the copy until Python ends."""
    first = read_catalogue()
    monkeypatch.setattr(catalogue, "as_file", None)
    assert read_catalogue() == first
