"""What a trained network says about pictures: files, folders, Pillow images or arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rkcnn.data.picture import (
    Found,
    Picture,
    PictureFormat,
    find_pictures,
    fit_array,
    fit_picture,
    read_bytes,
    read_picture,
)
from rkcnn.error import InputError
from rkcnn.model.fused import FusedNetwork

if TYPE_CHECKING:
    from PIL.Image import Image

    from rkcnn.use.load import Classifier

FORMS = "files, folders, the bytes of a file, Pillow images or arrays"
BATCH = 64  # pictures that are classified together

ReadPicture = Callable[[str, PictureFormat, bool | None], Picture]
"""Reads a picture, given its name for messages, what the network takes, and whether it is inverted."""


class Answer(NamedTuple):
    """A class and its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What a network says about one picture."""

    picture: str  # the file, or the number of a picture that is none
    top: tuple[Answer, ...]  # the most probable classes with their probabilities, the best first
    inverted: bool  # the picture was dark on light paper, and was turned into light on dark as the network knows it

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.top[0].label

    @property
    def probability(self) -> float:
        """The probability of that class."""
        return self.top[0].probability


@dataclass(frozen=True)
class PictureSource:
    """A picture that has not been read yet."""

    name: str  # of its file; empty for a picture that is none
    read: ReadPicture


class Unreadable(NamedTuple):
    """A picture that can't be read, with the reason in one sentence that names it."""

    picture: str
    reason: str


def prepare_pictures(classifier: Classifier, sources: Sequence[PictureSource], invert: bool | None) -> Tensor:
    """Read pictures and return them as the network takes them, uint8 (N, channels, height, width)."""
    wanted = _find_format(classifier)
    names = [source.name or f"picture {number}" for number, source in enumerate(sources, 1)]
    return _stack([source.read(name, wanted, invert) for source, name in zip(sources, names, strict=True)])


def predict_each(
    classifier: Classifier, sources: Sequence[PictureSource], top: int, invert: bool | None = None
) -> Iterator[Prediction | Unreadable]:
    """Yield what the network says about each picture, in their order; they are read and classified in batches."""
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 1:
        raise InputError(f"`top={top!r}` given; give the number of classes to name, 1 or more")
    check_invert(invert)
    wanted = _find_format(classifier)
    network = fuse_for(classifier, len(sources))
    for start in range(0, len(sources), BATCH):
        read: list[Picture | Unreadable] = []
        for number, source in enumerate(sources[start : start + BATCH], start + 1):
            name = source.name or f"picture {number}"
            try:
                read.append(source.read(name, wanted, invert))
            except InputError as error:
                read.append(Unreadable(name, str(error)))
        pictures = [each for each in read if isinstance(each, Picture)]
        answers = iter(_classify(classifier, network, pictures, top) if pictures else ())
        yield from (next(answers) if isinstance(each, Picture) else each for each in read)


def _find_format(classifier: Classifier) -> PictureFormat:
    known = classifier.description
    return PictureFormat.of(known.size, known.mean, known.classes, known.brightness)


def check_invert(invert: object) -> None:
    """Raise InputError unless it is True, False, or None: recognised."""
    if not isinstance(invert, bool | None):
        raise InputError(f"`invert={invert!r}` given; it is True, False, or None where each picture decides")


def fuse_for(classifier: Classifier, pictures: int) -> FusedNetwork:
    """Return the classifier's network for inference on so many pictures, in its own precision and on its own device."""
    return FusedNetwork(classifier.network, images=pictures, size=classifier.size)


def _classify(classifier: Classifier, network: FusedNetwork, pictures: Sequence[Picture], top: int) -> list[Prediction]:
    weight = next(network.parameters())
    logits = network(classifier.normalise(_stack(pictures).to(weight.device)).to(weight.dtype))
    probabilities = logits.double().softmax(1).cpu()
    best = probabilities.topk(min(top, len(classifier.classes)), 1)
    return [
        Prediction(
            picture.name,
            tuple(Answer(classifier.classes[i], p) for i, p in zip(places, values, strict=True)),
            picture.inverted,
        )
        for picture, places, values in zip(pictures, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _stack(pictures: Sequence[Picture]) -> Tensor:
    return torch.from_numpy(np.stack([picture.pixels for picture in pictures])).permute(0, 3, 1, 2).contiguous()


def find_sources(pictures: object, channels: int) -> list[PictureSource]:
    """Return the pictures in what `Classifier.predict` takes, for a network of so many channels.

    Files are not opened yet. Raises InputError for what can't be a picture, and where there is none.
    """
    from PIL.Image import Image

    if isinstance(pictures, str) and not pictures:
        raise InputError(f"an empty name given for a picture; give {FORMS}")
    if isinstance(pictures, (str, Path)):
        return list_sources(find_pictures(Path(pictures)))
    if isinstance(pictures, bytes):
        return [PictureSource("", partial(read_bytes, pictures))]
    if isinstance(pictures, Image):
        return [PictureSource("", partial(_fit_copy, pictures))]
    if isinstance(pictures, (np.ndarray, Tensor)):
        return [PictureSource("", partial(fit_array, pixels)) for pixels in _split_array(pictures, channels)]
    if isinstance(pictures, Iterable):
        found = [source for picture in pictures for source in find_sources(picture, channels)]
        if found:
            return found
        raise InputError(f"no picture given; give {FORMS}")
    raise InputError(f"a picture of type {type(pictures).__name__} given; give {FORMS}")


def list_sources(found: Found) -> list[PictureSource]:
    """Return the pictures of a folder, and those of its folders that can't be read, as if they were pictures."""
    folders = [PictureSource(str(path), partial(_refuse, reason)) for path, reason in found.unreadable.items()]
    return [*map(file_source, found.pictures), *folders]


def _refuse(reason: str, *_: object) -> Picture:
    raise InputError(reason)


def file_source(path: Path) -> PictureSource:
    """Return the picture in a file."""
    return PictureSource(str(path), lambda name, wanted, invert: read_picture(path, wanted, invert))


def _fit_copy(image: Image, name: str, wanted: PictureFormat, invert: bool | None) -> Picture:
    return fit_picture(image.copy(), name, wanted, invert)


def _split_array(array: np.ndarray[Any, Any] | Tensor, channels: int) -> list[np.ndarray[Any, Any]]:
    """Return the pictures of an array, uint8 (height, width) or with 1 or 3 channels last.

    A tensor has its channels first, and so may an array, if its last length is not 1 or 3. Three lengths without
    channels are several grey pictures, unless the last is 2 or 4: that is one picture with transparency. For a network
    of grey images, (3, height, width) could be both, and is refused.
    """
    pixels = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
    first, last = (pixels.ndim >= 3 and pixels.shape[axis] in (1, 3) for axis in (-3, -1))
    if (
        pixels.dtype != np.uint8
        or not 2 <= pixels.ndim <= 4
        or 0 in pixels.shape
        or (pixels.ndim == 4 and not first | last)
        or (pixels.ndim == 3 and not first and pixels.shape[-1] in (2, 4))
    ):
        hint = "; for fractions from 0 to 1 that is (255 * x).round() as uint8" * (pixels.dtype.kind == "f")
        raise InputError(
            f"pictures as {pixels.dtype} of shape {pixels.shape} given; give uint8 of shape (height, width), (height, "
            "width, channels), (N, height, width, channels) or (N, channels, height, width) with 1 or 3 channels"
            f"{hint}"
        )
    first = first and (isinstance(array, Tensor) or not last)
    if first and channels == 1 and pixels.ndim == 3 and pixels.shape[0] == 3:
        raise InputError(
            f"pictures of shape {pixels.shape} given, which are three grey ones or one with colours first; give "
            f"(3, 1, {pixels.shape[1]}, {pixels.shape[2]}) or (1, 3, {pixels.shape[1]}, {pixels.shape[2]})"
        )
    if first:
        pixels = np.moveaxis(pixels, -3, -1)
    elif not last and pixels.ndim == 3:
        return list(pixels)
    return list(pixels) if pixels.ndim == 4 else [pixels]
