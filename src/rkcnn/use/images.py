"""Images for training and evaluation: from the name of a data set, from arrays, or given as `Images`."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rkcnn.data.histogram import mean_and_deviation
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.options import OwnOptions, SplitOptions
from rkcnn.data.progress import Progress
from rkcnn.data.read.labelled_pixels import hash_labels
from rkcnn.data.read.npz import MOST_LABELS
from rkcnn.data.split import Places, check_split, divide, place_images
from rkcnn.error import InputError

Array = np.ndarray[Any, Any] | Tensor
Labelled = tuple[Array, Array | list[int]]
"""Pixels and labels: uint8 of shape (N, height, width), or with 1 or 3 channels last or second; and whole numbers."""
Data = str | Labelled | tuple[Labelled, Labelled] | tuple[Images, Images]
"""The name of a data set, arrays (x, y), ((x_train, y_train), (x_test, y_test)), or the `Images` of both sets."""

FORMS = "a name such as 'mnist', (x, y), ((x_train, y_train), (x_test, y_test)) or two Images"


def load_images(
    data: Data = "mnist-mini",
    *,
    size: int | Literal["auto"] | None = None,
    split: float | None = None,
    skip_bad: bool = False,
    keys: str | None = None,
    channels: Literal[1, 3] | None = None,
    progress: bool = True,
) -> tuple[Images, Images]:
    """Return the training images and the test images of a data set.

    data       a name of `rkcnn data list`, "folder:PATH" with a subfolder for each class, or "npz:PATH"; or arrays,
               ((x_train, y_train), (x_test, y_test)) or (x, y), of NumPy or torch: uint8 pixels of shape
               (N, height, width) or with 1 or 3 channels last or second, and whole numbers from 0 on as labels
    size       side of the square in pixels that a folder's images are resized and cropped to (32 if not given), or
               "auto": the median of their shorter sides, from 16 to 64
    split      the share of images that becomes the test set, chosen by their content, for a folder, file or (x, y) that
               has none; every class has images in both sets
    skip_bad   leave out a folder's images that can't be read, instead of refusing the folder
    keys       the names that an .npz file has for its arrays, as in "x_train=pictures,y_train=kinds"; without it
               x_train, y_train, x_test, y_test and classes, or MedMNIST's train_images, train_labels, test_images, ...
    channels   1 makes the images of a folder or file grey, 3 gives them three channels; without it there is one channel
               if every image is grey, and otherwise three
    progress   print how far a download is, on standard error

    A published data set is downloaded and checked when it is first used. Arrays get a name made from their content,
    and are normalised by the mean and standard deviation of the training pixels.
    """
    check_flags(skip_bad=skip_bad, progress=progress)
    if isinstance(data, str):
        own = OwnOptions(size, split, skip_bad, keys=keys, channels=channels)
        return load_data_set(data, own=own, progress=Progress(sys.stderr if progress else None))
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise InputError(f"data of type {type(data).__name__} given; give {FORMS}")
    given = "Images" if isinstance(data[0], Images) else "arrays"
    if size is not None:
        raise InputError(f"`size={size}` given with {given}, which are not resized; leave it out")
    if channels is not None:
        raise InputError(f"`channels={channels}` given with {given}, which are not converted; leave it out")
    if keys is not None:
        raise InputError(f"`keys={keys}` given with {given}; it names the arrays of an .npz file, so leave it out")
    first, second = data
    if isinstance(first, (tuple, list)) and isinstance(second, (tuple, list)):
        _refuse_split(split)
        return _pair(_read_arrays(first, "training"), _read_arrays(second, "test"))
    if isinstance(first, Images) and isinstance(second, Images):
        _refuse_split(split)
        return first, second
    return _divide(*_read_arrays((first, second), "given"), split)


def check_flags(**given: object) -> None:
    """Raise InputError unless every argument is True or False; another value, such as "no", would count as True."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise InputError(f"`{name}={value!r}` given; it is True or False")


def label_images(data: Labelled, classes: tuple[str, ...]) -> Images:
    """Return arrays (x, y) as test images of those classes."""
    pixels, labels = _read_arrays(data, "given")
    if int(labels.max()) >= len(classes):
        raise InputError(f"labels up to {int(labels.max())} given; the network has {len(classes)} classes, from 0 on")
    channels = pixels.shape[1]
    return _images(pixels, labels, "test", classes, (0.0,) * channels, (1.0,) * channels)


def _refuse_split(split: float | None) -> None:
    if split is not None:
        raise InputError(f"`split={split}` given with images that have a test set already; leave it out")


def _divide(pixels: Tensor, labels: Tensor, split: float | None) -> tuple[Images, Images]:
    """Divide images into training and test images, as those of an .npz file are divided."""
    where = "arrays (x, y)"
    own = OwnOptions(split=check_split(split, where))
    classes = tuple(map(str, range(1 + int(labels.max()))))
    chosen, rule = divide(labels.numpy(), classes, own, where, lambda: place_arrays(pixels))
    training, test = _pair(*((pixels[part], labels[part]) for part in (chosen["train"], chosen["test"])))
    own = SplitOptions(split=own.split, split_rule=rule)
    return replace(training, own=own), replace(test, own=own)


def place_arrays(pixels: Tensor) -> Places:
    """Return the places of images (N, C, H, W) in a split, by their pixels."""
    return place_images(pixels.permute(0, 2, 3, 1).numpy())


def _pair(training: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> tuple[Images, Images]:
    if training[0].shape[1:] != test[0].shape[1:]:
        sizes = " and ".join(" x ".join(map(str, pixels.shape[1:])) for pixels, _ in (training, test))
        raise InputError(f"training and test images of {sizes} (channels, height, width) given; they must be alike")
    classes = tuple(map(str, range(1 + max(int(labels.max()) for _, labels in (training, test)))))
    statistics = _statistics(training[0])
    pair = [_images(*part, name, classes, *statistics) for part, name in ((training, "train"), (test, "test"))]
    content = "".join(images.pixels_sha256 + images.labels_sha256 for images in pair)
    name = f"arrays-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    return replace(pair[0], name=name), replace(pair[1], name=name)


def _images(
    pixels: Tensor,
    labels: Tensor,
    part: str,
    classes: tuple[str, ...],
    mean: tuple[float, ...],
    std: tuple[float, ...],
) -> Images:
    pixels_sha256 = hashlib.sha256(pixels.permute(0, 2, 3, 1).contiguous().numpy().data).hexdigest()
    labels_sha256 = hash_labels(labels.numpy(), len(classes))
    return Images("arrays", part, pixels, labels, classes, mean, std, False, pixels_sha256, labels_sha256)


def _statistics(pixels: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and standard deviation of pixel / 255 for each channel; one flat colour has a deviation of 1."""
    counts = [torch.bincount(channel.flatten(), minlength=256).numpy() for channel in pixels.unbind(1)]
    means, deviations = zip(*map(mean_and_deviation, counts), strict=True)
    return means, tuple(each or 1.0 for each in deviations)


def _read_arrays(given: Any, which: str) -> tuple[Tensor, Tensor]:
    """Check (pixels, labels) and return them as uint8 (N, C, H, W) and int64 (N,); labels may be a list."""
    if len(given) == 2 and isinstance(given[0], (np.ndarray, Tensor)) and isinstance(given[1], (list, tuple)):
        try:
            given = given[0], np.array(given[1])
        except ValueError:
            raise InputError(f"the {which} labels are lists of several lengths; give a number for each image") from None
    if len(given) != 2 or not all(isinstance(array, (np.ndarray, Tensor)) for array in given):
        kinds = ", ".join(type(array).__name__ for array in given)
        raise InputError(f"the {which} images are ({kinds}); give two arrays, pixels and labels")
    pixels, labels = read_array(given[0], f"{which} images").cpu(), read_array(given[1], f"{which} labels").cpu()
    pixels = _channels_second(pixels, which, torch_first=isinstance(given[0], Tensor))
    kind = labels.dtype
    if labels.dim() == 2 and labels.shape[1] == 1:  # as in MedMNIST's files
        labels = labels[:, 0]
    if kind.is_floating_point or kind.is_complex or kind == torch.bool or labels.shape != (len(pixels),):
        hint = ", as y.astype(int) makes them" if kind.is_floating_point else ""
        raise InputError(
            f"the {which} labels are {str(kind).removeprefix('torch.')} of shape {tuple(labels.shape)}; {len(pixels)} "
            f"images need {len(pixels)} whole numbers{hint}"
        )
    labels = labels.long()
    if int(labels.min()) < 0:
        raise InputError(f"the {which} labels begin at {int(labels.min())}; classes are counted from 0")
    if (highest := int(labels.max())) >= MOST_LABELS:
        raise InputError(
            f"the {which} labels go up to {highest}; there may be {MOST_LABELS} classes, counted from 0, as "
            "np.unique(y, return_inverse=True)[1] makes them"
        )
    return pixels, labels


def read_array(array: Array, which: str) -> Tensor:
    """Return an array as a tensor, and a tensor as it is, without its gradients; `which` names it in a message."""
    if isinstance(array, Tensor):
        return array.detach()
    if array.dtype.kind in "US":
        raise InputError(f"the {which} are text; give numbers, as np.unique(y, return_inverse=True)[1] makes them")
    if array.dtype.kind not in "iufb":
        raise InputError(f"the {which} are an array of {array.dtype}; give numbers")
    if array.dtype.itemsize > 8:
        raise InputError(f"the {which} are an array of {array.dtype}; give numbers of at most 8 bytes")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)  # torch knows no other byte order
    return torch.from_numpy(native if native.flags.c_contiguous and native.flags.writeable else native.copy())


def _channels_second(pixels: Tensor, which: str, torch_first: bool) -> Tensor:
    """Return uint8 pixels as (N, C, H, W).

    Where the second and the last length could both be channels, a tensor has them second and a NumPy array last.
    """
    shape = tuple(pixels.shape)
    second, last = (len(shape) == 4 and shape[axis] in (1, 3) for axis in (1, 3))
    if pixels.dtype != torch.uint8 or 0 in shape or not (len(shape) == 3 or second or last):
        hint = "; for fractions from 0 to 1 that is (255 * x).round() as uint8" * pixels.dtype.is_floating_point
        raise InputError(
            f"the {which} pixels are {pixels.dtype} of shape {shape}; give uint8 of shape (N, height, width), "
            f"(N, height, width, channels) or (N, channels, height, width) with 1 or 3 channels{hint}"
        )
    if len(shape) == 3:
        return pixels.unsqueeze(1)
    if second and (torch_first or not last):
        return pixels.contiguous()
    return pixels.permute(0, 3, 1, 2).contiguous()
