"""Trained weights: a file that says what it is, and the network out of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.run_folder import WEIGHTS, is_checkpoint


@dataclass(frozen=True)
class Facts:
    """What a weight file says of itself: enough to use it, and no time or path, so that equal runs are equal files."""

    network: str
    channels: int
    size: tuple[int, int]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @staticmethod
    def of(network: str, images: Images) -> Facts:
        """A network that was trained on such images."""
        _, channels, height, width = images.pixels.shape
        return Facts(network, channels, (height, width), images.classes, images.mean, images.std)

    def as_metadata(self) -> dict[str, str]:
        return {"rkcnn": json.dumps(asdict(self))}

    def fit(self, images: Images) -> Images:
        """The images, normalised as those the network was trained on; a sentence if they are not of that kind."""
        theirs = Facts.of(self.network, images)
        for given, wanted in (
            (_many(theirs.channels, "channel", "s"), _many(self.channels, "channel", "s")),
            ("images of {} x {}".format(*theirs.size), "images of {} x {}".format(*self.size)),
            (_many(len(theirs.classes), "class", "es"), _many(len(self.classes), "class", "es")),
            *((f"class {one!r}", f"class {other!r}") for one, other in zip(theirs.classes, self.classes, strict=False)),
        ):
            if given != wanted:
                raise InputError(
                    f"{images.name} doesn't fit {self.network}: it has {given}, and the network learnt {wanted}"
                )
        return replace(images, mean=self.mean, std=self.std)


def read_weights(path: Path) -> tuple[nn.Module, Facts]:
    """The network of a weight file, ready to be asked, and what the file says of it."""
    try:
        with safe_open(path, framework="pt") as file:
            told = (file.metadata() or {}).get("rkcnn")
            state: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} can't be read as weights: {error}") from None
    if told is None:
        what = "a checkpoint" if is_checkpoint(path.name) else "not a weight file of rkcnn"
        raise InputError(f"{path} is {what}; give a finished run's folder or its {WEIGHTS}")
    try:
        given: dict[str, Any] = json.loads(told)
        given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        facts = Facts(**given)
        network = create_model(facts.network, len(facts.classes), facts.channels)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} doesn't say of which network it is: {error}") from None
    try:
        network.load_state_dict(state)
    except RuntimeError:
        raise InputError(f"{path} says it is of {facts.network}, and holds weights of another network") from None
    return network.eval(), facts


def _many(number: int, noun: str, ending: str) -> str:
    return f"{number} {noun}{ending * (number != 1)}"
