"""Runs a function in a forked child of this warm process, and measures it: output, time, memory, writing, running.

A new process would import torch and matplotlib for each case, which takes seconds; a fork takes some milliseconds.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HANG = 12.0  # seconds in which a child waits, for a pipe or a lock say, after which it is ended
LONGEST_CPU = 30.0  # seconds of CPU time after which a child is ended
ADDRESS_SPACE = 16 << 30  # bytes that a child may map beyond what its parent has
MOST_MEMORY = 3 << 30  # bytes beyond its parent's at which a child is ended
CRASHED, ACCEPTED = 70, 77  # exit codes of a child: by an exception, and by `Accepted`
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pickle.find_class")
_CONNECTS = ("socket.connect", "socket.bind", "urllib.Request")
_WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")


class Accepted(BaseException):
    """What was read is valid, and what follows is work that has no place in a fuzz test, such as training."""


@dataclass(frozen=True)
class Outcome:
    """What a child did."""

    code: int  # its exit code; minus the signal that ended it
    out: bytes
    err: bytes
    seconds: float  # of CPU time
    wall: float
    peak: int  # bytes of memory beyond its parent's
    ended: str  # why it was ended: "hang", "memory", or empty
    events: tuple[tuple[str, str], ...]  # what it ran, and the paths that it wrote to


def run_watched(
    work: Callable[[], object],
    folder: Path,
    environment: Mapping[str, str],
    cwd: Path,
    hang: float = HANG,
    most_cpu: float = LONGEST_CPU,
) -> Outcome:
    """Fork, run `work` there, and return what happened. `folder` takes the child's output.

    The child is ended where it waits for `hang` seconds, for a pipe say, or takes `most_cpu` seconds of CPU time. Time
    in which it could run but other processes do is not counted, so that a busy machine changes nothing.
    """
    files = {name: folder / name for name in ("out", "err", "events", "base")}
    for path in files.values():
        path.write_bytes(b"")
    base = _resident("self")
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _run_child(work, files, environment, cwd)  # never returns
    ended, busy = "", start  # why it was ended, and when it was last seen to run
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        now = time.monotonic()
        running, seconds = _activity(child)
        busy = now if running else busy
        if seconds > most_cpu or now - busy > hang or now - start > 20 * most_cpu:
            ended = "hang"
        elif _resident(str(child)) - base > MOST_MEMORY:
            ended = "memory"
        if ended:
            os.kill(child, signal.SIGUSR1)  # faulthandler writes where it is
            time.sleep(0.2)
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
        time.sleep(0.002 if now - start < 0.2 else 0.02)
    lines = files["events"].read_text(errors="replace").splitlines()
    return Outcome(
        code=os.waitstatus_to_exitcode(status),
        out=files["out"].read_bytes(),
        err=files["err"].read_bytes(),
        seconds=usage.ru_utime + usage.ru_stime,
        wall=time.monotonic() - start,
        peak=max(0, usage.ru_maxrss * 1024 - int(files["base"].read_text() or usage.ru_maxrss * 1024)),
        ended=ended,
        events=tuple(dict.fromkeys((each[0], each[1]) for each in map(json.loads, lines))),
    )


def _run_child(
    work: Callable[[], object], files: Mapping[str, Path], environment: Mapping[str, str], cwd: Path
) -> None:
    code = CRASHED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(environment)
        tempfile.tempdir = None  # the parent's would be used otherwise
        os.chdir(cwd)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(files[name], os.O_WRONLY | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        out, err = io.FileIO(1, "w", closefd=False), io.FileIO(2, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(out), "utf-8", "strict")
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(err), "utf-8", "backslashreplace", write_through=True)
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, mapped + ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        Path("/proc/self/clear_refs").write_text("5")  # forget the most memory so far
        files["base"].write_text(str(_resident("self")))  # less than the parent's: a fork shares no pages of files
        _audit(os.open(files["events"], os.O_WRONLY))
        try:
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else CRASHED
        except Accepted:
            code = ACCEPTED
        sys.stdout.flush()
    except BaseException:
        code = CRASHED
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _audit(file: int) -> None:
    """Write a line to `file` for everything that this process runs, connects to, or opens for writing."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITING or isinstance(path, int):
                return
            what, about = "write", path
        elif event in _WRITES:
            what, about = "write", arguments[1] if event in ("os.rename", "os.link", "os.symlink") else arguments[0]
        elif event in _RUNS or event in _CONNECTS:
            what, about = event, arguments[-1] if event == "pickle.find_class" else arguments[0]
        else:
            return
        if what == "write":
            if isinstance(about, int):
                return
            beside = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") and arguments[-1] != -1 else None
            start = os.getcwd() if beside is None else os.readlink(f"/proc/self/fd/{beside}")
            about = os.path.join(start, os.fsdecode(about))
        os.write(file, (json.dumps([what, str(about)]) + "\n").encode())

    sys.addaudithook(hook)


def _activity(process: int) -> tuple[bool, float]:
    """Return whether a process runs, or could if there were a free core, and its seconds of CPU time so far."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True, 0.0
    return stat[0] == "R", (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: str) -> int:
    """Return the bytes of memory that a process has, or 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0
