"""Weight files: trained weights with a description of the network, so that a file is enough to use it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.json_file import parse_json
from rkcnn.model.create import create_model
from rkcnn.run_folder import WEIGHTS, is_checkpoint


@dataclass(frozen=True)
class NetworkDescription:
    """The description of a network in its weight file: what is needed to build it and to feed it images.

    It holds no time and no path, so that equal runs give equal files.
    """

    network: str  # full name
    channels: int
    size: tuple[int, int]  # height and width
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # of pixel / 255, one for each channel
    std: tuple[float, ...]

    @staticmethod
    def of(network: str, images: Images) -> NetworkDescription:
        """Return the description of a network that was trained on these images."""
        _, channels, height, width = images.pixels.shape
        return NetworkDescription(network, channels, (height, width), images.classes, images.mean, images.std)

    def as_metadata(self) -> dict[str, str]:
        """Return the description as metadata of a safetensors file."""
        return {"rkcnn": json.dumps(asdict(self))}

    def prepare(self, images: Images) -> Images:
        """Return the images with the normalisation that the network was trained with.

        Raises InputError if their channels, size or classes are not those of the network.
        """
        theirs = NetworkDescription.of(self.network, images)
        for given, wanted in (
            (_many(theirs.channels, "channel", "s"), _many(self.channels, "channel", "s")),
            ("images of {} x {}".format(*theirs.size), "images of {} x {}".format(*self.size)),
            (_many(len(theirs.classes), "class", "es"), _many(len(self.classes), "class", "es")),
            *((f"class {one!r}", f"class {other!r}") for one, other in zip(theirs.classes, self.classes, strict=False)),
        ):
            if given != wanted:
                raise InputError(
                    f"{images.name} doesn't fit {self.network}: it has {given}, and the network was trained on {wanted}"
                )
        return replace(images, mean=self.mean, std=self.std)


def read_weights(path: Path) -> tuple[nn.Module, NetworkDescription]:
    """Return the network of a weight file in evaluation mode, and its description."""
    try:
        with safe_open(path, framework="pt") as file:
            description_json = (file.metadata() or {}).get("rkcnn")
            state: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path} can't be read as weights: {error}; give a finished run's folder or its {WEIGHTS}"
        ) from None
    if description_json is None:
        what = "a checkpoint" if is_checkpoint(path.name) else "not a weight file of rkcnn"
        raise InputError(f"{path} is {what}; give a finished run's folder or its {WEIGHTS}")
    try:
        values: dict[str, Any] = parse_json(description_json, dict)
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        description = NetworkDescription(**values)
        network = create_model(description.network, len(description.classes), description.channels)
    except InputError as error:
        raise InputError(
            f"{path} holds {description.network}, which can't be built here: {error}; a family from outside the "
            "package must be registered first, from Python (rkcnn.register)"
        ) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} doesn't say which network it holds: {error}") from None
    try:
        network.load_state_dict(state)
    except RuntimeError:
        raise InputError(
            f"{path} says that it holds {description.network}, but its weights are of another network"
        ) from None
    return network.eval(), description


def _many(number: int, noun: str, ending: str) -> str:
    return f"{number} {noun}{ending * (number != 1)}"
