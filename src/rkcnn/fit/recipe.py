"""Recipes: how a network is trained, as named values in one place. Imports no torch."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from numbers import Integral, Real
from typing import Any

from rkcnn.error import InputError, did_you_mean

OWN_STEPS = 1500  # of the recipe `own`
OWN_EPOCHS = (15, 200)  # the fewest and the most of the recipe `own`
MOST_EPOCHS = 15_000  # of any recipe: a record holds each epoch and can be read up to a size (rkcnn.json_file.LONG)

CHOICES = {
    "schedule": ("steps", "triangle"),
    "init": ("paper", "torch", "he"),
    "precision": ("fp32", "tf32", "bf16"),
}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a run computes, apart from its data, network and seed.

    The schedule `steps` divides lr by 10 after each milestone's epochs; `triangle` raises it, step by step, from 0 to
    lr at the fraction `peak` of the run, and lowers it to 0 at the end.
    """

    name: str  # of the recipe that it is, or was before fields were changed
    epochs: int
    batch: int  # images of a step, on all ranks together
    lr: float  # the highest learning rate
    schedule: str = "steps"  # of the learning rate: steps or triangle
    milestones: tuple[int, ...] = ()  # epochs after which the schedule `steps` divides lr by 10
    peak: float = 0.25  # where the schedule `triangle` reaches lr, as a fraction of the run
    momentum: float = 0.9
    nesterov: bool = False  # Nesterov's momentum
    weight_decay: float = 0.0  # on every parameter, also on those of norms and on biases unless decay_norms is off
    dropout: float = 0.0  # rate after each convolution of the network's blocks
    label_smoothing: float = 0.0  # probability that is spread evenly over all classes
    padding: int = 0  # black pixels on each side, from which an image of the old size is cropped at random
    flip: bool = False  # mirror an image left to right, with probability 1/2
    cutout: int = 0  # side, in pixels, of a random square that is blackened; 0: none
    drop_last: bool = False  # leave out the last batch of an epoch if it is not full
    init: str = "paper"  # paper: torch's defaults for one period, He and Xavier for several
    ema_decay: float = 0.0  # decay of a running average of the weights, which is then evaluated; 0: none
    precision: str = "fp32"  # fp32, tf32 or bf16
    sync_norm: bool = False  # batch norm uses the batch of all ranks, not each rank's share of it
    max_steps_per_epoch: int = 0  # the most steps of an epoch; 0: as many as the data has
    recompute_norms: bool = False  # evaluate with batch norm statistics computed anew from training images
    weigh_classes: bool = False  # weigh the loss of an image by 1 / (images of its class), with a mean of 1
    head_only: bool = False  # train the classifier alone; all other weights and the norms' statistics stay
    cutmix: float = 0.0  # probability that a rectangle of an image comes from another one, whose label counts by area
    decay_norms: bool = True  # weight_decay acts on the parameters of norms and on biases too
    initial_weights: str = ""  # first 12 digits of the sha256 of the weight file it starts from; empty: new weights

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, convert_value(field.name, getattr(self, field.name)))
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", self.name):  # it is part of a folder's name
            raise InputError(
                f"recipe name {self.name!r} given; it begins with a letter or digit, and -, _, . and + may follow"
            )
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InputError(f"recipe {self.name}: {name}={value} given; it is one of {', '.join(choices)}")
        counts = {"epochs": MOST_EPOCHS, "batch": 1e7}
        amounts = {"lr": 1e4, "weight_decay": 1e3, "padding": 1e3, "cutout": 1e4, "max_steps_per_epoch": 1e9}
        shares = {
            "peak": 0.999,
            "momentum": 1,
            "label_smoothing": 1,
            "cutmix": 1,
            "dropout": 0.999,
            "ema_decay": 0.999999,
        }
        for name, high in (counts | amounts | shares).items():
            low, value = int(name in counts), getattr(self, name)
            if not isfinite(value) or not low <= value <= high:
                raise InputError(f"recipe {self.name}: {name}={value} given; it must be from {low} to {high:g}")
        if min(self.milestones, default=1) < 1:
            given = "_".join(map(str, self.milestones))
            raise InputError(f"recipe {self.name}: milestones={given} given; each must be a number of epochs from 1 on")

    def lr_at(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of one step in an epoch of `steps` steps."""
        if self.schedule == "steps":
            return self.lr * 0.1 ** sum(epoch >= milestone for milestone in self.milestones)
        done = (epoch + step / steps) / self.epochs
        return self.lr * (done / self.peak if done < self.peak else (1 - done) / (1 - self.peak))

    def describe_schedule(self) -> str:
        """Return the learning rate over the run in words."""
        if self.schedule == "triangle":
            return f"lr rises to {self.lr:g} at {100 * self.peak:.0f} % of the run and falls to 0"
        reached = [str(milestone) for milestone in self.milestones if milestone < self.epochs]
        times = " and ".join(filter(None, (", ".join(reached[:-1]), *reached[-1:])))
        return f"lr {self.lr:g}" + f", divided by 10 after epoch{'s' * (len(reached) > 1)} {times}" * bool(reached)

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from the recipe of that name, or from the defaults if there is none."""
        named = RECIPES.get(self.name)
        usual = vars(named) if named else {field.name: field.default for field in fields(self)} | {"name": self.name}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    def describe_precision(self) -> str:
        """Return the recipe's name and other changed fields with its precision in words: mini,epochs=2 in fp32."""
        usual = RECIPES.get(self.name, Recipe).precision
        return f"{replace(self, precision=usual)} in {self.precision}"

    def __str__(self) -> str:
        """Return the recipe's name and the fields that differ, as in mini,epochs=2."""
        texts = ("_".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in self.changes().values())
        return ",".join([self.name, *map("=".join, zip(self.changes(), texts, strict=True))])


KINDS = {field.name: str(field.type) for field in fields(Recipe)}
"""The kind of each field's value: str, int, float, bool or tuple[int, ...]."""


def convert_value(name: str, value: Any) -> Any:
    """Return the value of a recipe's field as Python's own number, bool, str or tuple; numbers may be NumPy's.

    Raises InputError if it is of another kind than the field.
    """
    kind, number = KINDS[name], isinstance(value, Real) and not isinstance(value, bool)
    if kind == "int" and number and isinstance(value, Integral):
        return int(value)
    if kind == "float" and number:
        return float(value)
    if (kind == "bool" and isinstance(value, bool)) or (kind == "str" and isinstance(value, str)):
        return value
    if kind.startswith("tuple") and isinstance(value, tuple | list) and all(isinstance(n, Integral) for n in value):
        return tuple(int(n) for n in value)
    wanted = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "text"}
    raise InputError(f"`{name}={value!r}` given; it must be {wanted.get(kind, 'a tuple of whole numbers')}")


def paper_mnist() -> Recipe:
    """The paper on MNIST (docs/spec.md, 5): 160 epochs of SGD, lr / 10 at 60, 100, 140, random crop, no decay.

    rkcnn train RKCNN-R-2@k=32 --data mnist --recipe paper-mnist
    Ten runs side by side take 6 minutes on one H200 (0.47 ms a run's step). 0.360 +- 0.031 % in the last epoch, 0.318
    in the best (n = 5; results/mnist); the paper: 0.308 (best epoch, mean of 5).
    """
    return Recipe("paper-mnist", epochs=160, batch=128, lr=0.1, milestones=(60, 100, 140), padding=4, drop_last=True)


def paper_cifar() -> Recipe:
    """The paper on CIFAR-10 and -100 (docs/spec.md, 5): 300 epochs, lr / 10 at 150 and 225, crop and flip.

    The batch is 32, and momentum is Nesterov's.

    rkcnn train RKCNN-I-2_2_2@k=120 --data cifar10 --recipe paper-cifar
    About 80 minutes on one H200 (10 ms a step in fp32). The paper: 4.41 % on CIFAR-10 (best epoch, mean of 3).
    """
    return Recipe(
        "paper-cifar",
        epochs=300,
        batch=32,
        lr=0.1,
        milestones=(150, 225),
        nesterov=True,
        weight_decay=1e-4,
        padding=4,
        flip=True,
    )


def paper_svhn() -> Recipe:
    """The paper on SVHN (docs/spec.md, 5): 40 epochs of 604,388 images, dropout 0.2, lr / 10 at 20 and 30.

    Images are not augmented.

    rkcnn train RKCNN-I-2_2_2@k=120 --data svhn+extra --recipe paper-svhn
    About 2 hours on one H200: not timed, but estimated from paper-cifar's 10 ms for a quarter of the batch.
    The paper: 1.64 % (best epoch, mean of 3).
    """
    return Recipe(
        "paper-svhn", epochs=40, batch=128, lr=0.1, milestones=(20, 30), nesterov=True, weight_decay=1e-4, dropout=0.2
    )


def mini() -> Recipe:
    """Real digits in about two minutes on two CPU cores, with the bundled 10,000 images of mnist-mini.

    rkcnn train
    1.30 % of 2,000 held-out digits in the last epoch, in 1:17 (one run, seed 0; results/mnist-mini).
    """
    return Recipe("mini", epochs=18, batch=128, lr=0.1, milestones=(9, 14), padding=4, drop_last=True)


def fast_cifar() -> Recipe:
    """CIFAR-10 in a few minutes on one GPU: a large batch, a triangular lr, label smoothing, cutout and bf16.

    rkcnn train RKCNN-I-2_2_2@k=120 --data cifar10 --recipe fast-cifar
    Three runs side by side took 205 s of steps on one H200, part of it beside tests; 5.82 +- 0.02 % in the last epoch
    (n = 3; results/cifar10).
    """
    return Recipe(
        "fast-cifar",
        epochs=40,
        batch=256,
        lr=0.4,
        schedule="triangle",
        nesterov=True,
        weight_decay=5e-4,
        label_smoothing=0.1,
        padding=4,
        flip=True,
        cutout=12,
        drop_last=True,
        precision="bf16",
    )


def best_cifar() -> Recipe:
    """CIFAR-10 and -100 in four to five minutes on one GPU: fast-cifar for longer, with CutMix instead of cutout.

    Half of its learning rate, and norms and biases that don't decay. Its fields were chosen on 10,000 held-out training
    images of CIFAR-10 (docs/performance.md), never on the test set.

    rkcnn train RKCNN-I-2_2_2@k=120 --data cifar10 --recipe best-cifar
    39,000 steps of 5.9 ms, three runs side by side on one H200; 4.06 +- 0.23 % in the last epoch (n = 3;
    benchmarks/records/trainings/best-cifar).
    """
    return replace(fast_cifar(), name="best-cifar", epochs=200, lr=0.2, cutout=0, cutmix=0.5, decay_norms=False)


def fast_mnist() -> Recipe:
    """The paper's MNIST recipe with an eighth of its epochs, for a first look at a table.

    rkcnn train RKCNN-R-2@k=32 --data mnist --recipe fast-mnist
    45 s of steps for ten runs side by side on one H200; 0.41 % in the last epoch (five seeds).
    """
    return replace(paper_mnist(), name="fast-mnist", epochs=20, milestones=(8, 13, 17))


def fast_svhn() -> Recipe:
    """fast-cifar without flips, which would spoil digits, for the 73,257 images of SVHN's training set.

    rkcnn train RKCNN-I-2_2_2@k=120 --data svhn --recipe fast-svhn
    About a minute on one H200 at fast-cifar's 27,800 images/s. Its error is not measured yet.
    """
    return replace(fast_cifar(), name="fast-svhn", epochs=15, flip=False)


def own(images: int = 1000, channels: int = 3) -> Recipe:
    """A user's own images: batch and epochs follow from how many there are to train on.

    The batch is the power of 2 next below a twentieth of the images, from 16 to 128. Epochs are as many as make
    OWN_STEPS steps, from OWN_EPOCHS[0] to OWN_EPOCHS[1]. Images of one channel, often digits, letters or scans, are not
    flipped.

    rkcnn train --data folder:photos --split 0.2
    docs/own-images.md has the errors and times of two real sets.
    """
    batch = next((size for size in (128, 64, 32) if images >= 20 * size), 16)
    steps = max(1, images // batch)
    return Recipe(
        "own",
        epochs=min(max(round(OWN_STEPS / steps), OWN_EPOCHS[0]), OWN_EPOCHS[1]),
        batch=min(batch, images),
        lr=0.1,
        schedule="triangle",
        nesterov=True,
        weight_decay=5e-4,
        padding=4,
        flip=channels > 1,
        drop_last=True,
        init="he",
        recompute_norms=True,
    )


def smoke() -> Recipe:
    """Forty small steps that show that a network trains, and not how well.

    rkcnn train RKCNN-R-2@k=32 --data mnist-mini --recipe smoke
    A few seconds; 75 to 90 % of the answers are wrong.
    """
    return Recipe("smoke", epochs=1, batch=32, lr=0.1, padding=4, drop_last=True, max_steps_per_epoch=40)


_PAPERS = (paper_mnist(), paper_cifar(), paper_svhn())
_OURS = (mini(), fast_mnist(), fast_cifar(), fast_svhn(), best_cifar(), own(), smoke())
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*_PAPERS, *_OURS)}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of that name."""
    if name not in RECIPES:
        raise InputError(f"no recipe {name!r}{did_you_mean(name, RECIPES)}; recipes are {', '.join(RECIPES)}")
    return RECIPES[name]
