"""Files that are written completely or not at all, locks between processes, and disk errors as plain sentences."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from pathlib import Path

from rkcnn.error import InputError

LOCK_HOLDER = "RKCNN_HOLDER"  # environment variable of a worker: the process id of its driver, for lock messages
_REASONS = {
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EISDIR: "a folder with that name already exists",
    errno.EEXIST: "a file with that name already exists",
    errno.ENOENT: "its folder doesn't exist or was deleted in the meantime",
    errno.ENAMETOOLONG: "the name or path is longer than this file system takes",
}
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe returns at once instead of waiting for its other end
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # opening a symbolic link fails
_BINARY = getattr(os, "O_BINARY", 0)  # Windows translates line ends without it
_LONGEST_STEM = 50  # characters of a file's name in that of its part, which must stay below 255 bytes
_LONGEST_NUMBER = 20  # digits of a process's number
_POLL = 0.1  # seconds between two attempts to get a lock
_LOCKED_BYTE = 1 << 20  # Windows only: the locked byte can't be read, so it lies beyond the process id


class DiskError(InputError):
    """A file or folder can't be written."""


class MissingFile(InputError):
    """A file that was to be read does not exist."""


class FolderLocked(InputError):
    """Another process has locked that folder."""

    def __init__(self, holder: str, folder: Path) -> None:
        super().__init__(f"{holder} is training in {folder}; wait for it or stop it")
        self.holder, self.folder = holder, folder


@contextmanager
def writing_to(path: Path, remedy: str) -> Iterator[None]:
    """Turn an OSError in the block into a `DiskError` that names `path` and ends with `remedy`, what would work."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT:
            remedy = "name another folder or make it again"
        raise DiskError(f"can't write to {path}: {explain(error)}; {remedy}") from error


def explain(error: OSError) -> str:
    """Return in plain words why something can't be written."""
    return _REASONS.get(error.errno or 0, str(error))


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading bytes, also through a symbolic link.

    Raises `MissingFile` if there is none, and InputError for a folder, a pipe or a device, without waiting for one.
    """
    try:
        _refuse_unless_regular(path, path.stat().st_mode)  # before it is opened, which has effects on some devices
        file = os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY)
    except (FileNotFoundError, NotADirectoryError):  # the second where a parent is a file
        if path.is_symlink():
            raise InputError(f"{path}: can't be read (it is a link to a file that doesn't exist)") from None
        raise MissingFile(f"{path}: can't be read (there is no such file)") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # the latter for a name with a null byte
        raise InputError(f"{path}: can't be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        _refuse_unless_regular(path, os.fstat(file).st_mode)  # it may have been replaced in between
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_file(path: Path, limit: int) -> bytes:
    """Return the content of a regular file; InputError if it has more than `limit` bytes or `open_file` refuses it."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            content = file.read(limit + 1) if size <= limit else b""  # some files are longer than they say
        except OSError as error:
            raise InputError(f"{path}: can't be read ({error.strerror})") from None
    if max(size, len(content)) > limit:
        raise InputError(f"{path}: can't be read (it has more than {limit:,} bytes, the limit for such a file)")
    return content


def write_atomically(path: Path, content: bytes, remedy: str = "name another folder") -> None:
    """Write all of `content` or nothing: to a new file beside `path`, synced to the disk, then renamed to it.

    A symbolic link at `path` is replaced, and what it points to stays as it is. A folder, a pipe or a device is not
    replaced: that is a `DiskError`.
    """
    part = _name_part(path)
    with writing_to(path, remedy):
        _refuse_to_replace(path, remedy)
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o666)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(file)
            part.replace(path)
            if sys.platform != "win32":  # Windows can't open folders
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)  # so that the rename is on the disk too
                finally:
                    os.close(folder)
        finally:
            part.unlink(missing_ok=True)


def write_output(path: Path, content: bytes, remedy: str) -> None:
    """Write a file that the user has named, as `write_atomically` does, but follow a symbolic link, which stays."""
    write_atomically(_follow_links(path, remedy), content, remedy)


def check_output(path: Path, remedy: str) -> None:
    """Raise DiskError if `write_output` could not write there; nothing is changed, and the file need not exist.

    It says at the start of long work that its result would be lost.
    """
    target = _follow_links(path, remedy)
    with writing_to(path, remedy):
        _refuse_to_replace(target, remedy)
        part = _name_part(target)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666))
        part.unlink()


def check_replaceable(path: Path) -> None:
    """Raise DiskError if there is, or if a link leads to, a folder, a pipe or a device, which is never replaced.

    It says at the start of long work that its result could not be written there.
    """
    with writing_to(path, "name another folder"):
        _refuse_to_replace(path, "")


def open_to_write(path: Path, remedy: str, *, create: bool) -> FileIO:
    """Open a regular file for reading and writing, without emptying it and without a buffer.

    Where there is none, it is made if `create` is set. A symbolic link is not followed: that, a folder, a pipe or a
    device is a `DiskError` that ends with `remedy`.
    """
    with writing_to(path, remedy):
        if os.path.lexists(path):
            _refuse_to_write(path, path.lstat().st_mode, remedy)  # before it is opened, as in `open_file`
        file = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0) | _NO_FOLLOW | _NO_WAIT | _BINARY, 0o644)
        opened = FileIO(file, "r+b")
        try:
            _refuse_to_write(path, os.fstat(file).st_mode, remedy)
        except BaseException:
            opened.close()
            raise
    return opened


@contextmanager
def lock_folder(
    folder: Path,
    remedy: str = "name another `out=...`",
    *,
    name: str = ".lock",
    on_wait: Callable[[str], object] | None = None,
) -> Iterator[None]:
    """Hold the lock file `name` in `folder`, which is made if it doesn't exist.

    The operating system frees the lock when the process ends, also if it is killed. If another process holds it, the
    call raises `FolderLocked`; with `on_wait` it waits instead, after calling `on_wait` once with a sentence that says
    so. `remedy` ends the message about a folder that can't be written or locked.
    """
    path = folder / name
    with writing_to(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
    with open_to_write(path, remedy, create=True) as opened:
        file = opened.fileno()
        waiting = False
        while not _try_lock(file, folder, remedy):
            number = _read_number(file)
            holder = f"process {number}" if number else "another process"
            if on_wait is None:
                raise FolderLocked(holder, folder)
            if not waiting:
                on_wait(f"waiting for {holder}, which has locked {path}")
            waiting = True
            time.sleep(_POLL)
        if os.fstat(file).st_nlink > 1:
            why = f"{path} is also a file elsewhere, by a hard link"
            raise DiskError(f"can't lock {folder}: {why}; remove it, or {remedy}")
        if not _is_lock(file):
            raise DiskError(f"can't lock {folder}: {path} is no lock file of rkcnn; remove it, or {remedy}")
        with suppress(OSError):  # on a full disk the process id can't be written, but the lock is held
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, os.environ.get(LOCK_HOLDER, str(os.getpid())).encode())
        yield


def _try_lock(file: int, folder: Path, remedy: str) -> bool:
    """Lock an open file unless another process has; return whether that succeeded."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the former on POSIX, the latter on Windows
        return False
    except OSError as error:  # as on some network file systems
        why = f"its file system can't lock files ({error.strerror})"
        raise InputError(f"can't lock {folder}: {why}; {remedy}") from None
    return True


def _read_number(file: int) -> str:
    """Return the number of the process that holds the lock; empty if it has not been written."""
    os.lseek(file, 0, os.SEEK_SET)
    number = os.read(file, _LONGEST_NUMBER)
    return number.decode() if number.isdigit() else ""


def _is_lock(file: int) -> bool:
    """Whether a file holds what a lock file does, a process's number at most; anything else is not overwritten."""
    return os.fstat(file).st_size == len(_read_number(file))


def _refuse_unless_regular(path: Path, mode: int) -> None:
    """Raise InputError if the mode of `path` is that of a folder, a pipe, a socket or a device."""
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: can't be read (it is {_name_kind(mode)}, not a file)")


def _refuse_to_write(path: Path, mode: int, remedy: str) -> None:
    """Raise DiskError if the mode of `path` is not that of a regular file."""
    if not stat.S_ISREG(mode):
        raise DiskError(
            f"can't write to {path}: it is {_name_kind(mode)}, not a file; remove it{remedy and f', or {remedy}'}"
        )


def _refuse_to_replace(path: Path, remedy: str) -> None:
    """Raise DiskError if `path` is, or is a link to, something other than a regular file."""
    with suppress(FileNotFoundError):
        _refuse_to_write(path, path.stat().st_mode, remedy)


def _follow_links(path: Path, remedy: str) -> Path:
    """Return the file that a symbolic link leads to, or `path` itself.

    Raises DiskError for the links by which a system names a process's open files, such as /dev/stdout: replacing what
    they lead to would not write to the open file.
    """
    folder = Path(os.path.realpath(path.parent))
    if folder == Path("/dev") or folder.is_relative_to("/proc"):
        raise DiskError(f"can't write to {path}: it is a device or an open file of a process; {remedy}")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _name_part(path: Path) -> Path:
    """Return a new name beside `path`, under which its content is written first."""
    return path.with_name(f".{path.name[:_LONGEST_STEM]}.{secrets.token_hex(8)}.part")


def _name_kind(mode: int) -> str:
    """Return what a file that is not regular is, by its mode."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
