"""A user's own images, decoded and cached: a folder with one subfolder for each class, or an .npz file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rkcnn.data import cache
from rkcnn.data.cache import SetDescription
from rkcnn.data.options import REMEDY, OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.data.read.folder import ImageFiles, are_grey, find_images, read_folder
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.npz import read_npz
from rkcnn.disk import lock_folder, open_file, writing_to
from rkcnn.error import InputError

PREFIXES = ("folder:", "npz:")  # of the names of own images
SPLIT_SEED = 20241  # of the permutation that sets a test set apart where there is none
DEFAULT_SIZE = 32  # pixels


def decode_own_images(name: str, sources: Sources, own: OwnOptions, progress: Progress) -> tuple[Path, SetDescription]:
    """Return the folder that holds the decoded images of `folder:PATH` or `npz:PATH`, and its description.

    They are decoded again whenever a file was added, removed or changed.
    """
    kind, _, given = name.partition(":")
    path = _resolve(kind, given)
    options = os.fsencode(f"{kind} {path} {own.size} {own.split} {own.skip_bad}")
    identity = hashlib.sha256(options).hexdigest()[:16]
    found = _find_parts(path, own) if kind == "folder" else {}
    files = [file for part in found.values() for file, _ in part.files] if kind == "folder" else [path]
    fingerprint = _fingerprint(path, files)
    root = sources.folders()[0] / "decoded"
    if decoded := _find_decoded(sources, identity, fingerprint):
        return decoded
    with writing_to(root, REMEDY), lock_folder(root, REMEDY, name=".own.lock", on_wait=progress.note):
        if decoded := _find_decoded(sources, identity, fingerprint):  # by the process that held the lock
            return decoded
        cache.clear_leftovers(root, "own")
        progress.note(f"reading {path}")
        classes, parts = _read_folder(path, found, own, progress) if kind == "folder" else _read_npz(path, own)
        folder, description = cache.write_parts(root, "own", parts, list(classes), str(path))
        description.fingerprint = fingerprint
        cache.move_into_place(folder, description, root / f"own-{identity}")
    return root / f"own-{identity}", description


def _find_decoded(sources: Sources, identity: str, fingerprint: str) -> tuple[Path, SetDescription] | None:
    for folder in sources.folders():
        path = folder / "decoded" / f"own-{identity}"
        description = cache.read_description(path)
        if description and description.fingerprint == fingerprint:
            return path, description
    return None


def _resolve(kind: str, given: str) -> Path:
    """Return the absolute path of the folder or file; InputError if it isn't one."""
    what = "folder" if kind == "folder" else "file"
    if not given:
        raise InputError(f"{kind}: names no {what}; put its path after the colon, say {kind}:photos")
    try:
        path = Path(given).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a ring of links, no such user, a zero byte
        raise InputError(f"{kind}:{given!r} can't be a path ({error}); give that of a {what}") from None
    if not (os.path.isdir(path) if kind == "folder" else os.path.isfile(path)):
        raise InputError(f"{kind}:{given}: {path} is not a {what}")
    return path


def _find_parts(path: Path, own: OwnOptions) -> dict[str, ImageFiles]:
    """Return the image files of train and test, from folders of these names or by `split`."""
    test = next((path / name for name in ("test", "val") if (path / name).is_dir()), None)
    if (path / "train").is_dir() and test is not None:
        training, testing = find_images(path / "train"), find_images(test)
        unknown = sorted(set(testing.classes) - set(training.classes))
        if unknown:
            raise InputError(f"{test}: class {unknown[0]} is not in {path / 'train'}, and must be")
        labels = {name: label for label, name in enumerate(training.classes)}
        files = tuple((file, labels[file.parent.name]) for file, _ in testing.files)
        return {"train": training, "test": ImageFiles(training.classes, files)}
    if (path / "train").is_dir() or test is not None:
        raise InputError(f"{path}: needs train/ and test/ (or val/) both, or the classes alone with `split=0.2`")
    images = find_images(path)
    in_test = _choose_share(len(images.files), own, path)
    return {
        name: ImageFiles(images.classes, tuple(images.files[index] for index in np.flatnonzero(chosen)))
        for name, chosen in (("train", ~in_test), ("test", in_test))
    }


def _read_folder(
    path: Path, found: dict[str, ImageFiles], own: OwnOptions, progress: Progress
) -> tuple[tuple[str, ...], Iterator[tuple[str, LabelledPixels]]]:
    """Return the class names and an iterator over the decoded images of train and test."""
    size = own.size or DEFAULT_SIZE
    files = found["train"].files + found["test"].files
    skipped: set[Path] = set()

    def on_bad(file: Path, error: InputError) -> None:
        if not own.skip_bad:
            raise InputError(f"{error}; `skip_bad=True` would leave it out")
        if file not in skipped:
            progress.note(f"left out: {error}")
        skipped.add(file)

    channels = 1 if are_grey(files, own.max_bytes, on_bad) else 3
    total = len(files) * size * size * channels
    if total > own.max_bytes:
        raise InputError(
            f"{path}: {len(files)} images of {size} x {size} take {total} bytes, "
            f"more than `max_bytes={own.max_bytes}`; choose a smaller size or allow more"
        )

    def read() -> Iterator[tuple[str, LabelledPixels]]:
        for name in ("train", "test"):
            count = 0
            for images in read_folder(found[name].files, size, channels, own.max_bytes, on_bad):
                count += len(images.labels)
                yield name, images
            if not count:
                raise InputError(f"{path}: no image of the {name} set can be read")
        readable = {file.parent for file, _ in files if file not in skipped}
        emptied = sorted({file.parent for file in skipped} - readable)
        if emptied:
            raise InputError(
                f"{emptied[0]}: is a class of which no image can be read; repair some or remove the folder"
            )

    return found["train"].classes, read()


def _read_npz(path: Path, own: OwnOptions) -> tuple[tuple[str, ...], Iterator[tuple[str, LabelledPixels]]]:
    """Return the class names and the images of train and test, the latter by `split` if the file has none."""
    with open_file(path) as file:
        parts, classes = read_npz(file, str(path), own.max_bytes)
    if own.size is not None and parts["train"].pixels.shape[1:3] != (own.size, own.size):
        raise InputError(
            f"{path}: images are {parts['train'].pixels.shape[1:3]}, and an .npz is not resized; "
            f"leave `size={own.size}` out"
        )
    if "test" not in parts:
        images = parts["train"]
        in_test = _choose_share(len(images.labels), own, path)
        for name, chosen in (("train", ~in_test), ("test", in_test)):
            parts[name] = LabelledPixels(images.where, images.pixels[chosen], images.labels[chosen])
    if parts["train"].pixels.shape[1:] != parts["test"].pixels.shape[1:]:
        raise InputError(f"{path}: training and test images differ in shape, and must not")
    return classes, iter(parts.items())


def choose_test(count: int, test: int) -> NDArray[np.bool_]:
    """Return which of `count` images are the test set of `test` images, by a permutation that is always the same."""
    in_test = np.zeros(count, bool)
    in_test[np.random.RandomState(SPLIT_SEED).permutation(count)[:test]] = True
    return in_test


def _choose_share(count: int, own: OwnOptions, path: Path) -> NDArray[np.bool_]:
    """Return which of `count` images are the test set: the share `split`."""
    if own.split is None:
        raise InputError(f"{path}: has no test set of its own; state the share to set apart, say `split=0.2`")
    test = round(count * own.split)
    if not 0 < test < count:
        raise InputError(f"{path}: `split={own.split}` of {count} images leaves one of the two sets empty")
    return choose_test(count, test)


def _fingerprint(path: Path, files: list[Path]) -> str:
    """Return a hash of the names, sizes and times of the files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        try:
            state = file.stat()
        except OSError as error:
            raise InputError(f"{file}: can't be read ({error.strerror})") from None
        digest.update(os.fsencode(file.relative_to(path)) + f" {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
