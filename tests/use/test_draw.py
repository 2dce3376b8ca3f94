"""rkcnn.draw: a picture for a notebook or a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import rkcnn


def test_a_notebook_shows_what_a_file_holds(tmp_path: Path) -> None:
    drawing = rkcnn.draw("rkcnn-i-3@k=32")
    drawing.save(tmp_path / "step.svg")
    assert (tmp_path / "step.svg").read_text(encoding="utf-8") == drawing._repr_svg_() == drawing.svg
    assert repr(drawing) == "Drawing(network='RKCNN-I-3@k=32')"


def test_what_cant_be_drawn_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(rkcnn.InputError, match="not made of periods and time-steps"):
        rkcnn.draw("ResNet-1001")
    with pytest.raises(rkcnn.InputError, match=r"ends in \.svg"):
        rkcnn.draw("ResNet@k=32").save(tmp_path / "step.png")
    assert not list(tmp_path.iterdir())
