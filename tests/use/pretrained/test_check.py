"""Weights on all their test images, and those that the package holds on 500 of them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import prod
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.use.create import create_model
from rkcnn.use.load import load
from rkcnn.use.pretrained import check
from rkcnn.use.pretrained.catalogue import Pretrained, read_catalogue
from rkcnn.use.pretrained.check import check_weights, count_wrong, load_test_set
from rkcnn.use.pretrained.ship import most_changed

ROOT = Path(__file__).parents[3]
LARGEST = 18_000_000  # bytes of all weights of the package
WEIGHTS = read_catalogue()
each_of_the_package = pytest.mark.parametrize("weights", [pytest.param(each, id=each.name) for each in WEIGHTS])


def load_first_images(weights: Pretrained) -> Images:
    """The first 500 test images; those of MNIST are in the package. Skips the test if they aren't on this machine."""
    try:
        images = load_data_set("mnist-mini")[1] if weights.data == "mnist" else load_test_set(weights)
    except InputError as error:
        pytest.skip(f"{weights.data} is neither on this machine nor, as it was published, in ../shared: {error}")
    count = weights.storage.first_images
    return replace(images, pixels=images.pixels[:count], labels=images.labels[:count])


@each_of_the_package
def test_its_answers_on_500_images_are_those_it_was_shipped_with(weights: Pretrained) -> None:
    images = load_first_images(weights)
    assert len(images) == 500
    assert abs(count_wrong(weights, images, "cpu") - weights.storage.first_wrong) <= 1, (
        "another processor may change one"
    )


@each_of_the_package
def test_its_file_says_what_its_record_does(weights: Pretrained) -> None:
    run, about, data = weights.result.run, weights.metadata, SETS[weights.data]
    assert (run.network, run.data, run.held_out) == (weights.network, weights.data, "test")
    assert weights.result.finished
    assert (about["name"], about["data"]) == (weights.name, weights.data)
    assert (about["recipe"], int(about["seed"])) == (str(run.recipe), run.seed)
    assert run.seed == 0, "which is not chosen on the test set"
    assert float(about["test_error"]) == weights.result.error
    model = load(weights.name)
    assert (model.classes, model.channels) == (data.classes, data.shape[2])
    assert weights.storage.images == data.test.images
    allowed = most_changed(weights.storage.wrong_before, data.test.images)
    assert abs(weights.storage.wrong - weights.storage.wrong_before) <= allowed
    assert abs(weights.storage.wrong / data.test.images - (weights.result.error or 0)) < 0.003
    network = create_model(weights.network, pretrained=weights.data)
    stored = model.network.state_dict()
    assert all(torch.equal(value, stored[name]) for name, value in network.state_dict().items())


@each_of_the_package
def test_statistics_are_in_float32(weights: Pretrained) -> None:
    with safe_open(weights.path, framework="np") as file:
        kinds = {name: (file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    small = {kind for name, (kind, shape) in kinds.items() if len(shape) < 2 and not name.endswith("batches_tracked")}
    assert small == {"F32"}
    half = sum(prod(shape) for kind, shape in kinds.values() if kind in ("F16", "BF16"))
    assert weights.storage.weights == "fp32" or half > 0.9 * weights.result.params


def test_the_package_stays_small_and_says_what_it_was_trained_on() -> None:
    assert sum(each.path.stat().st_size for each in WEIGHTS) <= LARGEST
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert "mnist-mini" not in {each.data for each in WEIGHTS}, "ten thousand of MNIST's images are not MNIST"
    assert not {each.data for each in WEIGHTS if f"({each.data})" not in notice}


def test_each_is_tested_on_all_images(pretrained: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_weights([]) == []
    (weights,) = read_catalogue()
    wrong = weights.storage.wrong
    line = (
        f"{pretrained}: {wrong / 20:.2f} % ({wrong} of 2,000 wrong, {wrong} when it was stored); after its last epoch "
    )
    assert line in capsys.readouterr().out
    assert check_weights([pretrained.lower()]) == []
    with pytest.raises(InputError, match="other is no name of pretrained weights"):
        check_weights(["other"])


def test_other_answers_are_an_error(
    pretrained: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (weights,) = read_catalogue()
    changed = json.dumps({**asdict(weights.storage), "wrong": weights.storage.wrong + 3})
    monkeypatch.setitem(weights.metadata, "storage", changed)
    monkeypatch.setattr(check, "read_catalogue", lambda: [weights])
    del weights.__dict__["storage"]  # it is kept once it is read
    (failure,) = check_weights([])
    assert f"got {int(weights.storage.wrong)} wrong when it was stored" in failure


def test_missing_images_are_named(
    pretrained: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(weights: Pretrained) -> Images:
        raise InputError("there are no images")

    monkeypatch.setattr(check, "load_test_set", refuse)
    assert check_weights([]) == []
    assert f"{pretrained}: NOT TESTED: there are no images" in capsys.readouterr().out
