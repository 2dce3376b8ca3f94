"""The HTML page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from footprints import put_memories
from report.records import ERRORS, put_records, results_of
from rkcnn.disk import DiskError
from rkcnn.error import InputError
from rkcnn.model.drawing import BLACK, BLUE
from rkcnn.record.result import Stretch
from rkcnn.record.tables import TABLES
from rkcnn.report.figures.style import caption_of
from rkcnn.report.page.page import follow_page, inline_svg, write_page
from rkcnn.report.report import Report, build_report
from rkcnn.report.results import ResultTable, read_records


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


VOID = {"meta", "link", "br", "input"}
EVIL = "</script><img src=x onerror=alert(1)>&\"'"


class Reader(HTMLParser):
    """Tags must close in order; collects what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"line {self.getpos()[0]}"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(name)) is not None]


THREE = ("ResNet@k=32", "Identity@k=32", "RKCNN-R-2@k=32")


def look(folder: Path, preset: str = "paper") -> ResultTable:
    errors = ERRORS if preset == "paper" else dict.fromkeys(THREE, (0.3,))
    put_records(folder, errors, preset=preset, flops=8_000_000)
    return results_of(folder)


def report(folder: Path, *tables: ResultTable) -> Report:
    return build_report(tables, read_records(folder)[0])


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes 3 of a page's 4 seconds."""
    monkeypatch.setattr("rkcnn.report.report.FIGURES", {})


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    tables = [look(folder / "paper"), look(folder / "smoke", "smoke"), results_of(folder / "paper", "cifar10")]
    return write_page(report(folder, *tables), folder / "report.html").read_text(encoding="utf-8")


def test_it_asks_for_nothing(text: str) -> None:
    page = Reader(text)
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"https://doi.org/10.1007/s00521-022-07785-2"}
    assert not page.values("src")
    outside = [value for value in page.values("href") if not value.startswith("#")]
    assert outside == ["data:,", "https://doi.org/10.1007/s00521-022-07785-2"]
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:" in page.values(
        "content"
    )


def test_ids_are_unique_and_links_arrive(text: str) -> None:
    page = Reader(text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    aims = [value[1:] for value in page.values("href") if value.startswith("#")] + page.values("aria-labelledby")
    assert set(aims) <= set(ids)
    assert {"mnist-paper", "mnist-smoke", "cifar10-paper", "claims", "reading", "origins"} <= set(ids)


def test_every_row_and_figure_is_there(text: str) -> None:
    page = Reader(text)
    rows = [attributes for tag, attributes in page.tags if tag == "tr" and "data-family" in attributes]
    assert len(rows) == 2 * len(TABLES["mnist"].specs) + len(TABLES["cifar10"].specs)
    assert page.values("class").count("plot") == 5, "smoke has one epoch, and no figures"
    words = " ".join(page.texts)
    assert "0.350±0.016" in words
    assert "No figures: they need three networks with results, trained for more than one epoch." in words
    assert "On every dataset, RKCNN-E obtains lower accuracy than RKCNN-I and RKCNN-R." in words
    assert "0123456789abcdef" in words


def test_the_caption_is_the_figures(tmp_path: Path) -> None:
    """A page of a recipe that isn't the paper's says nothing of hollow markers, for none is drawn."""
    put_records(tmp_path, dict.fromkeys(THREE, (0.003, 0.004)), preset="fast")
    part = build_report([results_of(tmp_path)]).tables[0]
    written = write_page(build_report([results_of(tmp_path)]), tmp_path / "report.html").read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", written)
    assert [unescape(caption) for caption in captions] == [caption_of(figure) for figure in part.figures.values()]
    assert len(captions) == 4
    assert all(captions)
    assert "hollow" not in " ".join(captions)


def test_every_line_of_another_recipe_is_marked(text: str) -> None:
    assert text.count('<b class="tag">SMOKE</b>') == len(TABLES["mnist"].specs)
    assert text.count('class="tag"') == len(TABLES["mnist"].specs)


def test_a_table_opens_with_what_was_found(text: str) -> None:
    (part,) = re.findall(r'<section id="mnist-paper".*?<table', text, re.DOTALL)
    words = " ".join("".join(Reader(f"{part}></table></div></section>").texts).split())
    assert "24 runs of 5 of 19 networks. Against RKCNN-R-2 k=32, 2 of 4 err more, none less; 2 can't be told" in words
    assert "err more: pre-act ResNet (bottleneck) (+0.182, +0.143 to +0.220), pre-act ResNet (+0.050," in words
    assert "a difference between the two groups may come from the norm" in words, "not in the closed notes"
    assert text.count("may come from the norm") == 1


def test_names_of_commands_are_code(text: str) -> None:
    assert "The table <code>norms</code> gives all of them the same norm." in text
    assert "`" not in "".join(Reader(text.partition("<script>")[0] + "</body></html>").texts)


def test_the_reference_is_marked(text: str) -> None:
    (row,) = re.findall(r'<tr[^>]*class="reference">\s*<th[^>]*>(.*?)</th>', text)
    assert row.startswith('RKCNN-R-2 k=32 <b class="badge">reference</b>')


def test_memory_has_a_table_of_its_own(tmp_path: Path, no_plots: None) -> None:
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    written = write_page(report(tmp_path, look(tmp_path)), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<summary>Memory: the paper&#39;s, and ours of a fresh process that infers one image</summary>" in written
    assert written.count('<table class="memory">') == 1


def test_families_are_told_apart_by_their_markers(text: str) -> None:
    (part,) = re.findall(r'<section id="mnist-paper".*?</fieldset>', text, re.DOTALL)
    shapes = re.findall(r'<svg class="marker" viewBox="[^"]*" aria-hidden="true"><polygon points="([^"]*)"', part)
    assert len(shapes) == part.count("<label>")
    assert len(set(shapes)) == len(shapes)


def test_smoke_has_a_banner_and_the_paper_has_none(text: str) -> None:
    marks = re.findall(r'<p class="mark" role="note">([^<]*)</p>', text)
    assert marks == ["SMOKE: 40 steps on mnist-mini; says nothing about accuracy"]


@pytest.mark.usefixtures("no_plots")
def test_whatever_stands_in_a_record_is_text(tmp_path: Path) -> None:
    seen = look(tmp_path)
    evil = Stretch(commit=EVIL, source=EVIL, hash_version=2, epochs=3)
    rows = tuple(
        replace(
            row,
            label=f"{EVIL}{row.label}",
            family=f"{EVIL}{row.family}",
            results=tuple(replace(result, machine={"gpu": EVIL}, stretches=(evil,)) for result in row.results),
        )
        for row in seen.rows
    )
    path = write_page(report(tmp_path, replace(seen, about=EVIL, rows=rows)), tmp_path / "report.html")
    page = Reader(path.read_text(encoding="utf-8"))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not page.values("onerror")
    assert any(EVIL in words for words in page.texts)
    facts = next(words for words in page.texts if words.startswith('{"mnist-paper"'))
    assert "<" not in facts
    assert ["name", "ResNet@k=32"] in json.loads(facts)["mnist-paper"]["1"][1]


@pytest.mark.usefixtures("no_plots")
def test_control_characters_of_a_record_are_escaped(tmp_path: Path) -> None:
    evil = "\x1b[31m\x07\nx"
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.4)})
    code = Stretch(commit=evil, source=evil, hash_version=2, epochs=3)
    records = [
        (
            folder,
            replace(
                result,
                stretches=(code,),
                engine=evil,
                engine_note=evil,
                machine={"gpu": evil},
                versions={"rkcnn": evil, "torch": evil, "python": evil},
            ),
        )
        for folder, result in read_records(tmp_path)[0]
    ]
    seen = results_of(tmp_path)
    rows = tuple(
        replace(row, results=tuple(replace(result, notes=(evil,)) for result in row.results), label=evil + row.label)
        for row in seen.rows
    )
    path = write_page(build_report([replace(seen, rows=rows)], records), tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert not set("\x1b\x07") & set(text)
    page, shown = Reader(text), r"\x1b[31m\x07\nx"
    for name in ("data-value", "title"):
        assert any(shown in value for value in page.values(name))
        assert not any("\n" in value for value in page.values(name))


def test_equal_records_give_equal_pages(tmp_path: Path) -> None:
    seen = look(tmp_path, "smoke")
    one, two = (write_page(report(tmp_path, seen), tmp_path / name) for name in ("one.html", "two.html"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.usefixtures("no_plots")
def test_without_records_no_claim_is_tested(tmp_path: Path) -> None:
    path = write_page(build_report([look(tmp_path)]), tmp_path / "report.html")
    assert "No claim is tested yet." in path.read_text(encoding="utf-8")


def test_claims_come_before_the_tables(text: str) -> None:
    places = [text.index(f'<section id="{name}"') for name in ("claims", "mnist-paper", "mnist-smoke", "reading")]
    assert places == sorted(places)
    links = [value for value in Reader(text).values("href") if value.startswith("#")]
    assert links[:2] == ["#claims", "#mnist-paper"]


@pytest.mark.usefixtures("no_plots")
def test_it_says_where_claims_are_judged_from_tables_that_it_lacks(tmp_path: Path, no_plots: None) -> None:
    put_records(tmp_path)
    cifar = dict.fromkeys(("ResNet@k=120_120_120", "RKCNN-I-2_2_2@k=120"), (0.05, 0.06, 0.07))
    put_records(tmp_path, cifar, "cifar10")
    said = "from runs of other tables too, which are not on this page (cifar10)"
    for tables, there in ((("mnist",), True), (("mnist", "cifar10"), False)):
        found = report(tmp_path, *(results_of(tmp_path, table) for table in tables))
        words = " ".join(write_page(found, tmp_path / "report.html").read_text(encoding="utf-8").split())
        assert (said in words) == there
        assert "All that is shown is in this one file." in words


def test_a_run_of_several_tables_is_counted_once(tmp_path: Path) -> None:
    """24 runs of the mnist table, of which 14 belong to sota-mnist and 10 to norms, too."""
    put_records(tmp_path)
    tables = [results_of(tmp_path, name) for name in ("mnist", "sota-mnist", "norms")]
    assert [results.runs for results in tables] == [24, 14, 10]
    written = write_page(report(tmp_path, *tables), tmp_path / "report.html").read_text(encoding="utf-8")
    counted = re.findall(r'<td class="number" data-value="(\d+)">\1</td><td data-value="0">', written)
    assert sum(map(int, counted)) == 24
    assert re.search(r": 24 runs, some of which\s+belong to several tables", written)


def test_bad_input_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table given for the page"):
        write_page(build_report([]), tmp_path / "report.html")
    with pytest.raises(DiskError, match=r"can't write to .*report\.html"):
        write_page(build_report([results_of(tmp_path)]), tmp_path / "no" / "report.html")
    assert not list(tmp_path.iterdir())
