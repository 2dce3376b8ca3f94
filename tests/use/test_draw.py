"""Pictures of time-steps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rkcnn
from rkcnn.model.families import FAMILIES
from rkcnn.model.period import step_diagram
from rkcnn.model.spec import parse
from rkcnn.use.draw import to_svg

SVG = "{http://www.w3.org/2000/svg}"
EVERY = [
    f"{'-'.join(filter(None, (family.name, variant, '3' * family.staged)))}@k=4"
    for family in FAMILIES.values()
    for variant in family.variants
]


def picture(name: str) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(step_diagram(parse(name))))


@pytest.mark.parametrize("s", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", "EIR")
def test_a_dot_for_each_state_read(kind: str, s: int) -> None:
    dots = len(picture(f"RKCNN-{kind}-{s}@k=4").findall(f"{SVG}circle"))
    phase_1, phase_2, end = s * (s + 1) // 2, s * s, s + 1
    assert dots == phase_1 + (phase_2 if kind != "E" else 0) + end


@pytest.mark.parametrize("name", EVERY)
def test_every_family_is_drawn_inside_its_frame(name: str) -> None:
    diagram = step_diagram(parse(name))
    root = ElementTree.fromstring(to_svg(diagram))
    assert len(root.findall(f"{SVG}circle")) == sum(len(column.reads) for column in diagram.columns)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
    assert all(0 <= float(dot.attrib["cx"]) <= width for dot in root.iter(f"{SVG}circle"))
    assert all(0 <= float(dot.attrib["cy"]) <= height for dot in root.iter(f"{SVG}circle"))
    assert all(float(text.attrib["y"]) <= height for text in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("name", EVERY)
def test_boxes_do_not_cover_each_other(name: str) -> None:
    boxes = [rect for rect in picture(name).iter(f"{SVG}rect") if "stroke" in rect.attrib]
    spans = sorted((float(box.attrib["x"]), float(box.attrib["width"])) for box in boxes)
    assert all(x + wide < after for (x, wide), (after, _) in pairwise(spans))


@pytest.mark.parametrize("name", EVERY)
def test_the_title_of_a_phase_stays_in_its_shade(name: str) -> None:
    root, phases = picture(name), step_diagram(parse(name)).phases
    shades = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect") if rect.attrib.get("rx") == "6"]
    assert all(6 * len(title) < width for (title, *_), width in zip(phases, shades, strict=True))


def test_a_picture_says_what_it_shows() -> None:
    assert picture("rkcnn-i-3@k=32").findtext(f"{SVG}title") == "One time-step of RKCNN-I-3@k=32"


def test_the_same_name_is_the_same_picture() -> None:
    assert to_svg(step_diagram(parse("RKCNN-I-3@k=32"))) == to_svg(step_diagram(parse("rkcnn-i-3@k=32")))


@pytest.mark.parametrize("name", ["RKCNN-I-3@k=4", "RKNet-radau3@k=4"])
def test_the_last_line_ends_before_its_words(name: str) -> None:
    root = picture(name)
    (words,) = (text for text in root.iter(f"{SVG}text") if text.text == "next y")
    ends = [float(line.attrib["x2"]) for line in root.iter(f"{SVG}line")]
    assert max(ends) <= float(words.attrib["x"]) - 8 * len("next y")


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
