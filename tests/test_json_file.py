"""JSON that anyone could have written: what is sound comes back, anything else is refused soon and with a reason."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from rkcnn.disk import MissingFile
from rkcnn.error import InputError
from rkcnn.json_file import DEEPEST, LONG, SHORT, check_fields, parse_json, read_json


def test_sound_content_comes_back() -> None:
    text = '{"a": [1, -2.5e3, true, null, "[{\\"\\u00e9\\ud83d\\ude00"], "b": {"c": -9223372036854775808}}'
    found = {"a": [1, -2500.0, True, None, '[{"é😀'], "b": {"c": -(1 << 63)}}
    assert parse_json(text, dict) == parse_json(text.encode(), dict) == found
    assert parse_json("[1]", list) == [1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "Expecting value"),
        (b'{"a": 1', "Expecting ',' delimiter"),
        (b"[]", "it holds a JSON list instead of object"),
        (b'"x"', "it holds a JSON text instead of object"),
        (b'{"a": NaN}', "it has the number NaN"),
        (b'{"a": -Infinity}', "it has the number -Infinity"),
        (b'{"a": 1e999}', "it has the number 1e999, which is too large"),
        (b'{"a": 9223372036854775808}', "it has a whole number of 19 digits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "it has a whole number of 5000 digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "it has 'a' twice in one object"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair, '\\ud800'"),
        (b'{"b": [{"\\udfff": 1}]}', "half of a surrogate pair"),
        (b'{"a": "\xff"}', "can't decode byte 0xff"),
        (b'{"a": "\xed\xa0\x80"}', "can't decode byte 0xed"),  # UTF-8's form of half a pair
        (b"[" * (DEEPEST + 1), f"it has more than {DEEPEST} lists and objects inside each other"),
        (b'{"a": ' * 1000, f"it has more than {DEEPEST} lists and objects inside each other"),
    ],
)
def test_what_is_not_sound_has_a_reason(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=r"^.*$") as raised:
        parse_json(content, dict)
    assert says in str(raised.value)


def test_brackets_in_text_are_no_depth() -> None:
    text = '{"a": "' + "[{" * 500 + '\\"' + "[" * 100 + '", "b": [' + "[]," * 100 + "0]}"
    assert len(parse_json(text, dict)["b"]) == 101


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"[" + b"[]," * (LONG // 3 - 2) + b"0]",
        b'"' + b'\\"' * (LONG // 2 - 1),
        b"[" + b"0.5," * (LONG // 4 - 1) + b"0]",
        b"[" + b'"abcdefghijklmnopq",' * (LONG // 20 - 1) + b"0]",
        b"{" + b",".join(b'"%d":0' % i for i in range(60_000)) + b',"z":1,"z":2}',
    ],
    ids=["lists", "objects", "empty lists", "text", "numbers", "texts", "a name twice, after many others"],
)
def test_a_refusal_takes_little_time_and_memory(content: bytes) -> None:
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"^.*$"):
        parse_json(content, dict)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= (64 << 20) + 2 * len(content), "beside the content itself"
    assert time.process_time() - begin < 10


def test_a_file_that_is_too_long_or_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}" + b" " * SHORT)
    with pytest.raises(InputError, match=r"a\.json: can't be read \(it has more than 1,048,576 bytes"):
        read_json(tmp_path / "a.json")
    assert read_json(tmp_path / "a.json", LONG) == {}
    with pytest.raises(MissingFile):
        read_json(tmp_path / "b.json")


def test_kinds_are_checked() -> None:
    check_fields("box", {"a": 1, "b": None}, {"a": int}, {"a", "b", "c"}, {"b": (str, type(None)), "c": str})
    for facts, says in (
        ([], "the box is of type list"),
        ({}, "the box has no a"),
        ({"a": True}, "the box's a is of type bool"),
        ({"a": 1, "b": 2}, "the box's b is of type int"),
        ({"a": 1, "z": 2}, "the box has z, which this version doesn't know"),
    ):
        with pytest.raises(TypeError, match=says):
            check_fields("box", facts, {"a": int}, {"a", "b"}, {"b": str})
