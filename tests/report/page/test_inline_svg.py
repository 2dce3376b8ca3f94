"""A figure inside of a page: nothing of a file's, everything of the page's."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from rkcnn.model.drawing import BLACK, BLUE
from rkcnn.report.page.inline_svg import follow_page, inline_svg


@pytest.fixture(scope="module")
def svg() -> str:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    axes.plot([1, 2], [1, 2], color=BLUE)
    axes.plot(1, 2, "o", color=BLUE, gid="point-3")
    axes.text(1.5, 1.5, "+0.12345 [a <b>]", gid="name-3")
    axes.plot([1, 1], [1, 2], color=BLUE, gid="bar-3-line")
    return str(inline_svg(figure, "mnist-x", 'A "title" & more', {3: 'A&"B'}))


def test_it_is_one_element_without_a_document_around_it(svg: str) -> None:
    assert ElementTree.fromstring(svg).tag == "svg"
    assert not re.search(r"<\?xml|<!DOCTYPE|<metadata|<style|http|font-family", svg)


def test_ids_and_what_points_at_them_have_the_prefix(svg: str) -> None:
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("mnist-x-") for name in ids)
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)
    assert used
    assert {one or two for one, two in used} <= set(ids)


def test_points_and_names_can_be_asked(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    (point,) = root.findall(".//*[@class='point']")
    (name,) = root.findall(".//*[@class='name']")
    assert point.attrib | {"id": ""} == {
        "id": "", "class": "point", "data-row": "3", "data-family": 'A&"B', "tabindex": "0",
    }  # fmt: skip
    assert "tabindex" not in name.attrib
    (bar,) = root.findall(".//*[@class='bar']")
    assert (bar.attrib["id"], bar.attrib["data-row"]) == ("mnist-x-bar-3-line", "3")
    assert root.attrib["aria-label"] == 'A "title" & more'


def test_numbers_are_short_and_texts_stay(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert "+0.12345 [a <b>]" in "".join(root.itertext())
    assert not re.findall(r"\d\.\d{3,}", " ".join(value for part in root.iter() for value in part.attrib.values()))


def test_colours_are_the_pages(svg: str) -> None:
    assert not re.findall(r"#[0-9a-f]{6}\b", svg)
    assert "var(--blue)" in svg
    assert (follow_page(BLACK), follow_page("#123456")) == ("var(--ink)", "#123456")
