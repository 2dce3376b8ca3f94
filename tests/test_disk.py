"""Files written completely or not at all; one holder of a lock at a time, and none that is dead."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from rkcnn.disk import (
    LOCK_HOLDER,
    DiskError,
    FolderLocked,
    MissingFile,
    check_output,
    check_replaceable,
    lock_folder,
    open_file,
    open_to_write,
    read_file,
    write_atomically,
    write_output,
    writing_to,
)
from rkcnn.error import InputError

HOLD = """
import sys, time
from pathlib import Path
from rkcnn.disk import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_file_in_the_path_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    says = "a part of its path is a file, not a folder; do other"
    with pytest.raises(DiskError, match=says), writing_to(tmp_path / "file" / "x", "do other"):
        (tmp_path / "file" / "x").write_text("")


def test_what_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't be read \(it is a folder, not a file\)$"):
        open_file(tmp_path)
    with pytest.raises(InputError, match="can't be read"):
        open_file(tmp_path / "null\0byte")
    with pytest.raises(InputError, match="can't be read"):
        open_file(tmp_path / ("long" * 100))


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert read_file(path, 5) == read_file(tmp_path / "link", 5) == b"12345"
    with pytest.raises(InputError, match=r"file: can't be read \(it has more than 4 bytes"):
        read_file(path, 4)
    (tmp_path / "lost").symlink_to(tmp_path / "nothing")
    with pytest.raises(InputError, match="it is a link to a file that doesn't exist") as caught:
        read_file(tmp_path / "lost", 10)
    assert not isinstance(caught.value, MissingFile)
    with pytest.raises(MissingFile, match="there is no such file"):
        read_file(tmp_path / "missing", 4)
    with pytest.raises(InputError, match="more than 100 bytes"):  # its size on the disk is 0
        read_file(Path("/proc/self/maps"), 100)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "result.json")
    with pytest.raises(InputError, match=r"can't be read \(it is a pipe, not a file\)$"):
        read_file(tmp_path / "result.json", 100)
    with pytest.raises(InputError, match="a device or a socket"):
        read_file(Path("/dev/zero"), 100)


def test_write_whole_replaces_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    with pytest.raises(DiskError, match=r"can't write to .*; name another folder"):
        write_atomically(tmp_path / "missing" / "file", b"three")


def test_writing_does_not_follow_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where the file will be nor under the name of its part, which nobody else can know."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("result.json", ".result.json.part", ".lock", "metrics.csv"):
        (folder / name).symlink_to(precious)
    write_atomically(folder / "result.json", b"{}")
    assert not (folder / "result.json").is_symlink()
    assert (folder / "result.json").read_bytes() == b"{}"
    with (
        pytest.raises(DiskError, match=r"\.lock: it is a symbolic link, not a file; remove it, or name another"),
        lock_folder(folder),
    ):
        pass
    with pytest.raises(DiskError, match="a symbolic link"):
        open_to_write(folder / "metrics.csv", "name another folder", create=True)
    monkeypatch.setattr("rkcnn.disk.secrets.token_hex", lambda _: "0")  # even if the name could be guessed
    (folder / ".weights.0.part").symlink_to(precious)
    with pytest.raises(DiskError, match="already exists"):
        write_atomically(folder / "weights", b"{}")
    assert precious.read_text() == "mine"


def test_an_output_is_written_through_a_link(tmp_path: Path) -> None:
    """A user who names a link means the file that it leads to, also one that doesn't exist yet."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to("elsewhere/file")
    for content in (b"one", b"two"):
        check_output(link, "name another file")
        write_output(link, content, "name another file")
        assert link.is_symlink()
        assert (tmp_path / "elsewhere" / "file").read_bytes() == content
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/null"])
def test_an_open_file_or_a_device_is_no_output(name: str) -> None:
    """As root, /dev/stdout itself would be replaced by a file."""
    before = os.readlink(name) if os.path.islink(name) else None
    for write in (check_output, lambda path, remedy: write_output(path, b"", remedy)):
        with pytest.raises(DiskError, match=rf"can't write to {name}: it is a device.*; name another file"):
            write(Path(name), "name another file")
    assert (os.readlink(name) if os.path.islink(name) else None) == before


def test_an_output_that_can_not_be_written_is_said_before(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="a folder"):
        check_output(tmp_path, "name another file")
    with pytest.raises(DiskError, match="its folder doesn't exist"):
        check_output(tmp_path / "missing" / "file", "name another file")
    check_output(tmp_path / "new", "name another file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("linked", [False, True])
def test_only_a_file_is_replaced_or_locked(tmp_path: Path, kind: str, linked: bool) -> None:
    """A rename would replace even /dev/null."""
    path = tmp_path / ("other" if linked else "file")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can make a device")
    else:
        path.mkdir()
    if linked:
        (tmp_path / "file").symlink_to(path)
    before = path.lstat()
    with pytest.raises(DiskError, match=rf"file: it is a {kind}.*not a file; remove it, or name another folder$"):
        write_atomically(tmp_path / "file", b"one")
    with pytest.raises(DiskError, match=rf"file: it is a {kind}.*not a file; remove it$"):
        check_replaceable(tmp_path / "file")
    with pytest.raises(DiskError, match="not a file"), lock_folder(tmp_path, name="file"):
        pass
    assert path.lstat() == before
    assert len(list(tmp_path.iterdir())) == 1 + linked


@pytest.mark.parametrize("content", [b"a list of things to do", b"\x1b[2J", b"1234567890" * 3])
def test_a_file_that_is_no_lock_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".lock").write_bytes(content)
    with pytest.raises(DiskError, match=r"is no lock file of rkcnn; remove it, or name"), lock_folder(tmp_path):
        pass
    assert (tmp_path / ".lock").read_bytes() == content


@pytest.mark.parametrize("content", [b"a list of things to do", b"12", b""])
def test_a_file_elsewhere_is_not_overwritten_through_a_hard_link(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "precious").write_bytes(content)
    (tmp_path / ".lock").hardlink_to(tmp_path / "precious")
    with pytest.raises(DiskError, match=r"by a hard link; remove it, or name"), lock_folder(tmp_path):
        pass
    assert (tmp_path / "precious").read_bytes() == content


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("ü" * 127), b"one")
    assert (tmp_path / ("ü" * 127)).read_bytes() == b"one"


def test_a_new_file_has_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"one")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_refused_while_the_other_lives_and_free_when_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    with other.stdout:
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(InputError, match=f"process {other.pid} is training in"), lock_folder(folder):
                pass
        finally:
            other.kill()
            other.wait()
    for _ in range(2):  # free after the death, and again after use
        with lock_folder(folder):
            pass


def test_the_second_waits_and_says_so_once(tmp_path: Path) -> None:
    said: list[str] = []
    events: list[str] = []
    waits = threading.Event()

    def note(text: str) -> None:
        said.append(text)
        waits.set()

    def second() -> None:
        with lock_folder(tmp_path, name=".own.lock", on_wait=note):
            events.append("second in")

    thread = threading.Thread(target=second)
    with lock_folder(tmp_path, name=".own.lock", on_wait=note):
        thread.start()
        assert waits.wait(60)
        events.append("first out")
    thread.join()
    assert events == ["first out", "second in"]
    assert said == [f"waiting for process {os.getpid()}, which has locked {tmp_path / '.own.lock'}"]


def test_locks_of_other_names_are_other_locks(tmp_path: Path) -> None:
    with lock_folder(tmp_path, name=".one.lock"), lock_folder(tmp_path, name=".two.lock"):
        assert {path.name for path in tmp_path.iterdir()} == {".one.lock", ".two.lock"}


def test_a_folder_that_cant_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match=r"name another `out=\.\.\.`"), lock_folder(tmp_path / "file" / "run"):
        pass


def test_the_remedy_is_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match=r"; name another store$"),
        lock_folder(tmp_path / "file", "name another store"),
    ):
        pass


def test_the_driver_is_named_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped is replaced, so it is of no use to name it."""
    monkeypatch.setenv(LOCK_HOLDER, "4321")
    with (
        lock_folder(tmp_path),
        pytest.raises(FolderLocked, match=r"^process 4321 is training in") as refused,
        lock_folder(tmp_path),
    ):
        pass
    assert (refused.value.holder, refused.value.folder) == ("process 4321", tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    says = rf"^can't lock .*: its file system can't lock files \({os.strerror(number)}\); name another `out=\.\.\.`$"
    with pytest.raises(InputError, match=says) as refused, lock_folder(tmp_path):
        pass
    assert not isinstance(refused.value, FolderLocked)


def test_a_full_disk_takes_no_number_and_the_folder_is_held_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with (
            lock_folder(tmp_path),
            pytest.raises(InputError, match=r"^another process is training in"),
            lock_folder(tmp_path),
        ):
            pass


def test_windows_locks_one_byte_beyond_the_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for what Windows has: a byte can be locked once, and no folder can be opened."""
    held: set[tuple[int, int]] = set()

    def locking(file: int, mode: int, count: int) -> None:
        place = os.fstat(file).st_ino, os.lseek(file, 0, os.SEEK_CUR)
        if place in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        assert (mode, count) == (2, 1)
        held.add(place)

    monkeypatch.setattr("rkcnn.disk.sys", SimpleNamespace(platform="win32"))
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr(fcntl, "flock", None)
    with (
        lock_folder(tmp_path),
        pytest.raises(FolderLocked, match=f"^process {os.getpid()} is training in"),
        lock_folder(tmp_path),
    ):
        pass
    assert {place for _, place in held} == {1 << 20}
    write_atomically(tmp_path / "file", b"one")
    assert (tmp_path / "file").read_bytes() == b"one"
