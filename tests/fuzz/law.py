"""The law for every file that a command opens: valid content or one short sentence, soon, in little memory."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fuzz.watched import ACCEPTED, Outcome

LONGEST = 300  # characters of a sentence, without the paths of the folder that is worked in
ABOUT = 150  # more for sentences that list what would work, such as all fields of a recipe
ASKS_FOR_COMMIT = ("subprocess.Popen", "git")  # as every run that trains does, also where its result is gone
SECONDS = 10.0  # of CPU time beyond that of the same command on sound files
MEMORY, TIMES = 64 << 20, 3  # bytes beyond those of the same command on sound files, and so many times the file's
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_PROGRESS = re.compile(r"\r|\x1b\[K")  # what a line of progress that is shown again begins with


@dataclass(frozen=True)
class Place:
    """The folders of a case: everything may be written in `allowed`; what lies in `watched` must stay as it is."""

    root: Path  # all of it; left out of sentences before they are measured
    allowed: tuple[Path, ...]
    watched: Mapping[Path, bytes]


def list_violations(found: Outcome, measure_sound: Callable[[], Outcome], size: int, place: Place) -> list[str]:
    """Return how an outcome breaks the law.

    `size` is that of the damaged file. `measure_sound` runs the same command on sound files; it is only called where
    more time or memory was taken, or something was run, than is allowed without a comparison.
    """
    err = found.err.decode("utf-8", "replace")
    wrong: list[str] = []
    if found.ended:
        wrong.append(f"{found.ended}: ended after {found.wall:.0f} s, {found.seconds:.1f} s of CPU, in {_frame(err)}")
    elif found.code not in (0, 1, 2, ACCEPTED):
        wrong.append(f"exit code {found.code}: {_last_line(err)}, in {_frame(err)}")
    elif "Traceback (most recent call last)" in err:
        wrong.append(f"a traceback: {_last_line(err)}, in {_frame(err)}")
    else:
        wrong += _check_text(found, err, place)
    for path, content in place.watched.items():
        if not path.is_file() or path.read_bytes() != content:
            wrong.append(f"{path.name}, which is not its own, was changed")
    left = [path for folder in place.allowed for path in folder.rglob(".*.part*")] if not found.ended else []
    wrong += [f"left half-written: {path.name}" for path in left]
    if found.code != ACCEPTED and found.seconds > SECONDS:
        usual = measure_sound().seconds
        if found.seconds > SECONDS + usual:
            wrong.append(f"{found.seconds:.1f} s, and {usual:.1f} s on sound files")
    if found.code != ACCEPTED and found.peak > MEMORY + TIMES * size:
        more = found.peak - measure_sound().peak
        if more > MEMORY + TIMES * size:
            wrong.append(f"{more >> 20} MB more than on sound files, for {size} bytes")
    events = [event for event in found.events if event != ASKS_FOR_COMMIT]
    odd = [(kind, path) for kind, path in events if not _is_inside(kind, path, place)]
    usual_kinds = {kind for kind, _ in measure_sound().events} if odd else set()
    wrong += [f"ran or wrote: {kind} {path}" for kind, path in odd if kind == "write" or kind not in usual_kinds]
    return wrong


def list_silences(found: Outcome, sound: Outcome, refused: bool) -> list[str]:
    """Return where a command ends with exit code 0 although a file is missing in its answer.

    `sound` is the same command on sound files, and `refused` whether the reader of the damaged file refuses it alone.
    A sentence, or FAILS in the output, says that something was passed over; without one, lines are missing that the
    sound answer has. Numbers, units of time and the width of columns may differ.
    """
    if found.code != 0 or found.ended:
        return []
    usual = {_mask(line) for line in sentences(sound.err.decode("utf-8", "replace"))}
    said = [line for line in sentences(found.err.decode("utf-8", "replace")) if _mask(line) not in usual]
    if said:
        return [f"exit code 0, and it says: {said[0][:150]}"]
    if b"FAILS" in found.out and b"FAILS" not in sound.out:
        return ["exit code 0, and a run FAILS"]
    kept = Counter(map(_mask, found.out.decode("utf-8", "replace").splitlines()))
    missing = Counter(map(_mask, sound.out.decode("utf-8", "replace").splitlines())) - kept
    return [f"exit code 0 without a word, and missing: {line[:150]}" for line in list(missing)[:1] if refused]


def sentences(err: str) -> list[str]:
    """Return the lines of standard error that speak to the user."""
    return [line for line in err.splitlines() if line.startswith("rkcnn: ")]


def _check_text(found: Outcome, err: str, place: Place) -> list[str]:
    wrong = []
    said = sentences(err)
    if found.code in (1, 2) and not said and b"FAILS" not in found.out:
        wrong.append(f"exit code {found.code} without a sentence: {_last_line(err)}")
    if found.code == 2 and len(said) > 1:
        wrong.append(f"{len(said)} sentences with exit code 2")
    for line in said:
        short = line.replace(str(place.root), "")
        if len(short) > LONGEST + ABOUT:
            wrong.append(f"a sentence of {len(short)} characters: {short[:100]}...")
    if re.search(rb"\bnan %", found.out):
        wrong.append("the output says nan %")
    if "Warning: " in err:
        wrong.append(f"a warning of Python: {next(line for line in err.splitlines() if 'Warning: ' in line)[:150]}")
    for name, text in (("output", found.out.decode("utf-8", "replace")), ("message", err)):
        match = _CONTROLS.search(_PROGRESS.sub("", text))
        if match:
            wrong.append(f"the {name} holds the control character {match.group()!r}")
    return wrong


def _is_inside(kind: str, path: str, place: Place) -> bool:
    """Whether something was written where it may be."""
    if kind != "write":
        return False
    clean = Path(os.path.normpath(path))
    return path == os.devnull or any(clean.is_relative_to(folder) for folder in place.allowed)


def _mask(line: str) -> str:
    numbers = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|\b(seconds?|minutes?|hours?|days?)\b"  # an estimate takes any unit
    return " ".join(re.sub(numbers, "#", line).split())


def _last_line(err: str) -> str:
    lines = [line for line in err.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


def _frame(err: str) -> str:
    """Return the last line of our own code that a traceback names, which tells one fault from another."""
    frames = re.findall(r'File "[^"]*/rkcnn/([^"]+)", line (\d+)', err)
    dumped = "Current thread" in err  # faulthandler names the innermost frame first
    return ":".join(frames[0 if dumped else -1]) if frames else "no code of ours"
