"""What writes a page of the documentation ends with an exit code and a sentence."""

from __future__ import annotations

import pytest

from rkcnn.error import InputError
from rkcnn.page_writer import run_writer


def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[tuple[str, str]] = []

    def write(one: str, two: str) -> list[str]:
        called.append((one, two))
        if one == "bad":
            raise InputError("a \x1b[31m name")
        return ["b is left out"] if one == "some" else []

    assert run_writer(write, [], ("a", "b")) == 0
    assert run_writer(write, ["some"], ("a", "b")) == 1
    assert run_writer(write, ["bad", "c"], ("a", "b")) == 2
    assert run_writer(write, ["x", "y", "z"], ("a", "b")) == 2
    assert called == [("a", "b"), ("some", "b"), ("bad", "c")]
    assert capsys.readouterr().err.splitlines() == [
        "rkcnn: b is left out",
        "rkcnn: a \\x1b[31m name",
        "rkcnn: 3 names given; 2 are used, by default a b",
    ]
