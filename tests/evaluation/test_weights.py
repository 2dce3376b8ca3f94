"""Weight files: what was written comes back, and what doesn't fit says so."""

from __future__ import annotations

import json
import os
import resource
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save, save_file
from torch import nn

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription, pack_weights, read_weights
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


def test_the_same_weights_give_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3.0).half(), "a": torch.eye(2).T, "counter": torch.tensor(7)}
    metadata = {f"key {i}": 'ä\\n"' + "x" * i for i in range(8)}
    content = pack_weights(tensors, metadata)
    assert all(pack_weights(tensors, dict(reversed(metadata.items()))) == content for _ in range(8))
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with safe_open(path, framework="np") as file:
        assert file.metadata() == metadata
    back = load(content)
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[name], value) for name, value in tensors.items())
    one = {"rkcnn": "{}"}
    assert pack_weights(tensors, one) == save({name: value.contiguous() for name, value in tensors.items()}, one)


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


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"network": 4}, "network is 4, and must be the name"),
        ({"network": "R" * 5000}, "network is 'RRR"),
        ({"channels": True}, "channels is True"),
        ({"channels": 0}, "channels is 0"),
        ({"channels": 3}, "mean has 1 numbers, and there are 3 channels"),
        ({"size": [28]}, r"size is \[28\], and must be a height and a width from 1 to 65536"),
        ({"size": [28, 10**9]}, "size is "),
        ({"size": [28, "28"]}, "size is "),
        ({"size": [65536, 65536]}, "bytes of activations for one image, over the limit"),
        ({"size": [4, 28]}, "the smallest it can take is 10 x 10"),
        ({"classes": "0123456789"}, "classes is "),
        ({"classes": []}, "classes is "),
        ({"classes": [0, 1]}, "classes is "),
        ({"classes": ["a", "b"]}, "its weights are of another network"),
        ({"mean": ["x"]}, r"mean is \['x'\], and must be a list of finite numbers"),
        ({"mean": [NAN]}, "it has the number NaN, and numbers must be finite"),
        ({"mean": [10**400]}, "it has a whole number of 401 digits"),
        ({"std": [INF]}, "it has the number Infinity"),
        ({"std": [0]}, "std is "),
        ({"std": [1e-300]}, r"std is \[1e-300\], and must be a list of finite numbers above 1e-09"),
        ({"more": 1}, "its description needs channels, classes"),
        ({"brightness": 2}, "brightness is 2, and must be a number from 0 to 1"),
    ],
)
def test_a_description_that_cant_be(tmp_path: Path, digits: Images, change: dict[str, object], says: str) -> None:
    described = json.dumps(NetworkDescription.of("ResNet@k=4", digits).as_dict() | change)
    path = write(tmp_path / "w.safetensors", create_model("ResNet@k=4", channels=1), {"rkcnn": described})
    with pytest.raises(InputError, match=says) as refused:
        read_weights(path)
    assert len(str(refused.value)) - len(str(path)) < 300


@pytest.mark.parametrize(
    "name",
    [
        "RKCNN-R-2@k=65536",
        "RKCNN-R-2@k=300",
        "ResNet@k=4,r=1000",
        "RKCNN-I-100_100_100@k=1,r=1000,sweeps=100",
        "RKNet-rk4@k=4,r=1000",
        "DenseNet-BC-L190-k40",
    ],
)
def test_a_name_that_the_file_is_too_small_for(tmp_path: Path, digits: Images, name: str) -> None:
    """The parameters that would be too many are never filled: 300 MB in the second case, 275 GB in the first."""
    described = NetworkDescription.of(name, digits).as_metadata()
    path = write(tmp_path / "w.safetensors", create_model("ResNet@k=4", channels=1), described)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"its weights are of another network|over the limit"):
        read_weights(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # in units of 1,024 bytes


def test_a_description_of_many_brackets(tmp_path: Path) -> None:
    path = write(tmp_path / "w.safetensors", nn.Linear(2, 2), {"rkcnn": "[" * 200_000})
    with pytest.raises(InputError, match="it holds 200,000 values"):
        read_weights(path)


def test_weights_of_another_kind_of_number(tmp_path: Path, digits: Images) -> None:
    network = create_model("ResNet@k=4", channels=1)
    described = NetworkDescription.of("ResNet@k=4", digits).as_metadata()
    read_weights(write(tmp_path / "half.safetensors", network.half(), described))
    with pytest.raises(InputError, match="holds numbers of kind F8_E4M3; weights are BF16, F16, F32, F64, I64"):
        read_weights(write(tmp_path / "w.safetensors", network.to(torch.float8_e4m3fn), described))


def _file(header: bytes, content: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + content


def _tensor(*offsets: int, shape: tuple[int, ...] = (1,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 50_000_000) + bytes(100),
        _file(b"[" * 200_000),
        _file(b'{"a":' * 200_000),
        _file(b'{"__metadata__": {"rkcnn": ' + b"[" * 100_000 + b"}}"),
        _file(json.dumps({"a": _tensor(0, 4), "b": _tensor(0, 4)}).encode(), bytes(4)),  # overlapping
        _file(json.dumps({"a": _tensor(0, 4), "b": _tensor(8, 12)}).encode(), bytes(12)),  # with a hole
        _file(json.dumps({"a": _tensor(4, 0)}).encode(), bytes(4)),
        _file(json.dumps({"a": _tensor(0, 4, shape=(2**62, 4))}).encode(), bytes(4)),
        _file(json.dumps({"a": _tensor(0, 2**40, shape=(2**38,))}).encode(), bytes(4)),
        _file(json.dumps({"a": _tensor(0, 4, dtype="X9")}).encode(), bytes(4)),
        _file(b'{"a": 1, "a": 2}'),
        _file(b'{"__metadata__": {"rkcnn": "\xff"}}'),
    ],
)
def test_a_header_that_cant_be(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="can't be read as weights"):
        read_weights(tmp_path / "w.safetensors")


def test_a_pipe_is_no_weight_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(InputError, match="it is a pipe, not a file"):
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
            "has the class 'more', and the network was trained on '0', '1', '2', '3', '4', ...",
        ),
        (replace(digits, classes=names), "has the class 'class 0', and the network was trained on '0'"),
        (replace(digits, classes=digits.classes[::-1]), "has class '9', and the network was trained on class '0'"),
        (
            replace(digits, classes=tuple(map(str, range(11)))),
            "has 11 classes, and the network was trained on 10 classes",
        ),
    ):
        with pytest.raises(InputError, match=says):
            card.prepare(other)


def test_a_message_repeats_no_long_header(tmp_path: Path) -> None:
    header = b'{"w": "' + b"many words " * 200 + b'"}'
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(InputError, match="can't be read as weights") as refused:
        read_weights(tmp_path / "w.safetensors")
    assert len(str(refused.value).replace(str(tmp_path), "")) < 300


@pytest.mark.parametrize(
    ("end", "value"), [("weight", NAN), ("weight", INF), ("bias", -INF), ("weight", 2.0**120), ("running_var", -1.0)]
)
def test_weights_that_no_training_gives(tmp_path: Path, digits: Images, end: str, value: float) -> None:
    made = create_model("RKCNN-E-2@k=4", channels=1)
    name = next(name for name in made.state_dict() if name.endswith(end))
    made.state_dict()[name].view(-1)[-1] = value
    path = write(tmp_path / "w.safetensors", made, NetworkDescription.of("RKCNN-E-2@k=4", digits).as_metadata())
    with pytest.raises(InputError, match=rf"w\.safetensors holds numbers that are not finite, or .*, in {name}; it is"):
        read_weights(path)


def test_a_header_of_many_entries(tmp_path: Path, digits: Images) -> None:
    metadata = NetworkDescription.of("ResNet@k=4", digits).as_metadata() | {
        str(number): "" for number in range(120_000)
    }
    path = write(tmp_path / "w.safetensors", create_model("ResNet@k=4", channels=1), metadata)
    with pytest.raises(InputError, match="can't be read as weights: its header has 240,"):
        read_weights(path)
