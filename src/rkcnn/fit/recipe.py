"""How a network is trained: named values in one place. Imports no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any

from rkcnn.error import InputError

CHOICES = {
    "schedule": ("steps", "triangle"),
    "init": ("frame", "torch", "he"),
    "precision": ("fp32", "tf32", "bf16"),
}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a run computes, beside its data, network and seed.

    `steps` divides lr by 10 when each milestone's epochs are done; `triangle` rises from 0 to lr at `peak` of the
    run and falls to 0 at its end, step by step.
    """

    name: str
    epochs: int
    batch: int
    lr: float
    schedule: str = "steps"
    milestones: tuple[int, ...] = ()
    peak: float = 0.25
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0  # on every parameter, norms and biases too
    dropout: float = 0.0
    label_smoothing: float = 0.0
    padding: int = 0
    flip: bool = False
    cutout: int = 0
    drop_last: bool = False
    init: str = "frame"  # torch's defaults for one period, He and Xavier for several
    average: float = 0.0  # decay of the running average of the weights that is evaluated; 0 evaluates the weights
    precision: str = "fp32"
    sync_norm: bool = False  # batch norm takes the statistics of all ranks, not of each rank's share of the batch
    most_steps: int = 0  # an epoch ends after so many, where it would be longer; 0 sets no end

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"recipe {self.name}: {name}={getattr(self, name)} given; it is one of {', '.join(choices)}"
                )
        bounds: dict[str, tuple[float, float]] = {
            "epochs": (1, 1e6),
            "batch": (1, 1e7),
            "lr": (0, 1e4),
            "peak": (0, 1),
            "momentum": (0, 1),
            "weight_decay": (0, 1e3),
            "dropout": (0, 0.999),
            "label_smoothing": (0, 1),
            "padding": (0, 1e3),
            "cutout": (0, 1e4),
            "most_steps": (0, 1e9),
            "average": (0, 0.999999),
        }
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            if not isfinite(value) or not low <= value <= high:
                raise InputError(f"recipe {self.name}: {name}={value} given; it must be from {low:g} to {high:g}")
        if min(self.milestones, default=1) < 1:
            given = "_".join(map(str, self.milestones))
            raise InputError(f"recipe {self.name}: milestones={given} given; each must be a number of epochs from 1 on")

    def lr_at(self, epoch: int, step: int, steps: int) -> float:
        """The learning rate of a step of an epoch of that many steps."""
        if self.schedule == "steps":
            return self.lr * 0.1 ** sum(epoch >= milestone for milestone in self.milestones)
        done = (epoch + step / steps) / self.epochs
        return self.lr * (done / self.peak if done < self.peak else (1 - done) / (1 - self.peak))

    def changes(self) -> dict[str, Any]:
        """The fields that were overridden, compared with the recipe of that name."""
        own = RECIPES[self.name]
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(own, f.name)}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """As mini,epochs=2: the recipe's name and the fields that were overridden."""
        named = RECIPES.get(self.name, self)
        values = {
            field.name: (_text(getattr(self, field.name)), _text(getattr(named, field.name))) for field in fields(self)
        }
        return ",".join([self.name, *(f"{name}={ours}" for name, (ours, theirs) in values.items() if ours != theirs)])


def paper_mnist() -> Recipe:
    """The paper on MNIST (SPEC 5): 160 epochs of SGD, lr / 10 at 60, 100, 140, random crop, no decay.

    rkcnn train RKCNN-R-2@k=32 --data mnist --recipe paper-mnist
    Ten runs side by side take 6 minutes on one H200 (0.47 ms a run's step). 0.360 +- 0.031 % in the last epoch, 0.318
    in the best (n = 5; results/mnist); the paper: 0.308 (best epoch, mean of 5).
    """
    return Recipe("paper-mnist", epochs=160, batch=128, lr=0.1, milestones=(60, 100, 140), padding=4, drop_last=True)


def paper_cifar() -> Recipe:
    """The paper on CIFAR-10 and -100 (SPEC 5): 300 epochs, batch 32, Nesterov, lr / 10 at 150 and 225, crop and flip.

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
    """The paper on SVHN (SPEC 5): 40 epochs of 604,388 images, dropout 0.2, lr / 10 at 20 and 30, no augmentation.

    rkcnn train RKCNN-I-2_2_2@k=120 --data svhn+extra --recipe paper-svhn
    About 2 hours on one H200, reckoned from paper-cifar's 10 ms for a quarter of the batch, not timed.
    The paper: 1.64 % (best epoch, mean of 3).
    """
    return Recipe(
        "paper-svhn", epochs=40, batch=128, lr=0.1, milestones=(20, 30), nesterov=True, weight_decay=1e-4, dropout=0.2
    )


def mini() -> Recipe:
    """Real digits in about two minutes on two CPU cores: the bundled 10,000 images of mnist-mini.

    rkcnn train
    1.30 % of 2,000 held-out digits in the last epoch, in 1:17 (one run, seed 0; results/mnist-mini).
    """
    return Recipe("mini", epochs=18, batch=128, lr=0.1, milestones=(9, 14), padding=4, drop_last=True)


def fast_cifar() -> Recipe:
    """CIFAR-10 in a few minutes on one GPU: large batch, triangular lr, label smoothing, cutout, bf16.

    rkcnn train RKCNN-I-2_2_2@k=120 --data cifar10 --recipe fast-cifar
    92 s on one H200, of which 28 s compiling; 5.86 % in the last epoch (one run, seed 0; results/cifar10).
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


def fast_mnist() -> Recipe:
    """The paper's MNIST recipe in an eighth of its epochs, for a first look at a table.

    rkcnn train RKCNN-R-2@k=32 --data mnist --recipe fast-mnist
    45 s of steps for ten runs side by side on one H200; this gave 0.41 % (last epoch, five seeds).
    """
    return replace(paper_mnist(), name="fast-mnist", epochs=20, milestones=(8, 13, 17))


def fast_svhn() -> Recipe:
    """fast-cifar for digits, which must not be flipped, on the 73,257 images of SVHN's training set.

    rkcnn train RKCNN-I-2_2_2@k=120 --data svhn --recipe fast-svhn
    About a minute on one H200 at fast-cifar's 30,500 images/s. Its error is not measured yet.
    """
    return replace(fast_cifar(), name="fast-svhn", epochs=15, flip=False)


def smoke() -> Recipe:
    """Forty small steps: shows that a network trains, and says nothing about how well.

    rkcnn train RKCNN-R-2@k=32 --data mnist-mini --recipe smoke
    Seconds, at 75 to 90 % wrong.
    """
    return Recipe("smoke", epochs=1, batch=32, lr=0.1, padding=4, drop_last=True, most_steps=40)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        paper_mnist(),
        paper_cifar(),
        paper_svhn(),
        mini(),
        fast_mnist(),
        fast_cifar(),
        fast_svhn(),
        smoke(),
    )
}


def _text(value: object) -> str:
    return "_".join(map(str, value)) if isinstance(value, tuple) else str(value)


def recipe_of(name: str, changes: dict[str, str] | None = None) -> Recipe:
    """A named recipe with some of its fields changed, each given as text."""
    if name not in RECIPES:
        near = get_close_matches(name, RECIPES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InputError(f"no recipe {name!r}{hint}; recipes are {', '.join(RECIPES)}")
    return replace(RECIPES[name], **{field: _read(field, text) for field, text in (changes or {}).items()})


def _read(field: str, text: str) -> Any:
    kinds = {f.name: f.type for f in fields(Recipe) if f.name != "name"}
    if field not in kinds:
        near = get_close_matches(field, kinds, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InputError(f"a recipe has no field {field!r}{hint}; its fields are {', '.join(kinds)}")
    try:
        match kinds[field]:
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "bool":
                return {"on": True, "true": True, "off": False, "false": False}[text.lower()]
            case "str":
                return text
            case _:
                return tuple(int(number) for number in text.split("_") if number)
    except (ValueError, KeyError):
        wanted = {"int": "a whole number", "float": "a number", "bool": "on or off"}
        kind = wanted.get(str(kinds[field]), "whole numbers joined by _")
        raise InputError(f"recipe field {field}={text} given; it must be {kind}") from None
