"""Our JSON files, read as if anyone could have written them: limits come before parsing, and values are plain ones.

Every JSON that rkcnn reads from a file goes through `parse_json`. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rkcnn.disk import read_file
from rkcnn.error import shorten

LONG = 6 << 20
"""The most bytes of a file that grows with the epochs or with the number of classes: result.json, the JSON of a
checkpoint, the description of a decoded set, and the metadata of weights. An epoch takes 250 to 394 bytes,
and a recipe has at most 15,000."""
SHORT = 1 << 20
"""The most bytes of memory.json, of config.json, and of other files of a fixed number of fields."""
DEEPEST = 32  # lists and objects inside each other; a result has 5

# In memory a value takes up to 60 bytes and a list or object up to 230, while "[]," has 3 bytes in the file. So what
# is denser than our own files is refused before it is parsed: theirs have a value for 20 bytes or more and a list or
# object for 140 or more. Lists of class names may be denser, and have up to 65,536 entries.
_FREE_VALUES, _BYTES_OF_VALUE = 1 << 16, 20
_FREE_CONTAINERS, _BYTES_OF_CONTAINER = 1 << 12, 100

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # possessive, so that it takes linear time
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")

Container = TypeVar("Container", dict[str, Any], list[Any])
Kinds = Mapping[str, type | tuple[type, ...]]


def read_json(path: Path, limit: int = SHORT) -> dict[str, Any]:
    """Return the object in a JSON file of at most `limit` bytes.

    Raises InputError, which names the file, if it can't be opened or is too long, and ValueError as `parse_json` does.
    """
    return parse_json(read_file(path, limit), dict)


def parse_json(content: bytes | str, kind: type[Container]) -> Container:
    """Return the JSON object or list, as `kind` says, in a text; raises ValueError with the reason if it is not sound.

    Refused are, beside what is no JSON: text that is not UTF-8 or has half of a surrogate pair, more than `DEEPEST`
    lists and objects inside each other, far more values than our own files have, an object with a name twice, NaN and
    infinity, and whole numbers of 64 bits or more.
    """
    text = content.decode() if isinstance(content, bytes) else content
    _check_density(text)
    _check_depth(text)
    try:
        value = _DECODER.decode(text)
    except RecursionError:  # Python's own limit is higher than ours, unless the caller is deep itself
        raise ValueError("its lists and objects are nested too deeply") from None
    if not isinstance(value, kind):
        raise ValueError(f"it holds a JSON {_NAMES.get(type(value), 'value')} instead of {_NAMES[kind]}")
    if "\\u" in text or not text.isascii():
        _check_text(value)
    return value


def parse_record(content: bytes | str, what: str, schema: int) -> dict[str, Any]:
    """Return the fields of a record in JSON but for `schema`, the version of its format, which must be the given one.

    Raises TypeError or ValueError, with the reason, if the text is no such record; `what` names it in the message.
    """
    facts = parse_json(content, dict)
    check_fields(what, facts, {"schema": int})
    if (found := facts.pop("schema")) != schema:
        raise ValueError(f"it has schema {found}, and this version of rkcnn reads {schema}")
    return facts


def check_fields(
    what: str, facts: Any, kinds: Kinds, known: set[str] | None = None, optional: Kinds | None = None
) -> None:
    """Raise TypeError if a record lacks a field, has one of another type, or has one that is not known.

    `what` names the record in the message. A field of `optional` may be missing. True and False are no numbers here.
    """
    if not isinstance(facts, dict):
        raise TypeError(f"the {what} is of type {type(facts).__name__}")
    for name, kind in kinds.items():
        if name not in facts:
            raise TypeError(f"the {what} has no {name}")
        _check_kind(f"{what}'s {name}", facts[name], kind)
    for name, kind in (optional or {}).items():
        if name in facts:
            _check_kind(f"{what}'s {name}", facts[name], kind)
    for name in facts:
        if known is not None and name not in known:
            raise TypeError(f"the {what} has {name}, which this version doesn't know")


def _check_kind(what: str, value: Any, kind: type | tuple[type, ...]) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"the {what} is of type {type(value).__name__}")


def _check_density(text: str) -> None:
    containers = text.count("[") + text.count("{")
    values = text.count(",") + containers
    if (
        values > _FREE_VALUES + len(text) // _BYTES_OF_VALUE
        or containers > _FREE_CONTAINERS + len(text) // _BYTES_OF_CONTAINER
    ):
        raise ValueError(f"it holds {values:,} values, far more than a file of rkcnn of {len(text):,} characters has")


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"it has more than {DEEPEST} lists and objects inside each other")


def _check_text(value: Any) -> None:
    match value:
        case str() if _SURROGATE.search(value):
            raise ValueError(f"it has text with half of a surrogate pair, {ascii(value)[:60]}")
        case dict():
            for name, inner in value.items():
                _check_text(name)
                _check_text(inner)
        case list():
            for inner in value:
                _check_text(inner)


def _check_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"it has {shorten(twice)!r} twice in one object")
    return found


def _read_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"it has the number {text[:20]}, which is too large")
    return value


def _read_int(text: str) -> int:
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"it has a whole number of {len(text.lstrip('-'))} digits, and 64 bits are the most")
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it has the number {text}, and numbers must be finite")


_NAMES: dict[type, str] = {dict: "object", list: "list", str: "text", int: "number", float: "number"}
_DECODER = json.JSONDecoder(
    object_pairs_hook=_check_names,
    parse_float=_read_float,
    parse_int=_read_int,
    parse_constant=_refuse_constant,
)
