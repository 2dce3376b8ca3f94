"""Weight files: what was written comes back, and what doesn't fit says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription, read_weights
from rkcnn.model.create import create_model


@pytest.fixture(scope="module")
def digits() -> Images:
    return load_data_set("mnist-mini")[1]


def write(path: Path, network: nn.Module, metadata: dict[str, str] | None) -> Path:
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path, metadata)
    return path


def test_the_network_comes_back(tmp_path: Path, digits: Images) -> None:
    made = create_model("ResNet@k=4", channels=1).eval()
    card = NetworkDescription.of("ResNet@k=4", digits)
    network, found = read_weights(write(tmp_path / "weights.safetensors", made, card.as_metadata()))
    assert found == card
    assert not network.training
    pixels = torch.rand(2, 1, 28, 28)
    assert torch.equal(network(pixels), made(pixels))


@pytest.mark.parametrize(
    ("name", "metadata", "says"),
    [
        ("weights.safetensors", None, "not a weight file of rkcnn"),
        ("checkpoint-00001-000000.safetensors", None, "is a checkpoint; give a finished run's folder"),
        ("weights.safetensors", {"rkcnn": "{"}, "doesn't say which network"),
        ("weights.safetensors", {"rkcnn": "[]"}, "doesn't say which network"),
        ("weights.safetensors", {"rkcnn": "{}"}, "doesn't say which network"),
        ("weights.safetensors", {"rkcnn": json.dumps({"network": "ResNet@k=4"})}, "doesn't say which network"),
    ],
)
def test_a_file_of_another_kind(tmp_path: Path, name: str, metadata: dict[str, str] | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_weights(write(tmp_path / name, nn.Linear(2, 2), metadata))


def test_a_family_that_is_not_registered_here(tmp_path: Path) -> None:
    described = NetworkDescription("Mine@k=4", 1, (28, 28), ("a", "b"), (0.5,), (0.25,)).as_metadata()
    with pytest.raises(
        InputError, match=r"holds Mine@k=4, which can't be built here: no family 'Mine'.*rkcnn\.register"
    ):
        read_weights(write(tmp_path / "w.safetensors", nn.Linear(2, 2), described))


@pytest.mark.parametrize("named", ["ResNet@k=8", "RKCNN-R-2@k=4"])
def test_weights_of_another_network(tmp_path: Path, digits: Images, named: str) -> None:
    path = write(
        tmp_path / "w.safetensors",
        create_model("ResNet@k=4", channels=1),
        NetworkDescription.of(named, digits).as_metadata(),
    )
    with pytest.raises(InputError, match="but its weights are of another network"):
        read_weights(path)


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(100)])
def test_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="can't be read as weights"):
        read_weights(tmp_path / "w.safetensors")


def test_images_are_normalised_as_those_it_was_trained_on(digits: Images) -> None:
    card = replace(NetworkDescription.of("ResNet@k=4", digits), mean=(0.5,), std=(0.25,))
    fitted = card.prepare(digits)
    assert (fitted.mean, fitted.std) == ((0.5,), (0.25,))
    assert fitted.pixels is digits.pixels


def test_images_that_do_not_fit(digits: Images) -> None:
    card = NetworkDescription.of("ResNet@k=4", digits)
    names = tuple(f"class {i}" for i in range(10))
    for other, says in (
        (
            replace(digits, pixels=digits.pixels.expand(-1, 3, -1, -1), mean=(0.0,) * 3, std=(1.0,) * 3),
            "has 3 channels",
        ),
        (
            replace(digits, pixels=digits.pixels[..., :24]),
            "has images of 28 x 24, and the network was trained on images of 28 x 28",
        ),
        (
            replace(digits, classes=(*digits.classes, "more")),
            "has 11 classes, and the network was trained on 10 classes",
        ),
        (replace(digits, classes=names), "has class 'class 0', and the network was trained on class '0'"),
    ):
        with pytest.raises(InputError, match=says):
            card.prepare(other)
