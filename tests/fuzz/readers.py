"""Cases of single readers, thousands in one child: each reads a damaged file, or refuses it by an InputError."""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from fuzz.arguments import make_change, make_name
from fuzz.data_readers import READERS as DATA_READERS
from fuzz.data_readers import read_to_images
from fuzz.law import ABOUT, LONGEST, MEMORY, SECONDS, TIMES
from fuzz.mutations import damage as damage_form
from fuzz.mutations import damage_bytes
from fuzz.watched import run_watched
from fuzz.world import BEGUN, RUN
from record.benches import made, measured
from rkcnn.data.cache import read_description
from rkcnn.error import InputError
from rkcnn.evaluation.weights import read_weights
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.model.spec import parse
from rkcnn.record.bench import read_bench
from rkcnn.record.errors_by_statistics import read_errors_by_statistics
from rkcnn.record.memory import read_memory
from rkcnn.record.result import read_result
from rkcnn.record.run import read_config
from rkcnn.record.run_state import find_begun_runs

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """A function that reads a file, and a sound file of the kind that it reads."""

    read: Read
    sound: bytes
    form: str = "bytes"
    name: str = "file"  # of the file


@dataclass(frozen=True)
class Trouble:
    """A case that broke the law."""

    reader: str
    seed: int
    violation: str
    content: bytes


def list_readers(world: Path) -> dict[str, Reader]:
    """Return every reader; the sound files of our own kinds are those of the world."""
    found = {
        f"images: {name}": Reader(partial(read_to_images, name), sound, "npz" if name[:3] == "npz" else "bytes")
        for name, (sound, _) in DATA_READERS.items()
    }
    begun = next(world.glob(f"{BEGUN}/checkpoint-00002-000000.json"))
    measured_run = next(world.glob("table/**/errors-by-statistics.json"))
    ours: Mapping[str, tuple[Read, Path, str]] = {
        "record: result.json": (read_result, next(world.glob(f"{RUN}/result.json")), "json"),
        "record: config.json": (read_config, next(world.glob(f"{RUN}/config.json")), "json"),
        "record: memory.json": (read_memory, next(world.glob("table/**/memory.json")), "json"),
        "record: errors-by-statistics.json": (
            lambda path: read_errors_by_statistics(path.parent, read_result(measured_run.with_name("result.json"))),
            measured_run,
            "json",
        ),
        "record: begun run": (lambda path: _raise(dict(find_begun_runs(path.parent))[path.parent]), begun, "json"),
        "weights.safetensors": (read_weights, next(world.glob(f"{RUN}/weights.safetensors")), "safetensors"),
        "set.json": (lambda path: read_description(path.parent), world / "data/decoded/own-npz/set.json", "json"),
    }
    for name, (read, path, form) in ours.items():
        found[name] = Reader(read, path.read_bytes(), form, path.name)
    found["record: bench.json"] = Reader(
        read_bench, made(measured("rkcnn", [0.1, 0.2])).to_json(), "json", "bench.json"
    )
    found["network name"] = Reader(lambda path: parse(path.read_text(errors="surrogateescape")), b"", "name")
    found["recipe change"] = Reader(_read_change, b"", "change")
    return found


def damage_for(reader: Reader, seed: int) -> bytes:
    """Return the content of the damaged file of a case."""
    random = Random(seed)
    if reader.form == "name":
        return make_name(random).encode("utf-8", "surrogatepass")
    if reader.form == "change":
        return make_change(random).encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        return reader.sound[: random.randrange(25)] + random.randbytes(random.randrange(400))
    damaged = damage_form(random, reader.sound, reader.form)
    return damage_bytes(random, reader.sound).content or b"" if damaged.content is None else damaged.content


def run_readers(
    readers: Mapping[str, Reader], seeds: range, folder: Path
) -> tuple[Counter[tuple[str, str]], list[Trouble]]:
    """Run every reader on one damaged file for each seed; return counts by reader and answer, and the violations."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("captured", "cwd"):
        (folder / part).mkdir(exist_ok=True)
    cases = [(name, seed) for seed in seeds for name in readers]
    counts: Counter[tuple[str, str]] = Counter()
    troubles: list[Trouble] = []
    start = 0
    position = mmap.mmap(-1, 8)  # shared with the child: which case it is at
    while start < len(cases):
        position[:] = struct.pack("q", start)
        answers = folder / "answers"
        answers.write_bytes(b"")
        work = partial(_read_cases, readers, cases, start, folder, position)
        done = run_watched(work, folder / "captured", {}, folder / "cwd", most_cpu=600)
        for line in answers.read_text().splitlines():
            name, seed, answer, violation = json.loads(line)
            counts[name, answer] += 1
            if violation:
                troubles.append(Trouble(name, seed, violation, damage_for(readers[name], seed)))
        (start,) = struct.unpack("q", position[:])
        if start < len(cases):  # it was ended there
            name, seed = cases[start]
            why = done.ended or f"exit code {done.code}: {done.err.decode(errors='replace')[-300:]}"
            counts[name, "violations"] += 1
            troubles.append(Trouble(name, seed, f"ended by {why}", damage_for(readers[name], seed)))
            start += 1
    return counts, troubles


def _read_cases(
    readers: Mapping[str, Reader], cases: list[tuple[str, int]], start: int, folder: Path, position: mmap.mmap
) -> None:
    """Run in a child: read one damaged file after the other, and write down what happened."""
    with (folder / "answers").open("a") as answers:
        for index in range(start, len(cases)):
            position[:] = struct.pack("q", index)
            name, seed = cases[index]
            answer, violation = _read_case(readers[name], seed, folder)
            answers.write(json.dumps([name, seed, answer, violation]) + "\n")
            answers.flush()
    position[:] = struct.pack("q", len(cases))


def _read_case(reader: Reader, seed: int, folder: Path) -> tuple[str, str]:
    content = damage_for(reader, seed)
    (folder / "case").mkdir(exist_ok=True)
    path = folder / "case" / reader.name
    path.write_bytes(content)
    Path("/proc/self/clear_refs").write_text("5")  # forget the most memory so far
    before = _most_memory()
    start = time.process_time()
    answer, violation = "read", ""
    try:
        reader.read(path)
    except InputError as error:
        answer, said = "refused", str(error).replace(str(folder), "")
        if len(said) > LONGEST + ABOUT:
            violation = f"a message of {len(said)} characters: {said[:100]!r}"
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/rkcnn/" in frame.filename]
        at = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "no code of ours"
        violation = f"{type(error).__name__}: {str(error)[:150]}, in {at}"
    seconds, more = time.process_time() - start, _most_memory() - before
    path.unlink(missing_ok=True)
    if not violation and seconds > SECONDS:
        violation = f"{seconds:.1f} s"
    if not violation and more > MEMORY + TIMES * len(content):
        violation = f"{more >> 20} MB for {len(content)} bytes"
    return ("violations" if violation else answer), violation


def _most_memory() -> int:
    """Return the most bytes of memory that this process has had since `clear_refs`."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def _raise(found: object) -> None:
    if isinstance(found, InputError):
        raise found


def _read_change(path: Path) -> None:
    field, _, value = path.read_text(errors="surrogateescape").partition("=")
    replace(find_recipe("own"), **read_changes({field: value}))
