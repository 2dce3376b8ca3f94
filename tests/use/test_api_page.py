"""docs/api.md says what the docstrings say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import rkcnn
from rkcnn.use.api_page import _describe_class, _describe_function, _items, write_page

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_page_is_current() -> None:
    page = write_page()
    for name in rkcnn.__all__:
        assert f"### rkcnn.{name}\n" in page
    assert page == PAGE.read_text(encoding="utf-8"), "run python -m rkcnn.use.api_page docs/api.md"


@dataclass(frozen=True)
class Sample:
    """A thing.

    first  what stands in the docstring
    """

    first: int
    second: float | None = None  # what stands behind the field
    third: str = ""
    """What stands below the field."""

    def double(self, times: int = 2) -> int:
        """Return more."""
        return self.first * times

    def _hidden(self) -> None:
        """Not shown."""


Sample.__module__ = "rkcnn.sample"  # only types of the package are described


def test_a_class_is_described_with_fields_and_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    start = source.index("@dataclass(frozen=True)\nclass Sample")
    monkeypatch.setattr("inspect.getsource", lambda kind: source[start : source.index("\n\nSample.__module__")])
    assert _describe_class("rkcnn.Sample", Sample) == (
        "### rkcnn.Sample\n\nA thing.\n\n"
        "| field | type | |\n|---|---|---|\n"
        "| `first` | `int` | what stands in the docstring |\n"
        "| `second` | `float \\| None = None` | what stands behind the field |\n"
        "| `third` | `str = ''` | What stands below the field. |\n\n"
        "```python\n.double(times: int = 2) -> int\n```\n\nReturn more.\n"
    )


def test_a_function_is_described_with_its_arguments() -> None:
    def act(one: int, *, other: str = "a", **rest: float) -> None:
        """Do it.

        one    the first
        other  the second,
               on two lines
        """

    assert _describe_function("rkcnn.act", act) == (
        '### rkcnn.act\n\n```python\nact(one: int, *, other: str = "a", **rest: float) -> None\n```\n\n'
        "Do it.\n\n- `one`: the first\n- `other`: the second, on two lines\n"
    )


def test_names_beside_explanations_are_a_list() -> None:
    assert _items("one   the first\nthree the third\nso, on\n      and on\na, b  both") == [
        ("one", "the first"),
        ("three", "the third"),
        ("so, on", "and on"),
        ("a, b", "both"),
    ]
    assert _items("so, on\n      and on") == [("so, on", "and on")]
    for text in ("A sentence of\nordinary text.", "", "one  word and\nthereafter text", "    indented alone"):
        assert _items(text) == []
