"""Makes a published data set available, decoded: sources are tried in turn, and the checksum of the content decides."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rkcnn.data import cache
from rkcnn.data.cache import SetDescription
from rkcnn.data.download import download, pack_npm
from rkcnn.data.options import REMEDY, Sources
from rkcnn.data.packaging import (
    PACKAGINGS,
    Packaging,
    SetFiles,
    files_in_archive,
    files_in_folder,
    find_copies,
    fingerprint,
)
from rkcnn.data.progress import Progress
from rkcnn.data.sets import SETS, DataSet
from rkcnn.disk import DiskError, lock_folder, writing_to
from rkcnn.error import InputError


class WrongContentError(InputError):
    """A source can be read, but its content isn't what was published."""


def fetch_set(data: DataSet, sources: Sources, progress: Progress) -> tuple[Path, SetDescription]:
    """Return the folder that holds the decoded set and its description.

    If there is none yet, it is made from the first source whose content has the published checksums; InputError if no
    source has.
    """
    data = SETS[data.decoded]  # coarse labels are stored beside the fine ones
    damages: list[str] = []
    if found := _find_undamaged(data, sources, damages):
        return found
    for damage in damages:
        progress.note(f"{damage}; the set is decoded again")
    root = sources.folders()[0] / "decoded"
    with writing_to(root, REMEDY), lock_folder(root, REMEDY, name=f".{data.folder}.lock", on_wait=progress.note):
        return _find_undamaged(data, sources, []) or _Search(data, sources, progress, root).run(damages)


def find_decoded(data: DataSet, sources: Sources) -> Iterator[tuple[Path, SetDescription]]:
    """Yield each decoded copy of a set on this machine; unverified ones only if `sources` allows it.

    Their files are complete, but their content has not been read; see `cache.find_damage`.
    """
    yield from cache.find_verified(data, sources.folders())
    if sources.unverified:
        for folder in sources.folders():
            path = folder / "decoded" / f"{data.decoded}-unverified"
            description = cache.read_description(path)
            if description is not None and _is_usable(data, sources, description):
                yield path, description


def _find_undamaged(data: DataSet, sources: Sources, damages: list[str]) -> tuple[Path, SetDescription] | None:
    """Return the first decoded copy with the content that was decoded; what is wrong with others joins `damages`."""
    for path, description in find_decoded(data, sources):
        damage = cache.find_damage(path, description)
        if not damage:
            return path, description
        damages.append(damage)
    return None


def _is_usable(data: DataSet, sources: Sources, description: SetDescription) -> bool:
    """Return whether an unverified copy fits the set, and no file was added or changed since it was made.

    A copy whose files have been removed is kept.
    """
    fits = not description.verified and all(
        tuple(part.shape[1:]) == data.shape and bool(part.coarse) >= bool(data.train.coarse)
        for part in description.parts.values()
    )
    return fits and fingerprint(data, sources) in ("", description.fingerprint)


class _Search:
    """One search through the sources; whoever runs it holds the lock."""

    def __init__(self, data: DataSet, sources: Sources, progress: Progress, root: Path) -> None:
        self.data, self.sources, self.progress, self.root = data, sources, progress, root
        self.folder = sources.folders()[0] / data.folder
        self.wrong: list[tuple[Packaging, Path]] = []  # copies that can be read, and could be used unverified
        self.fingerprint = fingerprint(data, sources)  # taken before a file is read, so that a later change is noticed

    def run(self, damages: Sequence[str]) -> tuple[Path, SetDescription]:
        """Return the first decoded set that a source gives; InputError with every failure if none does.

        `damages` are what is wrong with the decoded copies.
        """
        cache.clear_leftovers(self.root, self.data.folder)
        for leftover in self.folder.glob(".npm-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        failures: dict[str, None] = {}  # in order, each once
        for attempt in self._attempts():
            try:
                found = attempt()
            except DiskError:  # another source would not help
                raise
            except InputError as error:
                failures[str(error)] = None
                continue
            for failure in failures:
                self.progress.note(f"passed over: {failure}")
            return found
        if self.sources.offline:
            looked = ", ".join(map(str, (*self.sources.folders(), *self.data.other_folders)))
            failures[f"offline: looked in {looked}"] = None
        remedy = f"put the published files into {self.folder} or name their folder with `data_dir=...`"
        if self.data.debian:
            remedy = f"on Debian apt-get install {self.data.debian} gives it; elsewhere {remedy}"
        if self.wrong and not self.sources.unverified:
            remedy += ", or use the files here all the same with `unverified=True`"
        raise InputError(f"{self.data.name}: no source gave it [{'] ['.join((*damages, *failures))}]; {remedy}")

    def _attempts(self) -> Iterator[Callable[[], tuple[Path, SetDescription]]]:
        """Yield a function for each source, in the order in which they are tried."""
        for packaging, path in find_copies(self.data, self.sources):
            yield partial(self._from_copy, packaging, path, unverified=False)
        if self.sources.unverified:
            for packaging, path in self.wrong:
                yield partial(self._from_copy, packaging, path, unverified=True)
        if self.sources.offline:
            return
        packagings = PACKAGINGS[self.data.name]
        if self.sources.mirror:
            for packaging in packagings:
                if packaging.remote:
                    yield partial(self._from_mirror, packaging, self.sources.mirror.rstrip("/") + "/")
        for packaging in packagings:
            for mirror in packaging.mirrors:
                yield partial(self._from_mirror, packaging, mirror)
        for packaging in packagings:
            if packaging.npm:
                yield partial(self._from_npm, packaging)

    def _from_copy(self, packaging: Packaging, path: Path, unverified: bool) -> tuple[Path, SetDescription]:
        try:
            return self._decode(packaging, self._open_copy(packaging, path), unverified)
        except WrongContentError:
            self.wrong.append((packaging, path))
            raise

    def _from_mirror(self, packaging: Packaging, mirror: str) -> tuple[Path, SetDescription]:
        self.folder.mkdir(parents=True, exist_ok=True)
        tag = hashlib.sha256(mirror.encode()).hexdigest()[:8]  # no mirror continues a download from another
        paths = {name: self.folder / name for name in packaging.remote}
        downloads = {name: self.folder / f"{name}.{tag}.part" for name in paths if not self._has_file(packaging, name)}
        for name, path in downloads.items():
            download(mirror + name, path, self.data.limit, self.sources.timeout, self.progress)
        try:
            if packaging.archive:
                files = self._open_copy(packaging, downloads[packaging.archive])
                files = replace(files, where=mirror + packaging.archive)
            else:
                files = SetFiles(mirror, {name.removesuffix(".gz"): downloads.get(name, paths[name]) for name in paths})
            decoded = self._decode(packaging, files, unverified=False)
        except InputError:
            for path in downloads.values():
                path.unlink(missing_ok=True)
            raise
        for name, path in downloads.items():
            path.replace(paths[name])
        for name in paths:
            for unfinished in self.folder.glob(f"{name}.*.part"):
                unfinished.unlink()  # from mirrors that failed before this one succeeded
        return decoded

    def _has_file(self, packaging: Packaging, name: str) -> bool:
        """Return whether a file is here already, by its md5; two sets share SVHN's large files."""
        stem = name.removesuffix(".gz")
        known = packaging.md5.get(stem) if (self.folder / name).is_file() else None
        return known is not None and SetFiles(name, {stem: self.folder / name}).md5(stem) == known

    def _from_npm(self, packaging: Packaging) -> tuple[Path, SetDescription]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".npm-", dir=self.folder) as folder:
            tarball = pack_npm(packaging.npm, Path(folder), self.progress)
            files = replace(self._open_copy(packaging, tarball), where=f"npm package {packaging.npm}")
            decoded = self._decode(packaging, files, unverified=False)
            tarball.replace(self.folder / packaging.archive)
        return decoded

    def _open_copy(self, packaging: Packaging, path: Path) -> SetFiles:
        """Return the files of a copy: the members of an archive, or the files of a folder."""
        if path.is_file():
            return files_in_archive(path, packaging.folder, packaging.files, self.data.limit)
        files = files_in_folder(path, packaging.files)
        if files is None:
            raise InputError(f"{path}: lost a file while it was being read; try again")
        return files

    def _decode(self, packaging: Packaging, files: SetFiles, unverified: bool) -> tuple[Path, SetDescription]:
        """Decode the files into the cache; WrongContentError if they aren't as published, unless `unverified`."""
        self.progress.note(f"reading {files.where}")
        wrong = [f"{name} md5" for name, md5 in packaging.md5.items() if files.md5(name) != md5]
        if wrong and not unverified:
            raise WrongContentError(f"{files.where}: {wrong[0]} is not that of the published file")
        parts = packaging.read(files, self.data.limit)
        classes = list(self.data.classes)
        folder, description = cache.write_parts(self.root, self.data.folder, parts, classes, files.where)
        wrong += cache.list_differences(self.data, description)
        description.verified = not wrong
        try:
            _refuse_other_set(self.data, description)
            if wrong and not unverified:
                differ = f"its content is not what was published ({', '.join(wrong)} differ)"
                raise WrongContentError(f"{files.where}: {differ}")
        except InputError:
            shutil.rmtree(folder)
            raise
        final = self.root / (self.data.decoded if description.verified else f"{self.data.decoded}-unverified")
        if unverified:
            description.fingerprint = self.fingerprint
        cache.move_into_place(folder, description, final)
        return final, description


def _refuse_other_set(data: DataSet, description: SetDescription) -> None:
    """Raise InputError for what can't be this set even unverified: images of another shape or of another set."""
    for name, part in description.parts.items():
        if tuple(part.shape[1:]) != data.shape:
            sizes = [" x ".join(map(str, shape)) for shape in (part.shape[1:], data.shape)]
            raise InputError(f"{description.source}: {name} images are {sizes[0]}, and those of {data.name} {sizes[1]}")
        for other in SETS.values():
            known = {other.train.pixels, other.test.pixels} - {"", data.train.pixels, data.test.pixels}
            if part.pixels in known:
                raise InputError(
                    f"{description.source}: its {name} images are those of {other.name}, not of {data.name}"
                )
