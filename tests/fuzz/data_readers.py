"""The readers of images: a sound file for each, and a function that reads a file to the end."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image
from scipy.io import savemat

from rkcnn.data.images import Images
from rkcnn.data.read.archive import read_tar
from rkcnn.data.read.cifar import read_cifar_binary, read_cifar_pickle, read_json_labels, read_png_sheet
from rkcnn.data.read.folder import read_folder
from rkcnn.data.read.idx import read_idx
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.mat5 import read_mat5
from rkcnn.data.read.npz import read_npz
from rkcnn.error import InputError

LIMIT = 4 << 30  # generous: what holds memory down must be the file's own size
CLASSES = tuple(map(str, range(65536)))
RANDOM = np.random.RandomState(0)
ROWS = RANDOM.randint(0, 256, (3, 3073), np.uint8) % np.array([10] + [256] * 3072)
PICTURE = RANDOM.randint(0, 256, (40, 50, 3), np.uint8)


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def _tar() -> bytes:
    def save(file: io.BytesIO) -> None:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in ("other", "wanted"):
                member = tarfile.TarInfo(name)
                member.size = 9219
                archive.addfile(member, io.BytesIO(ROWS.astype(np.uint8).tobytes()))

    return _saved(save)


IDX = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (3, 6, 7)) + bytes(range(126))
LABELS = b"\0\0\x08\x01\0\0\0\x03\x01\x02\x03"
CIFAR = {b"data": ROWS[:, 1:].astype(np.uint8), b"labels": [1, 2, 3], b"filenames": [b"a", b"b", b"a"]}
MAT = {"X": PICTURE[:32, :32, :, None].repeat(3, 3), "y": np.array([[1], [2], [10]])}
NPZ: dict[str, Any] = {"x_train": PICTURE[None], "y_train": np.array([1]), "classes": np.array(["a", "b"])}
SHEET = RANDOM.randint(0, 256, (3, 1024, 3), np.uint8)


def _read_picture(file: BinaryIO) -> list[LabelledPixels]:
    def bad(_: Path, error: InputError) -> None:
        raise error

    return list(read_folder(((Path(file.name), 0),), 16, 3, LIMIT, bad))


def _read_tar(file: BinaryIO) -> list[LabelledPixels]:
    member = read_tar(file, ["wanted"], "here", LIMIT)["wanted"]
    return [read_cifar_binary(io.BytesIO(member), "here", LIMIT, 1)]


def _read_npz(file: BinaryIO) -> list[LabelledPixels]:
    return list(read_npz(file, "here", LIMIT)[0].values())


def _sheet_labels(file: BinaryIO) -> list[LabelledPixels]:
    labels = read_json_labels(file, "here")
    return [LabelledPixels("here", np.zeros((len(labels), 1, 1, 1), np.uint8), labels)]


READERS: dict[str, tuple[bytes, Callable[[BinaryIO], list[LabelledPixels]]]] = {
    "idx": (IDX, lambda f: [read_idx(f, io.BytesIO(LABELS), "here", LIMIT)]),
    "idx.gz": (gzip.compress(IDX), lambda f: [read_idx(f, io.BytesIO(LABELS), "here", LIMIT)]),
    "idx labels": (LABELS, lambda f: [read_idx(io.BytesIO(IDX), f, "here", LIMIT)]),
    "cifar binary": (
        ROWS.astype(np.uint8).tobytes(),
        lambda f: [read_cifar_binary(f, "here", LIMIT, 1)],
    ),
    "pickle 2": (pickle.dumps(CIFAR, 2), lambda f: [read_cifar_pickle(f, "here", LIMIT)]),
    "pickle 5": (pickle.dumps(CIFAR, 5), lambda f: [read_cifar_pickle(f, "here", LIMIT)]),
    "mat": (_saved(lambda o: savemat(o, MAT)), lambda f: [read_mat5(f, "here", LIMIT)]),
    "mat packed": (
        _saved(lambda o: savemat(o, MAT, do_compression=True)),
        lambda f: [read_mat5(f, "here", LIMIT)],
    ),
    "sheet": (
        _saved(lambda o: Image.fromarray(SHEET).save(o, "PNG")),
        lambda f: [read_png_sheet(f, np.arange(3), "here", LIMIT)],
    ),
    "json": (b"[1, 2, 3, 255]", _sheet_labels),
    "png": (_saved(lambda o: Image.fromarray(PICTURE).save(o, "PNG")), _read_picture),
    "palette": (_saved(lambda o: Image.fromarray(PICTURE).convert("P").save(o, "PNG")), _read_picture),
    "jpeg": (_saved(lambda o: Image.fromarray(PICTURE).save(o, "JPEG")), _read_picture),
    "webp": (_saved(lambda o: Image.fromarray(PICTURE).save(o, "WEBP")), _read_picture),
    "bmp": (_saved(lambda o: Image.fromarray(PICTURE).save(o, "BMP")), _read_picture),
    "bmp palette": (_saved(lambda o: Image.fromarray(PICTURE).convert("P").save(o, "BMP")), _read_picture),
    "npz": (_saved(lambda o: np.savez(o, **NPZ)), _read_npz),
    "npz packed": (_saved(lambda o: np.savez_compressed(o, **NPZ)), _read_npz),
    "tar": (_tar(), _read_tar),
}


def read_to_images(name: str, path: Path) -> None:
    """Read a file by the reader of that name, and make `Images` of what it holds."""
    with path.open(
        "rb"
    ) as file:  # on disk: a file object gives memory for what it is asked to read, one in memory doesn't
        parts = READERS[name][1](file)
    for part in parts:
        pixels = torch.from_numpy(part.pixels.transpose(0, 3, 1, 2).copy())
        labels = torch.from_numpy(part.labels.astype(np.int64))
        statistics = (0.0,) * pixels.shape[1], (1.0,) * pixels.shape[1]
        Images(name, "train", pixels, labels, CLASSES, *statistics, False, "", "")
