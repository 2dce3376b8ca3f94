"""Published files of data sets."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from rkcnn.data.packaging import PACKAGINGS, Packaging, SetFiles, files_in_archive, files_in_folder
from rkcnn.data.sets import SETS
from rkcnn.error import InputError

SHARED = Path(os.environ.get("RKCNN_SHARED") or Path(__file__).parents[2] / ".." / "shared")
LIMIT = 4_000_000


def in_memory(files: dict[str, bytes]) -> SetFiles:
    return SetFiles("here", {name: bytearray(data) for name, data in files.items()})


def pictures(count: int) -> tuple[Any, Any, Any]:
    random = np.random.RandomState(count)
    pixels = random.randint(0, 256, (count, 32, 32, 3), np.uint8)
    return pixels, random.randint(0, 10, count), random.randint(0, 20, count)


def binary(pixels: Any, *labels: Any) -> bytes:
    planes = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
    columns = [label[:, None].astype(np.uint8) for label in labels]
    return bytes(np.concatenate([*columns, planes], 1).tobytes())


def read(found: Packaging, files: dict[str, bytes]) -> dict[str, tuple[Any, Any]]:
    read: dict[str, tuple[list[Any], list[Any]]] = {}
    for name, part in found.read(in_memory(files), LIMIT):
        pixels, labels = read.setdefault(name, ([], []))
        pixels.append(part.pixels)
        labels.append(part.labels)
    return {name: (np.concatenate(pixels), np.concatenate(labels)) for name, (pixels, labels) in read.items()}


def test_cifar_10_reads_alike_from_binary_and_pickles() -> None:
    batches = [pictures(3 + number) for number in range(6)]
    as_binary, as_pickles, _ = PACKAGINGS["cifar10"]
    rows = {name: binary(pixels, labels) for name, (pixels, labels, _) in zip(as_binary.files, batches, strict=True)}
    pickles = {
        name: pickle.dumps({b"data": pixels.transpose(0, 3, 1, 2).reshape(-1, 3072), b"labels": labels.tolist()}, 2)
        for name, (pixels, labels, _) in zip(as_pickles.files, batches, strict=True)
    }
    for parts in (read(as_binary, rows), read(as_pickles, pickles)):
        assert (parts["train"][0] == np.concatenate([pixels for pixels, _, _ in batches[:5]])).all()
        assert (parts["test"][1] == batches[5][1]).all()


def test_cifar_10_sheets_take_their_labels_in_turn() -> None:
    sheets = PACKAGINGS["cifar10"][2]
    pixels = np.zeros((10_000, 1024, 3), np.uint8)
    files = {}
    for number, name in enumerate(name for name in sheets.files if name.endswith(".png")):
        pixels[:, 0] = number
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG", compress_level=1)
        files[name] = file.getvalue()
    files["train_lables.json"] = json.dumps([number for number in range(5) for _ in range(10_000)]).encode()
    files["test_lables.json"] = json.dumps([5] * 10_000).encode()
    seen = []
    for name, part in sheets.read(in_memory(files), 40_000_000):
        assert (part.pixels[:, 0, 0, 0] == part.labels).all()
        seen.append(name)
    assert seen == ["train"] * 5 + ["test"]


def test_cifar_100_and_svhn_read_their_own_forms() -> None:
    pixels, labels, coarse = pictures(5)
    parts = read(PACKAGINGS["cifar100"][0], dict.fromkeys(("train.bin", "test.bin"), binary(pixels, coarse, labels)))
    assert (parts["train"][0] == pixels).all()
    assert (parts["test"][1] == labels).all()
    file = io.BytesIO()
    savemat(file, {"X": pixels.transpose(1, 2, 3, 0), "y": np.where(labels == 0, 10, labels)[:, None]})
    for found, count in ((PACKAGINGS["svhn"][0], 5), (PACKAGINGS["svhn+extra"][0], 10)):
        parts = read(found, dict.fromkeys(found.files, file.getvalue()))
        assert len(parts["train"][0]) == count
        assert (parts["test"][0] == pixels).all()
        assert (parts["test"][1] == labels).all()


def test_every_set_has_sources_that_its_packagings_can_read() -> None:
    assert PACKAGINGS.keys() == SETS.keys()
    for packagings in PACKAGINGS.values():
        for found in packagings:
            assert found.archive in ("", *found.remote) or found.npm
            assert set(found.md5) <= set(found.files)
            assert all(mirror.startswith("https://") and mirror.endswith("/") for mirror in found.mirrors)
            if found.archive:
                assert found.folder


@pytest.mark.shared("data")
def test_real_svhn_pictures_come_out_of_a_mat_file_as_they_went_in() -> None:
    spec = importlib.util.spec_from_file_location("unpack", SHARED / "data" / "unpack.py")
    assert spec is not None
    assert spec.loader is not None
    unpack = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unpack)
    pixels = unpack.unpack(SHARED / "data" / "svhn_1.xz")[-500:]  # the last of the test set
    labels = np.load(SHARED / "data" / "svhn_labels.npz")["test_labels"][-500:]
    file = io.BytesIO()
    variables = {"X": pixels.transpose(1, 2, 3, 0), "y": np.where(labels == 0, 10, labels)[:, None]}
    savemat(file, variables, do_compression=True)
    parts = read(PACKAGINGS["svhn"][0], dict.fromkeys(PACKAGINGS["svhn"][0].files, file.getvalue()))
    assert (parts["train"][0] == pixels).all()
    assert (parts["train"][1] == labels).all()


def test_a_folder_must_hold_every_file_plain_or_packed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    assert files_in_folder(tmp_path, ["a", "b"]) is None
    (tmp_path / "b.gz").write_bytes(b"two")
    files = files_in_folder(tmp_path, ["a", "b"])
    assert files is not None
    with files.open("a") as plain, files.open("b") as packed:
        assert (plain.read(), packed.read()) == (b"one", b"two")
    assert files.describe("b").endswith("b.gz")
    assert files.md5("a") == hashlib.md5(b"one").hexdigest()


def test_an_archive_is_read_by_the_names_inside_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        member = tarfile.TarInfo("inside/a")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"one"))
    files = files_in_archive(tmp_path / "x.tar", "inside", ["a"], 100_000)
    assert files.open("a").read() == b"one"
    assert files.describe("a").endswith("x.tar: a")


def test_a_file_larger_than_any_published_one_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "test_32x32.mat").open("wb") as file:
        file.truncate(8 << 30)  # sparse: it takes no room, and half a minute to read
    found = files_in_folder(tmp_path, ["test_32x32.mat"])
    assert found is not None
    with pytest.raises(InputError, match=r"has 8,589,934,592 bytes; those of SVHN have fewer"):
        found.md5("test_32x32.mat")
