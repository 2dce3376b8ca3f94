"""A trained network from its files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rkcnn.disk import MissingFile
from rkcnn.error import InputError, shorten
from rkcnn.evaluation.weights import NetworkDescription, read_record, read_weights
from rkcnn.model.network import period_features
from rkcnn.record.result import Result, parse_result, read_result
from rkcnn.record.source import training_hash
from rkcnn.run.settings import TRAINED, check_format
from rkcnn.run_folder import HUB_WEIGHTS, RESULT, WEIGHTS
from rkcnn.use.images import check_flags, read_array
from rkcnn.use.pretrained.catalogue import find_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

    from rkcnn.use.predict import Prediction


@dataclass(frozen=True, eq=False, repr=False)
class Classifier:
    """A trained network with what is needed to use it: its classes, and how its images were normalised."""

    network: nn.Module  # in evaluation mode; takes normalised images (N, channels, height, width), returns logits
    description: NetworkDescription  # of the network and of the images that it was trained on
    result: Result | None = None  # the record of the run that trained it, beside the weights or in their file

    @property
    def name(self) -> str:
        """The network's full name, as in RKCNN-R-2@k=32."""
        return self.description.network

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return self.description.classes

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for red, green and blue."""
        return self.description.channels

    @property
    def size(self) -> tuple[int, int]:
        """The height and width in pixels of the images that the network was trained on."""
        return self.description.size

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean of pixel / 255 of the training images, one for each channel."""
        return self.description.mean

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of pixel / 255 of the training images, one for each channel."""
        return self.description.std

    def normalise(self, images: Tensor | np.ndarray[Any, Any]) -> Tensor:
        """Return uint8 images (N, channels, height, width) as the float32 numbers that the network was trained on."""
        images = _as_tensor(images)
        if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] != self.channels:
            raise InputError(
                f"images of {images.dtype} and shape {tuple(images.shape)} given; {self.name} takes uint8 images of "
                f"shape (N, {self.channels}, height, width)"
            )
        mean, std = (torch.tensor(v, device=images.device).view(-1, 1, 1) for v in (self.mean, self.std))
        return (images / 255 - mean) / std

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the network to a folder as Hugging Face has it: model.safetensors, config.json and a model card."""
        from rkcnn.use.hub import save_pretrained

        if not isinstance(folder, str | Path) or not str(folder):
            raise InputError(f"`folder={folder!r}` given; it is the path of the folder to write, as in 'digits'")
        save_pretrained(self, Path(folder))

    @staticmethod
    def from_pretrained(name: str | Path, revision: str | None = None) -> Classifier:
        """Return the trained network of OWNER/NAME on Hugging Face, of a folder that `save_pretrained` wrote, or ours.

        Ours is a name in `rkcnn.list_pretrained()`.

        `revision` is a branch, a tag or a commit. Fetching needs the extra hub; what was fetched once is kept.
        """
        from rkcnn.use.hub import from_pretrained

        return from_pretrained(name, revision)

    @torch.no_grad()
    def __call__(self, images: Tensor | np.ndarray[Any, Any]) -> Tensor:
        """Return the logits (N, classes) of uint8 images (N, channels, height, width)."""
        weight = next(self.network.parameters())
        return self.network(self.normalise(_as_tensor(images).to(weight.device)).to(weight.dtype))

    def predict(
        self,
        pictures: str | Path | bytes | Image | np.ndarray[Any, Any] | Tensor | Iterable[Any],
        top: int = 3,
        *,
        invert: bool | None = None,
        skip_bad: bool = False,
    ) -> list[Prediction]:
        """Return what the network says about each picture: its most probable classes with their probabilities.

        pictures   a file (PNG, JPEG, WebP or BMP), a folder, which is searched with its subfolders, the bytes of a
                   file, a Pillow image, a uint8 array (height, width) or (height, width, channels), several of these as
                   (N, height, width, channels), or a list of any of them; a tensor has its channels first
        top        how many classes are named
        invert     exchange dark and light; without it, dark ink on light paper is recognised where the network was
                   trained on light on dark, as in MNIST
        skip_bad   leave out files that can't be read, instead of raising InputError at the first

        Pictures may have any size and mode. They are turned upright by their EXIF tag, scaled to cover the network's
        size and cropped to its middle.
        """
        from rkcnn.use.predict import Prediction, find_sources, predict_each

        check_flags(skip_bad=skip_bad)
        found = []
        for answer in predict_each(self, find_sources(pictures, self.channels), top, invert):
            if isinstance(answer, Prediction):
                found.append(answer)
            elif not skip_bad:
                raise InputError(f"{answer.reason}; `skip_bad=True` would leave it out")
        return found

    def prepare(
        self,
        pictures: str | Path | bytes | Image | np.ndarray[Any, Any] | Tensor | Iterable[Any],
        *,
        invert: bool | None = None,
    ) -> Tensor:
        """Return pictures as the network takes them, uint8 (N, channels, height, width), as `predict` prepares them.

        An exported file takes the same: `session.run(None, {"images": model.prepare("cat.png").numpy()})`. Raises
        InputError if a picture can't be read.
        """
        from rkcnn.use.predict import check_invert, find_sources, prepare_pictures

        check_invert(invert)
        return prepare_pictures(self, find_sources(pictures, self.channels), invert)

    def features(self, images: Tensor | np.ndarray[Any, Any]) -> list[Tensor]:
        """Return the features of each period, of shape (N, channels, height, width), for gradients and other tasks.

        `images` are (N, channels, height, width), as uint8, or as fractions from 0 to 1, to which gradients flow. The
        network stays as it was: no batch norm updates its running statistics. A published original, which has no
        periods, gives one tensor (N, width).
        """
        weight = next(self.network.parameters())
        images = _as_tensor(images).to(weight.device)
        if not images.is_floating_point():
            return period_features(self.network, self.normalise(images).to(weight.dtype))
        if images.dim() != 4 or images.shape[1] != self.channels:
            raise InputError(
                f"images of shape {tuple(images.shape)} given; give (N, {self.channels}, height, width), the channels "
                "second"
            )
        if images.numel():
            low, high = images.detach().aminmax()
            if not (low >= 0 and high <= 1):  # also where one of them is not a number
                raise InputError(f"floats from {low:g} to {high:g} given; give fractions from 0 to 1, or uint8")
        mean, std = (torch.tensor(v).view(-1, 1, 1).to(weight) for v in (self.mean, self.std))
        return period_features(self.network, (images.to(weight.dtype) - mean) / std)

    def __repr__(self) -> str:
        height, width = self.size
        count, some = len(self.classes), ", ".join(self.classes[:3]) + ", ..." * (len(self.classes) > 3)
        return f"<Classifier: {self.name}, images of {height} x {width} x {self.channels}, {count} classes ({some})>"


def _as_tensor(images: Tensor | np.ndarray[Any, Any]) -> Tensor:
    """Return images as a tensor, to which gradients flow if it is one already; InputError if they are neither."""
    if isinstance(images, Tensor):
        return images
    if isinstance(images, np.ndarray):
        return read_array(images, "images")
    raise InputError(
        f"images of type {type(images).__name__} given; give a tensor or an array, which `prepare` makes of pictures"
    )


def load(path: str | Path) -> Classifier:
    """Return the trained network of a run's folder, of a weights file, or of a name in `list_pretrained()`, on the CPU.

    As in `load("runs/mnist-mini/RKCNN-R-2@k=32/mini/seed-0")` and `load("RKCNN-R-2@k=32.mnist")`.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"a {type(path).__name__} given for a trained network; give {TRAINED}")
    if not str(path):
        raise InputError(f"an empty name given for a trained network; give {TRAINED}")
    try:
        weights, result = find_weights(Path(path))
    except OSError as error:  # as for a name that is longer than any file's
        raise InputError(f"{shorten(str(path))} can't be opened ({error.strerror}); give {TRAINED}") from None
    check_format(weights)
    network, description = read_weights(weights)
    if result is None and (record := read_record(weights)) is not None:
        result = parse_result(record, weights)
    if result is not None and result.run.network != description.network:
        raise InputError(f"{weights} holds {description.network}, and the run beside it is of {result.run.network}")
    if result is not None and (changed := _say_changed(result)):
        warnings.warn(changed, stacklevel=2)
    return Classifier(network, description, result)


def _say_changed(result: Result) -> str:
    """Return that a registered step or method is not the one that the network was trained with; empty if it is."""
    name, trained = result.run.network, result.source.partition("+")[2]
    if not trained:
        return ""
    try:
        here = training_hash(name).partition("+")[2]
    except InputError:  # where the source of a class can't be found, as in a shell
        return ""
    if here in ("", trained):
        return ""
    return (
        f"{name} was trained with another version of the step or method that is registered here ({trained}, not {here})"
    )


def find_weights(path: Path) -> tuple[Path, Result | None]:
    """Return the weights file of a run's folder, or `path` if it is one, and the result beside it or None.

    Of a name of pretrained weights, return their file in the package and the record that it holds.
    """
    pretrained = find_pretrained(path)
    if pretrained is not None:
        return pretrained.path, pretrained.result
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and (folder / HUB_WEIGHTS).exists():
        path = folder / HUB_WEIGHTS
    result = None
    with suppress(MissingFile):
        result = read_result(folder / RESULT)
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path} doesn't exist; give {TRAINED}")
        return path, result
    if result is None:
        raise InputError(f"{path} holds no {RESULT}; give the folder of a finished run (rkcnn runs lists them)")
    if not result.finished:
        raise InputError(f"{path} holds no weights: the run {result.status}")
    return folder / WEIGHTS, result
