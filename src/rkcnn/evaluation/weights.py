"""Weight files: trained weights with a description of the network, so that a file is enough to use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from rkcnn.data.images import Images
from rkcnn.disk import open_file, read_file
from rkcnn.error import InputError, shorten
from rkcnn.json_file import parse_json
from rkcnn.model.create import LARGEST, create_model
from rkcnn.model.families import FAMILIES
from rkcnn.model.limits import PARAMETERS, TooManyParameters, check_activations, limited_parameters, read_limit
from rkcnn.run_folder import WEIGHTS, is_checkpoint
from rkcnn.tensor_header import check_tensor_header

LONGEST_NAME = 1_000  # characters of a network's name
LARGEST_SIDE = 65536  # pixels of an image
LARGEST_WEIGHT = 1e18  # beyond it float32 soon overflows, and the network's answers are no numbers
LEAST_DEVIATION = 1e-9  # of std; one pixel of a billion that is 1 of 255 brighter than the others gives 1e-7
LARGEST_STATISTIC = 1e6  # of mean and std, which lie between 0 and 1 for any images
DTYPES = {"F64", "F32", "F16", "BF16", "I64"}  # of weights; the last for the counters of batch norms


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
    brightness: float | None = None  # the mean of grey training images, where `mean` is that of another set

    @staticmethod
    def of(network: str, images: Images) -> NetworkDescription:
        """Return the description of a network that was trained on these images."""
        _, channels, height, width = images.pixels.shape
        statistics = images.mean, images.std, images.brightness
        return NetworkDescription(network, channels, (height, width), images.classes, *statistics)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that say something."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def as_metadata(self) -> dict[str, str]:
        """Return the description as metadata of a safetensors file."""
        return {"rkcnn": json.dumps(self.as_dict())}

    def prepare(self, images: Images) -> Images:
        """Return the images with the normalisation that the network was trained with.

        Raises InputError if their channels, size or classes are not those of the network.
        """
        theirs = NetworkDescription.of(self.network, images)
        unknown = [name for name in theirs.classes if name not in self.classes]
        if unknown and theirs.classes != tuple(map(str, range(len(theirs.classes)))):
            few = ", ".join(map(repr, self.classes[:5])) + ", ..." * (len(self.classes) > 5)
            raise InputError(
                f"{images.name} doesn't fit {self.network}: it has the class {unknown[0]!r}, and the network was "
                f"trained on {few}"
            )
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


def pack_weights(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Return the content of a safetensors file, always the same for the same weights and metadata.

    The library alone writes metadata in another order each time.
    """
    content = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, dict(metadata))
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(metadata.items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text + content[start:]


def read_weights(path: Path) -> tuple[nn.Module, NetworkDescription]:
    """Return the network of a weight file in evaluation mode, and its description.

    Nothing that the file says is believed: a network with more parameters than the file holds is not built, and an
    image of the size that it names must fit into the limits on activations (`rkcnn.model.limits`).
    """
    _check_header(path)
    try:
        with safe_open(path, framework="np") as file:  # for the header alone; "pt" takes no path that is not UTF-8
            text = (file.metadata() or {}).get("rkcnn")
            if text is None:
                what = "a checkpoint" if is_checkpoint(path.name) else "not a weight file of rkcnn"
                raise InputError(f"{path} is {what}; give a finished run's folder or its {WEIGHTS}")
            description = _parse_description(path, text)
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            if odd := sorted({each.get_dtype() for each in found.values()} - DTYPES):
                raise InputError(f"{path} holds numbers of kind {odd[0][:20]}; weights are {', '.join(sorted(DTYPES))}")
            network = _build(path, description, {name: tuple(each.get_shape()) for name, each in found.items()})
            network.load_state_dict(_check_finite(path, load(read_file(path, path.stat().st_size))))
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path} can't be read as weights: {shorten(str(error))}; give a finished run's folder or its {WEIGHTS}"
        ) from None
    return network.eval(), description


def read_record(path: Path) -> str | None:
    """Return the record of the run, as JSON, in an exported weight file that `read_weights` takes; None without one.

    It is complete but for the epochs and the machine, which an export leaves out: here there are none.
    """
    with safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get("record")
    try:
        facts = parse_json(text, dict) if text not in (None, "null") else None
        if facts is not None and "epochs" not in facts:
            facts |= {"epochs": [], "machine": {}, "stretches": [{**each, "epochs": 0} for each in facts["stretches"]]}
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} holds a record of its run that can't be read: {error}; export the run again"
        ) from None
    return None if facts is None else json.dumps(facts)


def _check_finite(path: Path, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors; InputError if a number in them is not finite or can't be, as in no finished run."""
    for name, value in tensors.items():
        low = 0 if name.endswith("running_var") else -LARGEST_WEIGHT
        if value.is_floating_point() and not ((value >= low) & (value <= LARGEST_WEIGHT)).all():
            raise InputError(
                f"{path} holds numbers that are not finite, or that no training gives, in {shorten(name, 60)}; it is "
                f"damaged, or of another program: give a finished run's folder or its {WEIGHTS}"
            )
    return tensors


def _check_header(path: Path) -> None:
    """Raise InputError if the file is not a regular one, or if its header is larger than any of ours."""
    with open_file(path) as file:
        try:
            check_tensor_header(file)
        except ValueError as error:
            raise InputError(
                f"{path} can't be read as weights: {error}; give a finished run's folder or its {WEIGHTS}"
            ) from None


def _parse_description(path: Path, text: str) -> NetworkDescription:
    """Return the description that a file's metadata holds; InputError if it is not one, or if a number can't be."""
    try:
        values: dict[str, Any] = parse_json(text, dict)
        names = _FIELDS.keys() - {"brightness"}
        if values.keys() - {"brightness"} != names:
            raise ValueError(f"its description needs {', '.join(sorted(names))}")
        for name, value in values.items():
            fits, wanted = _FIELDS[name]
            if not fits(value):
                raise ValueError(f"{name} is {repr(value)[:60]}, and must be {wanted}")
        for name in ("mean", "std"):
            if len(values[name]) != values["channels"]:
                raise ValueError(f"{name} has {len(values[name])} numbers, and there are {values['channels']} channels")
    except ValueError as error:
        raise InputError(f"{path} doesn't say which network it holds: {error}") from None
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return NetworkDescription(**(values | lists))


def _build(path: Path, description: NetworkDescription, shapes: dict[str, tuple[int, ...]]) -> nn.Module:
    """Build the network of a description if it has the tensors of these names and shapes; InputError if it hasn't."""
    name = description.network
    other = InputError(f"{path} says that it holds {name}, but its weights are of another network")
    numbers = sum(map(prod, shapes.values()))
    try:
        with limited_parameters(name, numbers, len(shapes)):
            network = create_model(name, len(description.classes), description.channels)
    except TooManyParameters as error:
        raise (InputError(f"{path}: {error}") if numbers > read_limit(PARAMETERS) else other) from None
    except InputError as error:
        foreign = "; what is not part of the package must be registered first, from Python (rkcnn.register)"
        hint = "" if _is_known(name) else foreign
        raise InputError(f"{path} holds {name}, which can't be built here: {error}{hint}") from None
    if {name: tuple(value.shape) for name, value in network.state_dict().items()} != shapes:
        raise other
    if min(description.size) < network.smallest:
        raise InputError(
            f"{path} says that {name} was trained on images of {description.size[0]} x {description.size[1]}; the "
            f"smallest it can take is {network.smallest} x {network.smallest}"
        )
    try:
        check_activations(network, description.size)
    except InputError as error:
        raise InputError(f"{path}, with images of {description.size[0]} x {description.size[1]}: {error}") from None
    return network


def _is_known(name: str) -> bool:
    """Whether the family of a network's name, and its numerical method or other variant, are known."""
    first, *rest = name.partition("@")[0].split("-")
    family = next((each for known, each in FAMILIES.items() if known.lower() == first.lower()), None)
    return family is not None and (family.staged or "".join(rest[:1]).lower() in family.variants)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _are_numbers(value: object, above: float) -> bool:
    return isinstance(value, list) and all(
        type(each) in (int, float) and above < each <= LARGEST_STATISTIC for each in value
    )


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # whether a value of a description can be, and what can
    "network": (lambda value: isinstance(value, str) and 0 < len(value) <= LONGEST_NAME, "the name of a network"),
    "channels": (lambda value: _is_count(value, LARGEST), f"a whole number from 1 to {LARGEST}"),
    "size": (
        lambda value: isinstance(value, list) and [_is_count(side, LARGEST_SIDE) for side in value] == [True, True],
        f"a height and a width from 1 to {LARGEST_SIDE}",
    ),
    "classes": (
        lambda value: isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value),
        "a list of names",
    ),
    "mean": (lambda value: _are_numbers(value, -LARGEST_STATISTIC), "a list of finite numbers"),
    "std": (lambda value: _are_numbers(value, LEAST_DEVIATION), f"a list of finite numbers above {LEAST_DEVIATION}"),
    "brightness": (lambda value: type(value) in (int, float) and 0 <= value <= 1, "a number from 0 to 1"),
}


def _many(number: int, noun: str, ending: str) -> str:
    return f"{number} {noun}{ending * (number != 1)}"
