"""A user's own images, decoded and cached: a folder with one subfolder for each class, or an .npz file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rkcnn.data import cache
from rkcnn.data.cache import SetDescription
from rkcnn.data.options import BELOW_SHARE, REMEDY, OwnOptions, Sources, read_own_options
from rkcnn.data.progress import Progress
from rkcnn.data.read.folder import DEFAULT_SIZE, are_grey, choose_size, read_folder
from rkcnn.data.read.image_files import ImageFiles, find_parts, refuse_split, split_files
from rkcnn.data.read.labelled_pixels import LabelledPixels, convert_channels, is_grey
from rkcnn.data.read.npz import Labels, Shapes, read_npz
from rkcnn.data.split import check_classes, check_split, divide, find_rule, place_images
from rkcnn.disk import lock_folder, open_file, writing_to
from rkcnn.error import InputError
from rkcnn.escape import escape_text, is_unicode

PREFIXES = ("folder:", "npz:")  # of the names of own images
NAMED_FILES = 5  # that were left out, said again whenever the images are used; of more, how many


def decode_own_images(
    name: str, sources: Sources, own: OwnOptions, progress: Progress, whole: bool = False
) -> tuple[Path, SetDescription, OwnOptions]:
    """Return the folder that holds the decoded images of `folder:PATH` or `npz:PATH`, and its description.

    Also returns the options with the size and the rule of the split that were really used. Images are decoded again
    whenever a file was added, removed or changed. With `whole`, images that have no test set of their own and no split
    are a test set alone.
    """
    kind, _, given = name.partition(":")
    path = _resolve(kind, given)
    found = find_parts(path, own, whole, progress.note) if kind == "folder" else {}
    files = [file for part in found.values() for file, _ in part.files] if kind == "folder" else [path]
    size = own.size
    if kind == "folder":
        size = choose_size(files, size, own.max_bytes)
    elif size == "auto":
        size = None
    own = replace(own, size=size)
    wanted = _Wanted(kind, path, own, whole, _fingerprint(path, files))
    root = sources.folders()[0] / "decoded"
    damages: list[str] = []
    if decoded := _find_decoded(sources, wanted, damages, progress):
        return *decoded, _with_rule(own, decoded[1])
    for damage in damages:
        progress.note(f"{damage}; they are decoded again")
    with writing_to(root, REMEDY), lock_folder(root, REMEDY, name=".own.lock", on_wait=progress.note):
        if decoded := _find_decoded(sources, wanted, [], progress):  # by the process that held the lock
            return *decoded, _with_rule(own, decoded[1])
        cache.clear_leftovers(root, "own")
        progress.note(f"reading {path}")
        notes: list[str] = []
        if kind == "folder":
            classes, parts, rule = _read_folder(path, found, own, progress, notes)
        else:
            classes, parts, rule = _read_npz(path, own, whole)
        folder, description = cache.write_parts(root, "own", parts, list(classes), str(path))
        description.fingerprint, description.notes = f"{wanted.fingerprint} {rule}".strip(), notes
        final = root / wanted.name(own.channels, whole="train" not in description.parts)
        cache.move_into_place(folder, description, final)
    return final, description, _with_rule(own, description)


def _with_rule(own: OwnOptions, description: SetDescription) -> OwnOptions:
    """Return the options with the rule of the split, which follows the fingerprint of the files."""
    rule = description.fingerprint.partition(" ")[2]
    return read_own_options({**asdict(own), "split_rule": rule}) if rule else own


@dataclass(frozen=True)
class _Wanted:
    """Which decoded images are looked for."""

    kind: str
    path: Path
    own: OwnOptions
    whole: bool  # a test set alone will do
    fingerprint: str

    def name(self, channels: int | None, whole: bool) -> str:
        """Return the name of the folder of images that were decoded with these options."""
        own = self.own
        chosen = f"{own.size} {own.split} {own.skip_bad} {own.keys} {channels} {'whole' if whole else ''}"
        rule = "" if own.split is None else f" by {find_rule(own)}"
        options = os.fsencode(f"by pixels {self.kind} {self.path} {chosen}{rule}")
        return f"own-{hashlib.sha256(options).hexdigest()[:16]}"

    def names(self) -> dict[str, bool]:
        """Return the names that the images may have, and whether they are a test set alone.

        Images that were read without a number of channels will do too, if they have as many as are wanted.
        """
        channels = dict.fromkeys((self.own.channels, None))
        return {self.name(each, whole): whole for each in channels for whole in ((False, True)[: 1 + self.whole])}

    def fits(self, description: SetDescription, whole: bool) -> bool:
        channels = {part.shape[3] for part in description.parts.values()}
        return (
            description.fingerprint.partition(" ")[0] == self.fingerprint
            and not description.verified
            and ("train" in description.parts) is not whole
            and (self.own.channels is None or channels == {self.own.channels})
        )


def _find_decoded(
    sources: Sources, wanted: _Wanted, damages: list[str], progress: Progress
) -> tuple[Path, SetDescription] | None:
    """Return the first decoded copy with the content that was decoded; what is wrong with others joins `damages`.

    Which files were left out of it is said again.
    """
    for folder in sources.folders():
        for name, whole in wanted.names().items():
            path = folder / "decoded" / name
            description = cache.read_description(path, {"test"})
            if description and wanted.fits(description, whole):
                shapes = [part.shape for part in description.parts.values()]
                _, height, width, channels = shapes[0]
                _check_total(
                    wanted.path, sum(each[0] for each in shapes), height, width, channels, wanted.own.max_bytes
                )
                damage = cache.find_damage(path, description)
                if not damage:
                    for note in description.notes:
                        progress.note(note)
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


def is_same_place(name: str, other: str) -> bool:
    """Return whether two names of own images, `folder:PATH` or `npz:PATH`, mean one folder or file that exists."""
    if not name.startswith(PREFIXES) or name.partition(":")[0] != other.partition(":")[0]:
        return False
    try:
        return len({_resolve(kind, given) for kind, _, given in (name.partition(":"), other.partition(":"))}) == 1
    except InputError:
        return False


def _read_folder(
    path: Path, found: dict[str, ImageFiles], own: OwnOptions, progress: Progress, notes: list[str]
) -> tuple[tuple[str, ...], Iterator[tuple[str, LabelledPixels]], str]:
    """Return the class names, an iterator over the decoded images of train and test, and the rule of the split.

    At its end, which files were left out is in `notes`.
    """
    assert isinstance(own.size, int)  # by `choose_size`
    size = own.size
    files = tuple(file for part in found.values() for file in part.files)
    skipped: dict[Path, str] = {}

    def on_bad(file: Path, error: InputError) -> None:
        if not own.skip_bad:
            raise InputError(f"{error}; `skip_bad=True` would leave it out")
        if file not in skipped:
            skipped[file] = escape_text(f"left out: {error}")
            progress.note(skipped[file])

    _check_total(path, len(files), size, size, own.channels or 1, own.max_bytes)
    # at a size that would be refused if there were colours, these are looked for at a small one
    looked_at = size if 3 * len(files) * size * size <= own.max_bytes else min(size, DEFAULT_SIZE)
    channels = own.channels or (1 if are_grey(files, looked_at, own.max_bytes, on_bad) else 3)
    _check_total(path, len(files), size, size, channels, own.max_bytes)
    parts, rule = split_files(path, found["all"], own) if "all" in found else (found, "")

    def read() -> Iterator[tuple[str, LabelledPixels]]:
        for name in parts:
            count = 0
            for images in read_folder(parts[name].files, size, channels, own.max_bytes, on_bad):
                count += len(images.labels)
                yield name, images
            if not count:
                raise InputError(f"{path}: no image of the {name} set can be read")
        readable = {file.parent for file, _ in files if file not in skipped}
        emptied = sorted({file.parent for file in skipped} - readable)
        said = list(skipped.values())
        notes.extend(said[:NAMED_FILES])
        if len(said) > NAMED_FILES:
            notes.append(f"left out: {len(said) - NAMED_FILES} more files that can't be read")
        if emptied:
            raise InputError(
                f"{emptied[0]}: is a class of which no image can be read; repair some or remove the folder"
            )

    return parts["test"].classes, read(), rule


def _check_total(path: Path, count: int, height: int, width: int, channels: int, limit: int) -> None:
    """Raise InputError if so many decoded images take more than `limit` bytes."""
    if (total := count * height * width * channels) > limit:
        raise InputError(
            f"{path}: {count} images of {height} x {width} take {total} bytes, more than `max_bytes={limit}`; choose a "
            "smaller size or allow more"
        )


def _read_npz(
    path: Path, own: OwnOptions, whole: bool
) -> tuple[tuple[str, ...], Iterator[tuple[str, LabelledPixels]], str]:
    """Return the class names, the images of train and test, the latter by `split` if the file has none, and its rule.

    With `whole` and neither, all images are of test.
    """
    splits = not whole or own.split is not None  # where there is no test set

    def check_shapes(shapes: Shapes) -> None:
        if own.size is not None and shapes["train"][1:3] != (own.size, own.size):
            raise InputError(
                f"{path}: images are {shapes['train'][1:3]}, and an .npz is not resized; leave `size={own.size}` out"
            )
        if "test" in shapes:
            refuse_split(path, own)
        elif splits:
            check_split(own.split, str(path))

    def check_labels(labels: Labels, classes: tuple[str, ...]) -> None:
        if "test" not in labels and splits and find_rule(own) != BELOW_SHARE:
            check_classes(labels["train"], classes, str(path))

    with open_file(path) as file:
        parts, classes = read_npz(file, str(path), own.max_bytes, own.key_names(), check_shapes, check_labels)
    rule = ""
    if "test" not in parts and not splits:
        parts = {"test": parts["train"]}
    elif "test" not in parts:
        images = parts["train"]
        masks, rule = divide(images.labels, classes, own, str(path), lambda: place_images(images.pixels))
        parts = {
            name: LabelledPixels(images.where, images.pixels[chosen], images.labels[chosen])
            for name, chosen in masks.items()
        }
    channels = own.channels or (1 if all(is_grey(part.pixels) for part in parts.values()) else 3)
    converted = ((name, replace(part, pixels=convert_channels(part.pixels, channels))) for name, part in parts.items())
    return classes, converted, rule


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
