"""The image files of a folder with one subfolder for each class: those of train and of test. No image is decoded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.options import BELOW_SHARE, OwnOptions
from rkcnn.data.split import check_classes, check_split, divide, find_rule, place_files
from rkcnn.error import InputError
from rkcnn.escape import is_unicode

# no GIF: Pillow allocates what its header claims, up to 178 MB, before anything can be refused
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
NAMED_TYPES = 5  # of files that are left out, in a line

Note = Callable[[str], None]  # called with a sentence for the user
LabelledFiles = tuple[tuple[Path, int], ...]  # image files with their labels


@dataclass(frozen=True)
class ImageFiles:
    """The class names and image files of one folder; no file has been opened yet."""

    classes: tuple[str, ...]
    files: LabelledFiles

    @property
    def labels(self) -> NDArray[np.int64]:
        """The label of each file, (N,)."""
        return np.array([label for _, label in self.files], np.int64)


def find_parts(path: Path, own: OwnOptions, whole: bool, note: Note) -> dict[str, ImageFiles]:
    """Return the image files of train and test, from folders of these names; or of "all", for `split` or `whole`."""
    if own.keys is not None:
        raise InputError(f"`keys={own.keys}` given with a folder; it names the arrays of an .npz file")
    parts = find_part_folders(path, note)
    if len(parts) == 2:
        refuse_split(path, own)
        training, testing = (find_images(parts[name], note) for name in ("train", "test"))
        unknown = sorted(set(testing.classes) - set(training.classes))
        if unknown:
            raise InputError(f"{parts['test']}: class {unknown[0]} is not in {parts['train']}, and must be")
        labels = {name: label for label, name in enumerate(training.classes)}
        files = tuple((file, labels[file.parent.name]) for file, _ in testing.files)
        return {"train": training, "test": ImageFiles(training.classes, files)}
    if parts:
        (only,) = parts.values()
        raise InputError(
            f"{path}: has {only.name}/, and needs train/ and test/ (or val/) both, or the classes alone with "
            f"`split=0.2`; add the other folder, name folder:{only}, or rename {only.name}/ if it is a class"
        )
    images = find_images(path, note)
    if not whole or own.split is not None:
        check_split(own.split, str(path))
        if find_rule(own) != BELOW_SHARE:
            check_classes(images.labels, images.classes, str(path))
    return {"all": images}


def split_files(path: Path, images: ImageFiles, own: OwnOptions) -> tuple[dict[str, ImageFiles], str]:
    """Return the files of train and test, and the rule by which they were chosen; without a split all are of test."""
    if own.split is None:
        return {"test": images}, ""
    files = [file for file, _ in images.files]
    parts, rule = divide(images.labels, images.classes, own, str(path), lambda: place_files(files, own.max_bytes))
    chosen = {name: tuple(images.files[index] for index in np.flatnonzero(mask)) for name, mask in parts.items()}
    return {name: ImageFiles(images.classes, some) for name, some in chosen.items()}, rule


def find_part_folders(folder: Path, note: Note = lambda _: None) -> dict[str, Path]:
    """Return the subfolders of `folder` that hold the training and the test images, as far as there are such.

    They are called train, and test or else val, in upper or lower case. `note` is told of what lies beside both.
    """
    entries = _list_folder(folder)
    folders = [path for path, kind in entries if kind == "folder"][::-1]  # of train and Train the first
    found: dict[str, Path] = {}
    for part, names in (("train", ("train",)), ("test", ("test", "val"))):
        if fitting := [path for name in names for path in folders if path.name.lower() == name]:
            found[part] = fitting[0]
    beside = [path for path, kind in entries if kind in ("folder", "picture", "broken") and path not in found.values()]
    if len(found) == 2 and beside:
        parts = " and ".join(f"{path.name}/" for path in found.values())
        note(f"{folder}: left out {_count(beside, 'item')} beside {parts}")
    return found


def find_images(folder: Path, note: Note = lambda _: None) -> ImageFiles:
    """Return every image in the subfolders of `folder`, sorted by name.

    Hidden files are ignored. `note` is told of what else is left out: files of other types, pictures beside the
    classes' folders or in folders of these, and links to nothing. A class without an image raises InputError.
    """
    entries = _list_folder(folder)
    classes = tuple(path.name for path, kind in entries if kind == "folder")
    if not classes:
        raise InputError(f"{folder}: has no subfolders, and needs one for each class")
    for name in classes:
        if not is_unicode(name):
            raise InputError(f"{folder}: the name of the class folder {name!r} is no UTF-8; rename it")
    files: list[tuple[Path, int]] = []
    others: Counter[str] = Counter()
    beside = [path for path, kind in entries if kind == "picture"]
    broken = [path for path, kind in entries if kind == "broken"]
    deeper: list[Path] = []
    for label, name in enumerate(classes):
        for path, kind in _list_folder(folder / name):
            if kind == "picture":
                files.append((path, label))
            elif kind == "file":
                others[path.suffix.lower() or "no suffix"] += 1
            elif kind == "folder":
                inside = (Path(at, each) for at, _, found in os.walk(path) for each in sorted(found))
                deeper += filter(_is_picture, inside)
            elif kind == "broken":
                broken.append(path)
    if others:
        note(f"{folder}: left out {_list_types(others)}")
    for paths, what, where in (
        (beside, "picture", " beside the classes' folders"),
        (deeper, "picture", " in folders inside a class's folder"),
        (broken, "link", " to a file that doesn't exist"),
    ):
        if paths:
            note(f"{folder}: left out {_count(paths, what)}{where}")
    full = {label for _, label in files}
    if empty := [name for label, name in enumerate(classes) if label not in full]:
        raise InputError(
            f"{folder / empty[0]}: is a class with no image; put {', '.join(SUFFIXES)} files in or remove the folder"
        )
    return ImageFiles(classes, tuple(files))


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.name[0] != "."


def _count(paths: Sequence[Path], what: str) -> str:
    """Return how many there are, and the first, as in 2 pictures (a.png, ...)."""
    more = ", ..." if len(paths) > 1 else ""
    return f"{len(paths)} {what}{'s' * (len(paths) != 1)} ({paths[0].name}{more})"


def _list_types(others: Counter[str]) -> str:
    """Return how many files of which types there are, as in 3 files of other types (.gif 2, .tif 1)."""
    few = [f"{suffix[:20]} {count}" for suffix, count in others.most_common(NAMED_TYPES)]
    more = [f"{len(others) - len(few)} more types"] if len(others) > len(few) else []
    return f"{others.total()} file{'s' * (others.total() != 1)} of other types ({', '.join(few + more)})"


def refuse_split(path: Path, own: OwnOptions) -> None:
    """Raise InputError if a split is given, where images have a test set of their own."""
    if own.split is not None:
        raise InputError(f"{path}: has a test set of its own; leave `split={own.split}` out")


def _list_folder(folder: Path) -> list[tuple[Path, str]]:
    """Return what a folder holds, sorted by name and without hidden entries, each with its kind."""
    try:
        return [(path, _find_kind(path)) for path in sorted(folder.iterdir()) if path.name[0] != "."]
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: can't be read ({error.strerror}); allow reading it or move it away"
        ) from None


def _find_kind(path: Path) -> str:
    """Return folder, picture, file (of another type), broken (a link to nothing) or other."""
    if path.is_dir():
        return "folder"
    if path.is_file():
        return "picture" if _is_picture(path) else "file"
    return "other" if path.exists() else "broken"
