"""Ways to damage a file: any bytes, JSON, the headers of npy and safetensors files, and what kind of file it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fuzz.array_mutations import change_classes, change_npz, change_weights

HUGE = 8 << 30  # bytes of a sparse file: read as a whole, it would fill the memory of most machines
DEEP = 200_000  # levels of nested JSON
NUMBERS = (
    *(0, -1, 1, 2, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**44, 2**53, 2**63 - 1, 2**63, 2**64, 10**30),
    *(-(2**31), -(2**63), 1.5, -0.0, 1e-320, 1e18, 1e308, -1e308, float("nan"), float("inf"), -float("inf")),
)
TEXTS = (
    *(
        "",
        " ",
        "x",
        "\x00",
        "\x1b[2J\x1b[31mred",
        "two\nlines",
        "\r\b\x07",
        "\x9b31m",
        "\u202e drow",
        "\u2028",
        "\ud800",
    ),
    *(
        "a" * 5000,
        "<script>alert(1)</script>",
        "# heading | cell",
        "[red]",
        "../../..",
        "/",
        "-",
        "{}",
        "%s%n",
        "±",
        "日本",
    ),
    *(
        "nan",
        "NaN",
        "1e999",
        "٣",
        "~validation-xyz",
        "~validation-99999999999",
        "finished",
        "diverged: x",
        "RKCNN-R-2@k=65536",
    ),
    *(
        "ResNet@k=4,r=1000",
        "RKCNN-I-100_100_100@k=9999",
        "arrays-0",
        "folder:/",
        "npz:/dev/zero",
        "mnist",
        "auto",
        "cuda:9",
    ),
)
SHAPES = (
    *(
        "(17592186044416,)",
        "(0,)",
        "(0, 17592186044416)",
        "()",
        "(-1,)",
        "(1,)",
        "(2, 2)",
        "(32, 1)",
        "('x',)",
        "(1.5,)",
    ),
    *("(True,)", "(" * 200 + ")" * 200, "(9999999999999999999999,)", "[32]", "None"),
)
FORMS = ("bytes", "json", "npy", "npz", "safetensors", "text")
MANY = (30_000, 60_000, 150_000)  # names in an object


@dataclass(frozen=True)
class Damage:
    """What becomes of a file: its new content, or, where `content` is None, the kind of thing that takes its place."""

    about: str  # for counts and messages
    content: bytes | None


def damage(random: Random, sound: bytes, form: str) -> Damage:
    """Return one damage, chosen at random, of a sound file of that form."""
    if random.random() < 0.12:
        return Damage(random.choice(list(KINDS)), None)
    ways = {"json": _damage_json, "npy": _damage_npy, "safetensors": _damage_safetensors}
    if form == "npz" and random.random() < 0.1:
        return Damage("npz sizes", change_npz(random, sound))
    if form in ways and random.random() < 0.75:
        return ways[form](random, sound)
    return damage_bytes(random, sound)


def damage_bytes(random: Random, content: bytes) -> Damage:
    """Return one to four changes of any bytes: flipped bits, cuts, zeros, insertions, extreme numbers."""
    names: list[str] = []
    for _ in range(random.randint(1, 4)):
        name = random.choice(list(BYTES))
        content = BYTES[name](random, content)
        names.append(name)
    return Damage(" + ".join(dict.fromkeys(names)), content)


def put(path: Path, damaged: Damage, outside: Path) -> None:
    """Put the damaged file at `path`; links point to `outside`, a file elsewhere."""
    if damaged.content is not None:
        path.write_bytes(damaged.content)
        return
    path.unlink()
    KINDS[damaged.about](path, outside)


def _at(random: Random, content: bytes) -> int:
    """Return a position; headers are at the beginning, so half of all changes are there."""
    return random.randrange(min(len(content), 200 if random.random() < 0.5 else len(content)) or 1)


def _flip(random: Random, content: bytes) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[_at(random, content)] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(random: Random, content: bytes, new: bytes) -> bytes:
    at = _at(random, content)
    return content[:at] + new + content[at + len(new) :]


def _insert(random: Random, content: bytes) -> bytes:
    at = _at(random, content)
    return content[:at] + random.randbytes(random.choice((1, 4, 40))) + content[at:]


def _drop(random: Random, content: bytes) -> bytes:
    at = _at(random, content)
    return content[:at] + content[at + random.choice((1, 4, 40)) :]


def _repeat(random: Random, content: bytes) -> bytes:
    at, length = _at(random, content), random.choice((8, 64, 512))
    return content[:at] + content[at : at + length] * random.choice((2, 50)) + content[at + length :]


def _extreme(random: Random, content: bytes) -> bytes:
    value = random.choice((0, 1, -1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**44, 2**63 - 1, 2**63))
    size = random.choice((2, 4, 8))
    packed = (value % (1 << (8 * size))).to_bytes(size, random.choice(("little", "big")))
    return _overwrite(random, content, packed)


BYTES: dict[str, Callable[[Random, bytes], bytes]] = {
    "flip": _flip,
    "cut": lambda random, content: content[: random.choice((0, 1, 8, _at(random, content), len(content) - 1))],
    "zeros": lambda random, content: _overwrite(random, content, bytes(random.choice((1, 4, 64)))),
    "random bytes": lambda random, content: _overwrite(random, content, random.randbytes(random.choice((1, 8, 64)))),
    "insert": _insert,
    "drop": _drop,
    "repeat": _repeat,
    "extreme number": _extreme,
}


def _make_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def _make_sparse(path: Path, outside: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "FIFO": lambda path, outside: os.mkfifo(path),
    "folder": _make_folder,
    "link to a file outside": lambda path, outside: path.symlink_to(outside),
    "link to nothing": lambda path, outside: path.symlink_to(outside.with_name("nothing")),
    "link to itself": lambda path, outside: path.symlink_to(path),
    "link to /dev/zero": lambda path, outside: path.symlink_to("/dev/zero"),
    "empty": lambda path, outside: path.touch(),
    "huge and sparse": _make_sparse,
    "missing": lambda path, outside: None,
}


def _damage_json(random: Random, sound: bytes) -> Damage:
    """Return JSON with one value or key replaced, or JSON that only its text can have."""
    about, text = change_json(random, sound.decode())
    return Damage(about, text.encode("utf-8", "surrogatepass"))


def change_json(random: Random, sound: str) -> tuple[str, str]:
    """Return what was done to a JSON text, and the text."""
    facts = json.loads(sound)
    if random.random() < 0.25:
        name = random.choice(
            ("deep lists", "deep objects", "duplicate key", "long number", "no JSON", "deep value", "many names")
        )
        return name, _break_json_text(random, sound, facts, name)
    places = list(_places(facts))
    if not places:
        return "another value", json.dumps(random.choice(NUMBERS))
    for _ in range(random.choice((1, 1, 1, 3))):
        holder, key = random.choice(places)
        name, value = _other_value(random, holder[key])
        if isinstance(holder, dict) and random.random() < 0.15:
            name = "missing key" if random.random() < 0.5 else "other key"
            removed = holder.pop(key, None)
            if name == "other key":
                holder[random.choice((*TEXTS, f"{key}x"))] = removed
            break
        holder[key] = value
    ascii_only = random.random() < 0.5
    return name, json.dumps(facts, ensure_ascii=ascii_only)


def _places(facts: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    pending = [facts]
    while pending:
        each = pending.pop()
        inside = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, value in inside:
            found.append((each, key))
            pending.append(value)
    return found


def _other_value(random: Random, old: Any) -> tuple[str, Any]:
    name = random.choice(("other kind", "extreme number", "odd text", "more of it"))
    if name == "extreme number":
        return name, random.choice(NUMBERS)
    if name == "odd text":
        return name, random.choice(TEXTS)
    if name == "more of it" and isinstance(old, str):
        return name, old + random.choice(TEXTS)
    if name == "more of it" and isinstance(old, list):
        return name, old * random.choice((0, 2, 1000))
    if name == "more of it" and isinstance(old, int | float):
        return name, old * random.choice((-1, 2, 10, 1000)) + random.choice((0, 1))
    return "other kind", random.choice((None, True, [], {}, [[]], {"a": {}}, "x", 7, [28], ["x"], [None] * 3, {"": 0}))


def _break_json_text(random: Random, sound: str, facts: Any, name: str) -> str:
    if name == "deep lists":
        return "[" * DEEP + "]" * DEEP
    if name == "deep objects":
        return '{"a":' * DEEP + "1" + "}" * DEEP
    if name == "no JSON":
        return random.choice(
            ("", "null", "NaN", "[]", "{}", '"text"', "\x00", "{'a': 1}", "\ufeff{}", "1" * 5000, "[1,")
        )
    if name == "many names":
        names = ",".join(f'"{number}":0' for number in range(random.choice(MANY)))
        return f'{{{names}, "z":1, "z":2, {sound.lstrip()[1:]}'
    key = random.choice(list(facts)) if isinstance(facts, dict) and facts else "a"
    quoted = json.dumps(key)
    if name == "duplicate key":
        return f"{{{quoted}: 1, {sound.lstrip()[1:]}"
    value = "9" * random.choice((400, 5000, 100_000)) if name == "long number" else "[" * DEEP + "]" * DEEP
    return sound.replace(f"{quoted}: ", f"{quoted}: {value}, {json.dumps(key + '-')}: ", 1)


def _damage_npy(random: Random, sound: bytes) -> Damage:
    """Return an npy file whose header says something else; the data stays."""
    if random.random() < 0.35:
        return Damage("npy values", change_classes(random, sound))
    length = int.from_bytes(sound[8:10], "little")
    shape = random.choice(SHAPES)
    kind = random.choice(
        ("<i8", "|u1", "<f4", "|O", "<U9999", "<c16", "|V0", "|V999999999", "M8[s]", "i4, i4", "\\x00", "|b1")
    )
    header = {"descr": repr(kind), "fortran_order": random.choice(("False", "True", "7")), "shape": shape}
    if random.random() < 0.5:
        header["descr"] = "'<i8'"
    if random.random() < 0.2:
        header.pop(random.choice(list(header)))
    text = "{" + ", ".join(f"'{name}': {value}" for name, value in header.items()) + "}"
    if random.random() < 0.2:
        text = random.choice(("[" * 5000, "(" * 100_000, "{}", "__import__('os').system('true')", "-" * 9000, "\xff"))
    said = random.choice((None, None, 0, 1, 65535))
    new = text.encode("latin-1")[:65000] + b"\n"
    return Damage(
        "npy header",
        sound[:8] + (len(new) if said is None else said).to_bytes(2, "little") + new + sound[10 + length :],
    )


def _damage_safetensors(random: Random, sound: bytes) -> Damage:
    """Return a safetensors file whose header, or the description of the network in it, says something else."""
    length = int.from_bytes(sound[:8], "little")
    header = json.loads(sound[8 : 8 + length])
    if random.random() < 0.2:
        said = random.choice((0, 1, length - 1, length + 1, 2**20, 10**8, 2**44, 2**63, 2**64 - 1))
        return Damage("safetensors length", said.to_bytes(8, "little") + sound[8:])
    if random.random() < 0.15:
        return Damage("safetensors values", change_weights(random, sound))
    if random.random() < 0.08:
        return _with_many_entries(random, header, sound[8 + length :])
    text: str
    if "rkcnn" in header.get("__metadata__", {}) and random.random() < 0.7:
        about, changed = change_json(random, header["__metadata__"]["rkcnn"])
        header["__metadata__"]["rkcnn"] = changed
        about, text = f"metadata: {about}", json.dumps(header)
    else:
        about, text = change_json(random, json.dumps(header))
        about = f"safetensors header: {about}"
    new = text.encode("utf-8", "surrogatepass")
    return Damage(about, len(new).to_bytes(8, "little") + new + sound[8 + length :])


def _with_many_entries(random: Random, header: dict[str, Any], content: bytes) -> Damage:
    """Return a safetensors file with many entries of metadata, or many empty tensors, in its header."""
    many = 4 * random.choice(MANY)
    if random.random() < 0.5:
        header["__metadata__"] = header.get("__metadata__", {}) | {str(number): "" for number in range(many)}
    else:
        end = len(content)
        header |= {
            str(number): {"dtype": "F32", "shape": [0], "data_offsets": [end, end]} for number in range(many // 4)
        }
    new = json.dumps(header, separators=(",", ":")).encode()
    return Damage("safetensors entries", len(new).to_bytes(8, "little") + new + content)
