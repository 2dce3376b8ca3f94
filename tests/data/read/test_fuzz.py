"""Each reader on random bytes and mutations of a valid file: Images or our own error, in bounded memory."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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
SUPPRESSED = [HealthCheck.differing_executors, HealthCheck.too_slow]  # the latter: a shared core
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
    "npz": (_saved(lambda o: np.savez(o, **NPZ)), _read_npz),
    "npz packed": (_saved(lambda o: np.savez_compressed(o, **NPZ)), _read_npz),
    "tar": (_tar(), _read_tar),
}
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.floats(0, 1), st.binary(min_size=1, max_size=8)),
        st.tuples(
            st.just("set"),
            st.floats(0, 0.02),
            st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f" + b"\xff" * 3]),
        ),
        st.tuples(st.just("cut"), st.floats(0, 1), st.just(b"")),
        st.tuples(st.just("insert"), st.floats(0, 1), st.binary(max_size=40)),
        st.tuples(st.just("drop"), st.floats(0, 1), st.binary(max_size=40)),
    ),
    min_size=1,
    max_size=4,
)


def mutate(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    for kind, share, new in changes:
        at = int(share * len(data))
        if kind == "cut":
            data = data[:at]
        elif kind == "insert":
            data = data[:at] + new + data[at:]
        else:
            data = data[:at] + (new if kind == "set" else b"") + data[at + len(new) :]
    return data


@contextmanager
def real_file(data: bytes) -> Iterator[BinaryIO]:
    """On disk: a file object gives memory for what it is asked to read, one in memory doesn't."""
    with TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(data)
        with Path(folder, "file").open("rb") as file:
            yield file


def read_real(name: str, data: bytes) -> list[LabelledPixels]:
    with real_file(data) as file:
        return READERS[name][1](file)


def holds_the_law(name: str, data: bytes) -> None:
    tracemalloc.start()
    try:
        for part in read_real(name, data):
            pixels, labels = (
                torch.from_numpy(part.pixels.transpose(0, 3, 1, 2).copy()),
                torch.from_numpy(part.labels.astype(np.int64)),
            )
            statistics = (0.0,) * pixels.shape[1], (1.0,) * pixels.shape[1]
            Images(name, "train", pixels, labels, CLASSES, *statistics, False, "", "")
    except InputError as error:
        assert "\n" not in str(error).strip()  # noqa: PT017 (refusing is as right as reading)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < (64 << 20) + 3 * len(data), f"{peak} bytes for {len(data)}"


@pytest.mark.parametrize("name", READERS)
def test_the_valid_file_is_valid(name: str) -> None:
    assert read_real(name, READERS[name][0])[0].pixels.size


@pytest.mark.parametrize("name", READERS)
@given(data=st.binary(max_size=400), keep=st.integers(0, 24))
@settings(deadline=None, max_examples=100, suppress_health_check=SUPPRESSED)
def test_random_bytes(name: str, data: bytes, keep: int) -> None:
    holds_the_law(name, READERS[name][0][:keep] + data)


@pytest.mark.parametrize("name", READERS)
@given(changes=CHANGES)
@settings(deadline=None, max_examples=300, suppress_health_check=SUPPRESSED)
def test_mutations_of_a_valid_file(name: str, changes: list[tuple[str, float, bytes]]) -> None:
    holds_the_law(name, mutate(READERS[name][0], changes))
