"""Network, recipe and first weights, chosen by the images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rkcnn.data.images import Images
from rkcnn.data.options import OwnOptions
from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.evaluation.weights import read_weights
from rkcnn.fit.recipe import RECIPES, own
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.record.result import Result
from rkcnn.run.settings import (
    DEFAULT_NETWORK,
    DEFAULT_RECIPES,
    MOST_FLOPS,
    Settings,
    choose,
    choose_network,
    default_recipe,
    find_weight_file,
    load_initial_weights,
    name_of,
    size_of,
)
from rkcnn.run.train import train
from rkcnn.run_folder import HUB_WEIGHTS, WEIGHTS


def noise(count: int = 40, size: int = 12, channels: int = 1, classes: int = 2, name: str = "npz:mine.npz") -> Images:
    pixels = torch.randint(0, 256, (count, channels, size, size), dtype=torch.uint8)
    names = tuple("abcdefghij"[:classes])
    labels = torch.arange(count) % classes
    return Images(name, "train", pixels, labels, names, (0.5,) * channels, (0.2,) * channels, False, "p", "l")


def pair(**changes: Any) -> tuple[Images, Images]:
    return noise(**changes), replace(noise(**changes), part="test")


def test_own_images_choose_network_and_recipe() -> None:
    chosen = choose(Settings(), *pair())
    assert (chosen.network, chosen.recipe) == ("RKCNN-R-2@k=32", own(40, 1))
    assert choose(Settings(recipe="own", changes={"epochs": 3}), *pair()).recipe == replace(own(40, 1), epochs=3)
    assert choose(Settings("ResNet@k=4", "mini"), *pair()).recipe == RECIPES["mini"]
    named = choose(Settings(), *pair(size=28, name="mnist-mini"))
    assert (named.network, named.recipe) == (DEFAULT_NETWORK, RECIPES["mini"])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [4, 8, 10, 16, 28, 32, 40, 48, 64, 96])
def test_the_chosen_network_takes_the_images_within_its_cost(size: int, channels: int) -> None:
    name = choose_network(noise(size=size, channels=channels))
    with torch.device("meta"):
        network = create_model(name, 2, channels)
    found = cost(network, size)
    assert found.flops <= MOST_FLOPS or "k=16" in name
    many = choose_network(noise(20_000 if size < 20 else 40, size=size, channels=channels))
    assert many != name or size >= 20 or size < 10


@pytest.mark.parametrize(
    ("images", "says"),
    [
        ({"count": 9}, "npz:mine.npz has 9 images to train on; give at least 10"),
        ({"classes": 1}, "has 1 class to train on; a network needs two or more"),
        ({"count": 11, "classes": 10}, None),
    ],
)
def test_too_few_images(images: dict[str, int], says: str | None) -> None:
    with pytest.raises(InputError, match=says or "has one image of class b to train on"):
        choose(Settings(), *pair(**images))


def test_names_have_the_options_of_own_images() -> None:
    training, test = pair()
    assert name_of(training, test) == "npz:mine.npz"
    options = OwnOptions(64, 0.2)
    training, test = replace(training, own=options), replace(test, own=options)
    assert name_of(training, test) == "npz:mine.npz~size-64~split-0.2"
    assert name_of(*training.split(5)) == "npz:mine.npz~size-64~split-0.2~validation-5"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on 28 x 28 digits of 10 classes, the folder that others start from."""
    out = tmp_path_factory.mktemp("start")
    train("RKCNN-R-2@k=4", "mnist-mini", "smoke", changes={"max_steps_per_epoch": 2}, out=out)
    return next(out.rglob(WEIGHTS)).parent


def write_npz(folder: Path, classes: int = 3, channels: int = 1) -> str:
    pixels = np.random.RandomState(0).randint(0, 256, (200, 28, 28, channels), np.uint8)
    np.savez(folder / "mine.npz", x_train=pixels, y_train=np.arange(200) % classes)
    return f"npz:{folder / 'mine.npz'}"


def go(start: Path, out: Path, data: str, **changes: Any) -> Result:
    settings = {"changes": {"epochs": 1, "max_steps_per_epoch": 1, "lr": 0.0, **changes}, "init_from": start}
    (result,) = train(None, data, out=out, own=OwnOptions(split=0.2), **settings)  # type: ignore[arg-type]
    return result


def weights(folder: Path) -> dict[str, torch.Tensor]:
    (path,) = folder.rglob(WEIGHTS)
    return read_weights(path)[0].state_dict()


def test_weights_of_another_run_with_a_new_classifier(start: Path, tmp_path: Path) -> None:
    result = go(start, tmp_path / "a", write_npz(tmp_path))
    assert result.run.network == "RKCNN-R-2@k=4"
    assert len(result.run.recipe.initial_weights) == 12
    old, new = weights(start), weights(tmp_path / "a")
    kept = [name for name in old if name.endswith("weight") and not name.startswith("classifier.")]
    assert all(torch.equal(old[name], new[name]) for name in kept)
    assert (old["classifier.weight"].shape[0], new["classifier.weight"].shape[0]) == (10, 3)
    by_file = go(start / WEIGHTS, tmp_path / "b", write_npz(tmp_path))
    assert by_file.run == result.run
    same = go(start, tmp_path / "c", write_npz(tmp_path, classes=10), head_only=True)
    assert torch.equal(weights(tmp_path / "c")["classifier.weight"], old["classifier.weight"])
    assert all(torch.equal(value, old[name]) for name, value in weights(tmp_path / "c").items())
    assert same.run.recipe.head_only


def test_other_classes_get_a_new_classifier_also_where_they_are_as_many(start: Path) -> None:
    trained = weights(start)
    chosen = choose(Settings(init_from=start), *pair(size=28, classes=10))
    assert chosen.training.classes == tuple("abcdefghij")
    for classes, kept in ((chosen.training.classes, False), (tuple("0123456789"), True)):
        network = create_model(chosen.network, 10, 1)
        load_initial_weights(network, chosen.recipe, start, classes)
        found = network.state_dict()
        assert torch.equal(found["classifier.weight"], trained["classifier.weight"]) == kept
        assert torch.equal(found["preprocessor.conv2.weight"], trained["preprocessor.conv2.weight"])


def test_images_are_normalised_as_the_trained_network_knows_them(start: Path, tmp_path: Path) -> None:
    (path,) = start.rglob(WEIGHTS)
    known = read_weights(path)[1]
    chosen = choose(Settings(init_from=start), *pair(size=28))
    for images in (chosen.training, chosen.test):
        assert (images.mean, images.std) == (known.mean, known.std) != ((0.5,), (0.2,))
    go(start, tmp_path, write_npz(tmp_path))
    (path,) = tmp_path.rglob(WEIGHTS)
    saved = read_weights(path)[1]
    assert (saved.mean, saved.std) == (known.mean, known.std)


def test_a_run_that_starts_from_weights_continues(start: Path, tmp_path: Path) -> None:
    """A finished run is found again, and more epochs are another run."""
    data = write_npz(tmp_path)
    first = go(start, tmp_path / "runs", data)
    assert go(start, tmp_path / "runs", data) == first


@pytest.mark.parametrize(
    ("settings", "images", "says"),
    [
        ({"changes": {"head_only": True}}, {}, "`head_only=True` given without trained weights"),
        ({"changes": {"head_only": True}}, {}, "name a run or file, as in `init_from=RKCNN-R-2@k=32.mnist`$"),
        (
            {"changes": {"initial_weights": "012345678901"}},
            {},
            "initial_weights=012345678901 starts from trained weights; name a run or file, as in `init_from=RKCNN-R",
        ),
        ({"init_from": Path("nowhere")}, {}, "nowhere holds no trained network; give the folder of a finished run"),
        ({"init_from": Path("nowhere")}, {}, "or a name of `rkcnn models --pretrained`"),
        ({"init_from": Path("x" * 300)}, {}, "holds no trained network"),
        (
            {"network": "RKCNN-R-2@k=32.mnist"},
            {},
            "is the name of trained weights; start from them with `init_from=RKCNN-R-2@k=32.mnist`",
        ),
        ({"init_from": "start", "network": "ResNet@k=4"}, {}, "ResNet@k=4 given with the weights of RKCNN-R-2@k=4"),
        ({"init_from": "start"}, {"channels": 3}, r"for images of 1 channel\(s\), and npz:mine.npz has images of 3"),
        ({"init_from": "start"}, {"size": 9}, "npz:mine.npz doesn't fit the network"),
        ({"init_from": "text"}, {}, "can't be read as weights: it is not a safetensors file"),
    ],
)
def test_what_a_run_cant_start_from(
    start: Path, tmp_path: Path, settings: dict[str, Any], images: dict[str, int], says: str
) -> None:
    (tmp_path / "text").write_text("hello")
    places = {"start": start, "text": tmp_path / "text"}
    given = {**settings, "init_from": places.get(settings.get("init_from"), settings.get("init_from"))}  # type: ignore[arg-type]
    with pytest.raises(InputError, match=says):
        choose(Settings(**given), *pair(**{"size": 28, **images}))


def test_weights_that_are_trained_take_smaller_steps(start: Path) -> None:
    assert choose(Settings(init_from=start), *pair(size=28)).recipe.lr == pytest.approx(0.01)
    assert choose(Settings(init_from=start, changes={"head_only": True}), *pair(size=28)).recipe.lr == 0.1
    assert choose(Settings(init_from=start, changes={"lr": 0.3}), *pair(size=28)).recipe.lr == 0.3


def test_a_folder_is_read_at_the_size_of_the_network_it_starts_from(start: Path) -> None:
    assert size_of(start, "folder:photos") == 28
    assert size_of(start, "npz:a.npz") is None
    assert size_of(None, "folder:photos") is None


def test_a_data_set_has_a_default_recipe() -> None:
    assert set(DEFAULT_RECIPES) == set(SETS)
    assert set(DEFAULT_RECIPES.values()) <= set(RECIPES)
    assert default_recipe("cifar10") == "fast-cifar"
    assert default_recipe("mnist-mini") == "mini"
    assert default_recipe("folder:photos") == default_recipe("arrays-01234567") == "own"


def test_a_folder_for_a_hub_holds_a_trained_network_too(tmp_path: Path) -> None:
    for name in (WEIGHTS, HUB_WEIGHTS):
        (tmp_path / name).write_bytes(b"12345678{")
        assert find_weight_file(tmp_path) == tmp_path / name
