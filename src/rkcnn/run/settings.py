"""What a run is, chosen by its images where the user leaves it open: network, recipe and the weights it starts from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rkcnn.data.images import Images
from rkcnn.data.own_images import PREFIXES
from rkcnn.data.sets import SETS
from rkcnn.disk import open_file
from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription, read_weights
from rkcnn.fit.recipe import Recipe, find_recipe, own
from rkcnn.fit.recipe_changes import change_recipe
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.families import find_original
from rkcnn.model.limits import check_activations
from rkcnn.model.network import check_images
from rkcnn.record.run import name_data
from rkcnn.run_folder import HUB_WEIGHTS, WEIGHTS

DEFAULT_NETWORK = "RKCNN-R-2@k=32"
FEWEST_IMAGES = 10  # that a network is trained on
MOST_FLOPS = 45e6  # of one image, by the network that is chosen for a user's own images
MANY_IMAGES = 5000  # from which on that network is wider
INIT_FROM = "init_from"
"""The field of a record's `data` that names the weights a run started from."""
TRAINED = f"the folder of a finished run, its {WEIGHTS}, or a name of `rkcnn models --pretrained`"
NAME_WEIGHTS = "name a run or file, as in `init_from=RKCNN-R-2@k=32.mnist`"
DEFAULT_RECIPES = {
    "mnist-mini": "mini",
    "mnist": "fast-mnist",
    "fashion-mnist": "fast-mnist",
    "cifar10": "fast-cifar",
    "cifar100": "fast-cifar",
    "cifar100-coarse": "fast-cifar",
    "svhn": "fast-svhn",
    "svhn+extra": "fast-svhn",
}
"""The recipe for each data set where none is asked for; `own` for a user's own images."""


@dataclass(frozen=True)
class Settings:
    """What the user asks for; what is None is chosen when the images are known."""

    network: str | None = None
    recipe: str | Recipe | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)  # values of fields of the recipe
    init_from: Path | None = None  # a finished run's folder or its weight file


@dataclass(frozen=True)
class Chosen:
    """The network's full name, the recipe, and the images with the normalisation that the run uses."""

    network: str
    recipe: Recipe
    training: Images
    test: Images


def choose(settings: Settings, training: Images, test: Images) -> Chosen:
    """Return what will be trained on these images; raises InputError if it can't be."""
    if training.name not in SETS:
        check_own_images(training)
    recipe = settings.recipe or default_recipe(training.name)
    if recipe == "own":
        recipe = own(len(training), training.pixels.shape[1])
        if settings.init_from is not None and not settings.changes.get("head_only"):
            recipe = replace(recipe, lr=recipe.lr / 10)  # steps of a new network's size would undo what was learned
    elif isinstance(recipe, str):
        recipe = find_recipe(recipe)
    recipe = change_recipe(recipe, settings.changes)
    network = settings.network
    if settings.init_from is not None:
        path = find_weight_file(settings.init_from)
        _, description = read_weights(path)
        _check_start(description, network, training, path)
        network = description.network
        recipe = replace(recipe, initial_weights=_checksum(path))
        # as it was trained with, so that its first layers see what they know
        mean, std, brightness = description.mean, description.std, training.mean[0] if len(training.mean) == 1 else None
        training, test = (replace(images, mean=mean, std=std, brightness=brightness) for images in (training, test))
    elif recipe.initial_weights:
        raise InputError(f"{recipe} starts from trained weights; {NAME_WEIGHTS}")
    elif recipe.head_only:
        raise InputError(f"`head_only=True` given without trained weights; {NAME_WEIGHTS}")
    return Chosen(check_network(network or choose_network(training), training), recipe, training, test)


def default_recipe(data: str) -> str:
    """Return the name of the recipe for a data set where none is asked for."""
    return DEFAULT_RECIPES.get(data, "own")


def choose_network(images: Images) -> str:
    """Return the network for images where none is asked for: for your own, by their size and number.

    It is RKCNN-R with two stages in each period, behind ODE-Net's stem, which makes images four times smaller: one
    period below 18 pixels, two from there on, and three from 48 on. Its width k is the largest of 64, 48, 32, 24 and 16
    with which an image takes at most MOST_FLOPS, and at most 32 below MANY_IMAGES images. Images below 10 pixels, which
    the stem can't take, get one convolution in its place.
    """
    if images.name in SETS:
        return DEFAULT_NETWORK
    _, channels, height, width = images.pixels.shape
    side = min(height, width)
    stages = "2" if side < 18 else "2_2" if side < 48 else "2_2_2"
    stem = "conv" if side < 10 else "odenet"
    names = [f"RKCNN-R-{stages}@k={k},stem={stem}" for k in (64, 48, 32, 24, 16)]
    for name in names if len(images) >= MANY_IMAGES else names[2:]:
        with torch.device("meta"):
            network = create_model(name, len(images.classes), channels)
        flops = cost(network, (height, width)).flops
        if flops is not None and flops <= MOST_FLOPS:
            return name
    return names[-1]


def check_network(spec: str, images: Images) -> str:
    """Return the network's full name; raises InputError if it can't take these images."""
    if is_pretrained_name(spec):
        raise InputError(f"{spec} is the name of trained weights; start from them with `init_from={spec}`")
    _, channels, height, width = images.pixels.shape
    with torch.device("meta"):
        network = create_model(spec, len(images.classes), channels)
        check_activations(network, (height, width))
        try:
            check_images(network.name, channels, network.smallest, torch.empty(1, channels, height, width))
        except InputError as error:
            raise InputError(f"{images.name} doesn't fit the network: {error}") from None
    return network.name


def check_own_images(images: Images) -> None:
    """Raise InputError if a user's own images are too few to train on."""
    counts = torch.bincount(images.labels, minlength=len(images.classes))
    present = int((counts > 0).sum())
    if present < 2:
        raise InputError(f"{images.name} has {present} class to train on; a network needs two or more to tell apart")
    if len(images) < FEWEST_IMAGES:
        raise InputError(
            f"{images.name} has {len(images)} images to train on; give at least {FEWEST_IMAGES}, better 50 of a class"
        )
    for name, count in zip(images.classes, counts.tolist(), strict=True):
        if count == 1:
            raise InputError(f"{images.name} has one image of class {name} to train on; add some or remove the class")


def name_of(training: Images, test: Images) -> str:
    """Return the data name of a run on these images: NAME, with the options of own images and what was held out.

    As in folder:photos~size-32~split-0.2~validation-50. Raises InputError unless they are the training and test images
    of one data set, or what `Images.split` returned.
    """
    name, count = training.name, len(test)
    size = training.own.size if isinstance(training.own.size, int) else None
    if test.name == name and (training.part, test.part) == ("train", "test"):
        return name_data(name, size, training.own.split, channels=training.own.channels)
    held_out = (f"train without validation {count}", f"validation {count} of train")
    if test.name == name and (training.part, test.part) == held_out:
        return name_data(name, size, training.own.split, count, training.own.channels)
    raise InputError(
        f"{name} ({training.part}) and {test.name} ({test.part}) given; give the training and the test images of one "
        "data set, or what split(N) of its training images returns"
    )


def size_of(init_from: Path | None, data: object) -> int | None:
    """Return the size that a folder's images are read at where none is given: that of the network to start from."""
    if init_from is None or not isinstance(data, str) or not data.startswith("folder:"):
        return None
    _, description = read_weights(find_weight_file(init_from))
    return min(description.size)


def is_pretrained_name(name: str) -> bool:
    """Whether this is NETWORK.SET, as pretrained weights are named: RKCNN-R-2@k=32.mnist."""
    network, _, data = name.rpartition(".")
    return data in SETS and ("@" in network or find_original(network) is not None)


def find_weight_file(path: Path) -> Path:
    """Return the weight file of a finished run's folder, or of one for a hub, or `path` itself if it is a file."""
    found = path
    if os.path.isdir(path):
        found = path / (HUB_WEIGHTS if os.path.isfile(path / HUB_WEIGHTS) else WEIGHTS)
    if not os.path.isfile(found):  # unlike Path.is_file, it also takes a name that is longer than any file's
        raise InputError(f"{path} holds no trained network; give {TRAINED}")
    check_format(found)
    return found


def check_format(path: Path) -> None:
    """Raise InputError unless a file begins as safetensors do: with the length of a header, and a brace."""
    with open_file(path) as file:
        if file.read(9)[8:] != b"{":
            raise InputError(
                f"{path} can't be read as weights: it is not a safetensors file; give a finished run's folder or its "
                f"{WEIGHTS}"
            )


@dataclass(frozen=True)
class InitialWeights:
    """Trained weights that a network was given."""

    name: str  # of pretrained weights, or the path of the run or file
    classes: tuple[str, ...]  # that they were trained for

    def describe(self, classes: tuple[str, ...]) -> str:
        """Return a note on the start of a run for those classes."""
        head = f"new, for {len(classes)} classes in place of {len(self.classes)}"
        if len(classes) == len(self.classes):
            head = "kept" if classes == self.classes else "new, for other classes"
        return f"starts from the weights of {self.name}, its classifier is {head}"


def load_initial_weights(
    network: nn.Module, recipe: Recipe, path: Path | None, classes: tuple[str, ...]
) -> InitialWeights | None:
    """Give a new network the trained weights that its recipe starts from, and return which these are, or None.

    They are in the run or file `path`. The classifier's are taken only if it was trained for the same classes.
    """
    if not recipe.initial_weights:
        return None
    if path is None:
        raise InputError(f"{recipe} starts from trained weights; {NAME_WEIGHTS}")
    found = find_weight_file(path)
    if _checksum(found) != recipe.initial_weights:
        raise InputError(f"{found} has changed since the run was named; give the same command again")
    trained, description = read_weights(found)
    state: dict[str, Tensor] = trained.state_dict()
    if description.classes != classes:
        state |= {name: value for name, value in network.state_dict().items() if name.startswith("classifier.")}
    network.load_state_dict(state)
    return InitialWeights(found.stem if is_pretrained_name(found.stem) else str(path), description.classes)


def _check_start(description: NetworkDescription, network: str | None, images: Images, path: Path) -> None:
    channels = images.pixels.shape[1]
    if description.channels != channels:
        own = images.name.startswith(PREFIXES) and description.channels in (1, 3)
        other = f", or read them with `channels={description.channels}`" if own else ""
        raise InputError(
            f"{path} holds a network for images of {description.channels} channel(s), and {images.name} has images of "
            f"{channels}; start from a network that was trained on such images{other}"
        )
    if network is not None and (given := check_network(network, images)) != description.network:
        raise InputError(f"{given} given with the weights of {description.network}; leave the network's name out")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
