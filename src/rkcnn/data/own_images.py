"""A user's own images, decoded and cached: a folder with one subfolder for each class, or an .npz file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rkcnn.data import cache
from rkcnn.data.cache import SetDescription
from rkcnn.data.options import REMEDY, OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.data.read.folder import ImageFiles, are_grey, find_images, measure_side, read_folder
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.npz import read_npz
from rkcnn.disk import lock_folder, open_file, writing_to
from rkcnn.error import InputError
from rkcnn.escape import is_unicode

PREFIXES = ("folder:", "npz:")  # of the names of own images
SPLIT_SEED = 20241  # of the permutation that sets a test set apart where there is none
DEFAULT_SIZE = 32  # pixels
AUTO_SIZES = range(16, 65, 8)  # that `size="auto"` chooses from
MEASURED_FILES = 200  # whose headers `size="auto"` reads


def decode_own_images(
    name: str, sources: Sources, own: OwnOptions, progress: Progress
) -> tuple[Path, SetDescription, OwnOptions]:
    """Return the folder that holds the decoded images of `folder:PATH` or `npz:PATH`, and its description.

    Also returns the options with the size that was really used. Images are decoded again whenever a file was added,
    removed or changed.
    """
    kind, _, given = name.partition(":")
    path = _resolve(kind, given)
    found = _find_parts(path, own) if kind == "folder" else {}
    files = [file for part in found.values() for file, _ in part.files] if kind == "folder" else [path]
    own = replace(own, size=_choose_size(files, own) if kind == "folder" else None if own.size == "auto" else own.size)
    options = os.fsencode(f"by class {kind} {path} {own.size} {own.split} {own.skip_bad} {own.keys}")
    identity = hashlib.sha256(options).hexdigest()[:16]
    fingerprint = _fingerprint(path, files)
    root = sources.folders()[0] / "decoded"
    damages: list[str] = []
    if decoded := _find_decoded(sources, identity, fingerprint, damages):
        return *decoded, own
    for damage in damages:
        progress.note(f"{damage}; they are decoded again")
    with writing_to(root, REMEDY), lock_folder(root, REMEDY, name=".own.lock", on_wait=progress.note):
        if decoded := _find_decoded(sources, identity, fingerprint, []):  # by the process that held the lock
            return *decoded, own
        cache.clear_leftovers(root, "own")
        progress.note(f"reading {path}")
        classes, parts = _read_folder(path, found, own, progress) if kind == "folder" else _read_npz(path, own)
        folder, description = cache.write_parts(root, "own", parts, list(classes), str(path))
        description.fingerprint = fingerprint
        cache.move_into_place(folder, description, root / f"own-{identity}")
    return root / f"own-{identity}", description, own


def _find_decoded(
    sources: Sources, identity: str, fingerprint: str, damages: list[str]
) -> tuple[Path, SetDescription] | None:
    """Return the first decoded copy with the content that was decoded; what is wrong with others joins `damages`."""
    for folder in sources.folders():
        path = folder / "decoded" / f"own-{identity}"
        description = cache.read_description(path)
        if description and description.fingerprint == fingerprint and not description.verified:
            damage = cache.find_damage(path, description)
            if not damage:
                return path, description
            damages.append(damage)
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
    if not is_unicode(str(path)):  # a record names it, and holds UTF-8 alone
        raise InputError(f"{kind}:{given!r}: the path {str(path)!r} is no UTF-8; rename it, or link to it")
    return path


def _find_parts(path: Path, own: OwnOptions) -> dict[str, ImageFiles]:
    """Return the image files of train and test, from folders of these names or by `split`."""
    test = next((path / name for name in ("test", "val") if (path / name).is_dir()), None)
    if own.keys is not None:
        raise InputError(f"`keys={own.keys}` given with a folder; it names the arrays of an .npz file")
    if (path / "train").is_dir() and test is not None:
        _refuse_split(path, own)
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
    in_test = choose_share(np.array([label for _, label in images.files]), images.classes, own.split, str(path))
    return {
        name: ImageFiles(images.classes, tuple(images.files[index] for index in np.flatnonzero(chosen)))
        for name, chosen in (("train", ~in_test), ("test", in_test))
    }


def _read_folder(
    path: Path, found: dict[str, ImageFiles], own: OwnOptions, progress: Progress
) -> tuple[tuple[str, ...], Iterator[tuple[str, LabelledPixels]]]:
    """Return the class names and an iterator over the decoded images of train and test."""
    assert isinstance(own.size, int)  # by `_choose_size`
    size = own.size
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
        parts, classes = read_npz(file, str(path), own.max_bytes, own.key_names())
    if own.size is not None and parts["train"].pixels.shape[1:3] != (own.size, own.size):
        raise InputError(
            f"{path}: images are {parts['train'].pixels.shape[1:3]}, and an .npz is not resized; "
            f"leave `size={own.size}` out"
        )
    if "test" not in parts:
        images = parts["train"]
        in_test = choose_share(images.labels, classes, own.split, str(path))
        for name, chosen in (("train", ~in_test), ("test", in_test)):
            parts[name] = LabelledPixels(images.where, images.pixels[chosen], images.labels[chosen])
    else:
        _refuse_split(path, own)
    if parts["train"].pixels.shape[1:] != parts["test"].pixels.shape[1:]:
        raise InputError(f"{path}: training and test images differ in shape, and must not")
    return classes, iter(parts.items())


def choose_share(
    labels: NDArray[np.integer[Any]], classes: Sequence[str], share: float | None, where: str
) -> NDArray[np.bool_]:
    """Return which images (N,) are the test set: the share of each class, by a permutation that is always the same.

    Every class has at least one image in both sets; InputError if it has one image alone, or if no share is given.
    """
    if share is None:
        raise InputError(f"{where}: has no test set of its own; state the share to set apart, say `split=0.2`")
    if not 0 < share < 1:
        raise InputError(f"`split={share}` must be a share between 0 and 1, say `split=0.2`")
    order = np.random.RandomState(SPLIT_SEED).permutation(len(labels))
    in_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = order[labels[order] == label]
        if len(members) < 2:
            raise InputError(
                f"{where}: class {classes[label]} has one image, and a split needs two or more, to train on and to "
                "test with; add images of that class or remove it"
            )
        in_test[members[: min(max(round(share * len(members)), 1), len(members) - 1)]] = True
    return in_test


def _refuse_split(path: Path, own: OwnOptions) -> None:
    if own.split is not None:
        raise InputError(f"{path}: has a test set of its own; leave `split={own.split}` out")


def _choose_size(files: list[Path], own: OwnOptions) -> int:
    """Return the side of the square that a folder's images are scaled to.

    `auto` is the median of the shorter sides of some of them, rounded down to one of AUTO_SIZES.
    """
    if own.size != "auto":
        return own.size or DEFAULT_SIZE
    sides = []
    for file in files[:: -(-len(files) // MEASURED_FILES)]:
        try:
            sides.append(measure_side(file, own.max_bytes))
        except InputError:  # reading the folder will name it
            continue
    middle = sorted(sides)[len(sides) // 2] if sides else DEFAULT_SIZE
    return max((size for size in AUTO_SIZES if size <= middle), default=AUTO_SIZES[0])


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
