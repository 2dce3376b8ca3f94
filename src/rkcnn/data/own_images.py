"""A user's own images, decoded and stored: a folder with a subfolder a class, or an .npz."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rkcnn.data import cache
from rkcnn.data.cache import Catalogue
from rkcnn.data.files import open_file
from rkcnn.data.lock import locked
from rkcnn.data.own import OwnOptions
from rkcnn.data.progress import Progress
from rkcnn.data.read.folder import Found, find_images, grey, read_folder
from rkcnn.data.read.npz import read_npz
from rkcnn.data.read.part import Part
from rkcnn.data.sources import REMEDY, Sources
from rkcnn.disk import writing_to
from rkcnn.error import InputError

SPLIT_SEED = 20241  # of the permutation that sets a test set apart where there is none


def obtain_own(name: str, sources: Sources, own: OwnOptions, progress: Progress) -> tuple[Path, Catalogue]:
    """The folder that holds the decoded images, made anew when a file there was added, removed or changed."""
    kind, _, given = name.partition(":")
    path = _place(kind, given)
    if own.split is not None and not 0 < own.split < 1:
        raise InputError(f"--split {own.split} must be a share between 0 and 1, say 0.2")
    if own.size is not None and own.size < 1:
        raise InputError(f"--size {own.size} must be 1 pixel or more")
    described = os.fsencode(f"{kind} {path} {own.size} {own.split} {own.skip_bad}")
    identity = hashlib.sha256(described).hexdigest()[:16]
    found = _parts(path, own) if kind == "folder" else {}
    files = [file for part in found.values() for file, _ in part.files] if kind == "folder" else [path]
    fingerprint = _fingerprint(path, files)
    root = sources.places()[0] / "decoded"
    if stored := _stored(sources, identity, fingerprint):
        return stored
    with writing_to(root, REMEDY):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / ".own.lock", progress):
            if stored := _stored(sources, identity, fingerprint):  # by the process that held the lock
                return stored
            cache.clear_leftovers(root, "own")
            progress.note(f"reading {path}")
            classes, parts = _folder(path, found, own, progress) if kind == "folder" else _npz(path, own)
            folder, catalogue = cache.write(root, "own", parts, list(classes), str(path))
            catalogue.fingerprint = fingerprint
            cache.keep(folder, catalogue, root / f"own-{identity}")
    return root / f"own-{identity}", catalogue


def _stored(sources: Sources, identity: str, fingerprint: str) -> tuple[Path, Catalogue] | None:
    for place in sources.places():
        stored = cache.catalogue_of(place / "decoded" / f"own-{identity}")
        if stored and stored.fingerprint == fingerprint:
            return place / "decoded" / f"own-{identity}", stored
    return None


def _place(kind: str, given: str) -> Path:
    what = "folder" if kind == "folder" else "file"
    if not given:
        raise InputError(f"{kind}: names no {what}; put its path after the colon, say {kind}:photos")
    try:
        path = Path(given).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a ring of links, no such user, a zero byte
        raise InputError(f"{kind}:{given!r} can't be a path ({error}); give that of a {what}") from None
    if not (os.path.isdir(path) if kind == "folder" else os.path.isfile(path)):
        raise InputError(f"{kind}:{given}: {path} is no {what}")
    return path


def _folder(
    path: Path, found: dict[str, Found], own: OwnOptions, progress: Progress
) -> tuple[tuple[str, ...], Iterator[tuple[str, Part]]]:
    classes, size = found["train"].classes, own.size or 32
    everything = found["train"].files + found["test"].files
    skipped: set[Path] = set()

    def bad(file: Path, error: InputError) -> None:
        if not own.skip_bad:
            raise InputError(f"{error}; --skip-bad would leave it out")
        if file not in skipped:
            progress.note(f"left out: {error}")
        skipped.add(file)

    channels = 1 if grey(everything, own.max_bytes, bad) else 3
    total = len(everything) * size * size * channels
    if total > own.max_bytes:
        raise InputError(
            f"{path}: {len(everything)} images of {size} x {size} take {total} bytes, "
            f"more than --max-bytes {own.max_bytes}"
        )

    def read() -> Iterator[tuple[str, Part]]:
        for name in ("train", "test"):
            seen = 0
            for part in read_folder(found[name].files, size, channels, own.max_bytes, bad):
                seen += len(part.labels)
                yield name, part
            if not seen:
                raise InputError(f"{path}: no image of the {name} set can be read")
        left = {file.parent for file, _ in everything if file not in skipped}
        emptied = sorted({file.parent for file in skipped} - left)
        if emptied:
            raise InputError(f"{emptied[0]}: is a class of which no image can be read; mend some or remove the folder")

    return classes, read()


def _parts(path: Path, own: OwnOptions) -> dict[str, Found]:
    test = next((path / name for name in ("test", "val") if (path / name).is_dir()), None)
    if (path / "train").is_dir() and test is not None:
        found = {"train": find_images(path / "train"), "test": find_images(test)}
        classes = found["train"].classes
        unknown = sorted(set(found["test"].classes) - set(classes))
        if unknown:
            raise InputError(f"{test}: class {unknown[0]} is not in {path / 'train'}, and must be")
        labels = {name: label for label, name in enumerate(classes)}
        files = tuple((file, labels[file.parent.name]) for file, _ in found["test"].files)
        return {"train": found["train"], "test": Found(classes, files)}
    if (path / "train").is_dir() or test is not None:
        raise InputError(f"{path}: needs train/ and test/ (or val/) both, or the classes alone with --split 0.2")
    whole = find_images(path)
    chosen = _chosen(len(whole.files), own, path)
    return {
        "train": Found(whole.classes, tuple(file for file, test in zip(whole.files, chosen, strict=True) if not test)),
        "test": Found(whole.classes, tuple(file for file, test in zip(whole.files, chosen, strict=True) if test)),
    }


def _npz(path: Path, own: OwnOptions) -> tuple[tuple[str, ...], Iterator[tuple[str, Part]]]:
    with open_file(path) as file:
        parts, classes = read_npz(file, str(path), own.max_bytes)
    if own.size is not None and parts["train"].pixels.shape[1:3] != (own.size, own.size):
        raise InputError(
            f"{path}: images are {parts['train'].pixels.shape[1:3]}, and an .npz is not resized; "
            f"leave --size {own.size} out"
        )
    if "test" not in parts:
        whole = parts["train"]
        chosen = np.array(_chosen(len(whole.labels), own, path))
        for name, taken in (("train", ~chosen), ("test", chosen)):
            parts[name] = Part(whole.where, whole.pixels[taken], whole.labels[taken])
    if parts["train"].pixels.shape[1:] != parts["test"].pixels.shape[1:]:
        raise InputError(f"{path}: training and test images differ in shape, and must not")
    return classes, iter(parts.items())


def _chosen(count: int, own: OwnOptions, path: Path) -> list[bool]:
    """Which of `count` images are the test set: a share of a fixed permutation."""
    if own.split is None:
        raise InputError(f"{path}: has no test set of its own; state the share to set apart, say --split 0.2")
    test = round(count * own.split)
    if not 0 < test < count:
        raise InputError(f"{path}: --split {own.split} of {count} images leaves one of the two sets empty")
    chosen = np.zeros(count, bool)
    chosen[np.random.RandomState(SPLIT_SEED).permutation(count)[:test]] = True
    return [bool(taken) for taken in chosen]


def _fingerprint(path: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        try:
            state = file.stat()
        except OSError as error:
            raise InputError(f"{file}: can't be read ({error.strerror})") from None
        digest.update(os.fsencode(file.relative_to(path)) + f" {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
