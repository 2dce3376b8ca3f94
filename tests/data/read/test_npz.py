"""NPZ files, sound and damaged."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest

from rkcnn.data.read.npz import read_npz
from rkcnn.error import InputError

PIXELS = np.random.RandomState(0).randint(0, 256, (6, 8, 9, 3), np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def read(data: bytes, limit: int = 100_000) -> Any:
    return read_npz(io.BytesIO(data), "here", limit)


@pytest.mark.parametrize("compressed", [True, False])
def test_reads_both_parts_and_names(compressed: bool) -> None:
    names = np.array(["cat", "dog", "über"])
    data = npz(compressed, x_train=PIXELS, y_train=LABELS, x_test=PIXELS[:2], y_test=LABELS[:2], classes=names)
    parts, classes = read(data)
    assert classes == ("cat", "dog", "über")
    assert (parts["train"].pixels == PIXELS).all()
    assert parts["test"].labels.tolist() == [0, 1]


def test_reads_grey_pictures_in_any_order_of_memory_without_names() -> None:
    parts, classes = read(npz(x_train=np.asfortranarray(PIXELS[..., 0]), y_train=LABELS.astype(np.uint8)))
    assert (parts["train"].pixels[..., 0] == PIXELS[..., 0]).all()
    assert classes == ("0", "1", "2")
    assert "test" not in parts


@pytest.mark.parametrize("held_out", ["test", "val"])
def test_reads_medmnists_names_and_its_column_of_labels(held_out: str) -> None:
    """Made by us in the form of MedMNIST's files, which can't be fetched here."""
    arrays = {
        f"{part}_{kind}": array[: 6 if part == "train" else 2]
        for part in ("train", "val", "test")
        for kind, array in (("images", PIXELS), ("labels", LABELS[:, None]))
        if part != "test" or held_out == "test"
    }
    if held_out == "test":
        arrays["val_images"] = PIXELS[:3]
    parts, classes = read(npz(False, **arrays))
    assert (len(parts["train"].labels), parts["test"].labels.tolist(), classes) == (6, [0, 1], ("0", "1", "2"))


def test_reads_other_names_where_they_are_given() -> None:
    data = npz(pictures=PIXELS, kinds=LABELS)
    parts, _ = read_npz(io.BytesIO(data), "here", 100_000, {"x_train": "pictures", "y_train": "kinds"})
    assert parts["train"].labels.tolist() == LABELS.tolist()
    with pytest.raises(InputError, match="here: has no array photos; it holds pictures, kinds"):
        read_npz(io.BytesIO(data), "here", 100_000, {"x_train": "photos"})


def claiming(shape: str) -> bytes:
    """A file whose x_train says it has that shape, and has nothing; it has 9 labels."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x_train.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        labels = io.BytesIO()
        np.save(labels, np.zeros(9, int))
        archive.writestr("y_train.npy", labels.getvalue())
    return file.getvalue()


def packed_by(kind: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr("x_train.npy", PIXELS.tobytes())
    data = bytearray(file.getvalue())
    data[60:70] = bytes(10)
    return bytes(data)


def beyond_unicode() -> bytes:
    return npz(x_train=PIXELS, y_train=LABELS, classes=np.array(["a", "b", "c"])).replace(
        b"a\0\0\0b\0\0\0", b"\xff\xff\xff\x7fb\0\0\0"
    )


def rechecked(data: bytes) -> bytes:
    """The archive with the checksums of what it now holds."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            at = member.header_offset + 30 + len(member.filename)
            at += int.from_bytes(data[member.header_offset + 28 : member.header_offset + 30], "little")
            new.writestr(member.filename, data[at : at + member.file_size])
    return file.getvalue()


def crowded() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number:09}", b"")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no table of contents"),
        (b"PK\5\6" + bytes(18), "holds nothing; it needs x_train"),
        (npz(x_train=PIXELS, y_train=LABELS)[:-30], "no table of contents"),
        (npz(x_train=PIXELS), "needs x_train and y_train"),
        (npz(x_train=PIXELS, y_train=LABELS, x_test=PIXELS), "needs x_test and y_test"),
        (
            npz(x_train=PIXELS.astype(float), y_train=LABELS),
            r"x_train: is of '<f8', and must be uint8; for fractions .* \(255 \* x\)\.round\(\)\.astype\(\"uint8\"\)$",
        ),
        (npz(x_train=PIXELS.astype(np.int64), y_train=LABELS), "must be uint8"),
        (npz(x_train=PIXELS.transpose(0, 3, 1, 2), y_train=LABELS), "must be uint8"),
        (npz(x_train=PIXELS, y_train=np.zeros((6, 14), int)), "has 14 labels for an image"),
        (npz(x_train=PIXELS, y_train=LABELS / 2), r"must be whole numbers, as y\.astype\(int\) makes them or"),
        (npz(x_train=PIXELS, y_train=LABELS, classes=np.zeros(3)), "classes: is of '<f8', and must be text$"),
        (npz(x_train=PIXELS, y_train=LABELS[:5]), "6 images but 5 labels"),
        (npz(x_train=PIXELS, y_train=LABELS - 1), "from 0 to 65535"),
        (npz(x_train=np.array([object()]), y_train=LABELS), "is of '.O', and must be uint8$"),
        (npz(x_train=PIXELS, y_train=LABELS, classes=np.array([1, 2])), "names"),
        (npz(x_train=PIXELS, y_train=LABELS, classes=np.array(["a", "b", "a"])), "two classes are called a; give each"),
        (
            npz(x_train=PIXELS, y_train=np.eye(3, dtype=int)[LABELS]),
            r"3 labels for an image, .* that is y\.argmax\(1\)",
        ),
        (npz(x_train=PIXELS, y_train=np.eye(3)[LABELS]), r"of a column for each class, y\.argmax\(1\)"),
        (npz(x_train=np.zeros((99, 32, 32, 3), np.uint8), y_train=LABELS), "`max_bytes=.*` leaves"),
        (claiming("(99999999999999, 32, 32, 3)"), "`max_bytes=.*` leaves"),
        (claiming("(9, 32, 32, 3)"), "has less"),
        (claiming("(-9, 32)"), "must have a tuple of whole numbers"),
        (claiming("(1,"), "has no readable header of an array"),
        (claiming(f"({'9' * 3000},)"), "which no array has"),
        (claiming(f"(-{'9' * 3000},)"), "must have a tuple of whole numbers"),
        (packed_by(zipfile.ZIP_LZMA), "save it with np.savez again"),
        (packed_by(zipfile.ZIP_BZIP2), "save it with np.savez again"),
        (rechecked(beyond_unicode()), "can't be read as .npz"),
        (npz(images=PIXELS, labels=LABELS), "holds images, labels; it needs x_train"),
        (npz(False, **{f"a{number}": LABELS for number in range(11)}), "a7, and 3 more; it needs x_train"),
    ],
)
def test_refuses(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        read(data)
    assert len(str(refused.value)) < 250


def test_refuses_a_crowded_table_of_contents() -> None:
    """It is made here, not where tests are collected, which every worker does."""
    test_refuses(crowded(), "table of contents is larger")


@pytest.mark.parametrize("shape", [(6, 0, 8), (6, 8, 0, 3), (0, 8, 8)])
def test_a_side_of_zero_is_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="and no side may be 0"):
        read(npz(x_train=np.zeros(shape, np.uint8), y_train=LABELS))


@pytest.mark.parametrize("header", [b"(" * 4000, b"-" * 4000 + b"1", b"not " * 1000 + b"1"])
def test_a_header_of_brackets_or_operators_is_one_sentence(header: bytes) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x_train.npy", b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError, match="here: x_train: has no readable header of an array"):
        read(file.getvalue())


@pytest.mark.parametrize("number", [0xD800, 0xDCFF, 0x110000])
def test_class_names_that_are_no_text(number: int) -> None:
    names = np.array([number, 65, 66], np.uint32).view("<U1")
    with pytest.raises(InputError, match=r"which is no character|can't be read as \.npz"):
        read(npz(x_train=PIXELS, y_train=LABELS, classes=names))


FLAT = np.zeros((4, 3000, 4000), np.uint8)  # 48 MB, in 47 KB of a file


def damaged_at_the_end() -> bytes:
    """Flat pixels, of which all can be unpacked, but with another checksum."""
    data = npz(True, x_train=FLAT, y_train=[0, 1, 0, 1])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        checksum = archive.getinfo("x_train.npy").CRC.to_bytes(4, "little")
    return data.replace(checksum, bytes(4))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (npz(True, x_train=PIXELS, y_train=np.zeros(6_000_000, int)), "train: 6 images but 6000000 labels"),
        (npz(True, x_train=FLAT, y_train=LABELS), "train: 4 images but 6 labels"),
        (npz(True, x_train=FLAT, y_train=[0, 1, 0, -1]), "y_train has labels from -1 to 1"),
        (npz(True, x_train=FLAT, y_train=[0, 1, 0, 2], classes=["a", "b"]), "whole numbers from 0 to 1$"),
        (npz(True, x_train=FLAT, y_train=[0, 1, 0, 1], x_test=PIXELS, y_test=LABELS), "differ in shape"),
        (npz(True, x_train=FLAT, y_train=[0] * 4, classes=np.zeros(100, "U90000")), "classes takes 36000000 bytes"),
        (damaged_at_the_end(), "Bad CRC-32"),
    ],
    ids=["labels", "images", "label", "class", "shapes", "names", "checksum"],
)
def test_a_refusal_unpacks_little_into_memory(data: bytes, says: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=says):
            read(data, 1 << 30)
        assert tracemalloc.get_traced_memory()[1] < (8 << 20) + 3 * len(data)
    finally:
        tracemalloc.stop()


def test_a_sound_set_of_flat_images_is_read() -> None:
    parts, _ = read(npz(True, x_train=FLAT, y_train=[0, 1, 0, 1]), 1 << 30)
    assert parts["train"].pixels.shape == (*FLAT.shape, 1)
