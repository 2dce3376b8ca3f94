"""The page in a real browser that has no network: it sorts, filters, tells of its points, prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from report.browser import Page, browse, find_chromium
from report.records import ERRORS, put_records, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.page.page import write_page
from rkcnn.report.report import build_report

NETWORKS = """[...document.querySelectorAll("#mnist-paper tbody tr")].filter(row => row.checkVisibility())
    .map(row => row.querySelector("code")?.textContent ?? row.cells[0].textContent)"""
ERROR = "#mnist-paper thead th:nth-child(4)"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    for number, (spec, errors) in enumerate(ERRORS.items()):
        put_records(folder, {spec: errors}, params=30_000 + 9_000 * number, flops=4_000_000 + 10**6 * number)
    return write_page(build_report([results_of(folder)]), folder / "report.html")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here")
    with browse(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(chromium: Page, file: Path) -> Iterator[Page]:
    """Freshly loaded; what happened must have passed without a word on the console or a request."""
    chromium.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    chromium.trouble.clear()
    chromium.asked.clear()
    chromium.open(file)
    yield chromium
    chromium.wait()
    assert chromium.trouble == []
    assert chromium.asked == [file.resolve().as_uri()]


def test_heads_sort_by_mouse_and_keyboard_and_rows_without_a_number_stay_below(page: Page) -> None:
    def errors() -> list[float]:
        ours = page.ask(
            '[...document.querySelectorAll("#mnist-paper tbody td:nth-child(4)")].map(c => c.dataset.value)'
        )
        found = [float(value) for value in ours[: len(ERRORS)]]
        assert set(ours[len(ERRORS) :]) == {None}
        return found

    assert page.ask(NETWORKS) == list(TABLES["mnist"].specs)
    page.ask(f"document.querySelector({ERROR!r} + ' button').click()")
    assert page.ask(f"document.querySelector({ERROR!r}).ariaSort") == "ascending"
    assert errors() == sorted(errors())
    page.ask(f"document.querySelector({ERROR!r} + ' button').focus()")
    page.press("Enter")
    assert page.ask(f"document.querySelector({ERROR!r}).ariaSort") == "descending"
    assert errors() == sorted(errors(), reverse=True)
    page.ask("document.querySelector('#mnist-paper thead button').click()")
    assert page.ask("[...document.querySelectorAll('[aria-sort]')].map(h => h.cellIndex)") == [0]


def test_families_filter_rows_and_points(page: Page) -> None:
    page.ask("document.querySelector('#mnist-paper [data-all=off]').click()")
    assert page.ask(NETWORKS) == []
    page.ask("document.querySelector('#mnist-paper input[value=ResNet]').click()")
    assert page.ask(NETWORKS) == ["ResNet-bottleneck@k=32", "ResNet@k=32"]
    assert page.ask("document.querySelector('#mnist-paper output').textContent") == "2 of 19 rows"
    for kind in ("point", "name", "bar", "panel"):
        away = page.ask(f"[...document.querySelectorAll('.{kind}.away')].map(part => part.dataset.family)")
        assert set(away) == {"RKCNN-E", "RKCNN-I", "RKCNN-R"}, kind
    page.ask("document.querySelector('#mnist-paper [data-all=on]').click()")
    assert len(page.ask(NETWORKS)) == len(TABLES["mnist"].specs)


def test_a_point_tells_of_its_run_by_mouse_and_keyboard(page: Page) -> None:
    index = TABLES["mnist"].specs.index("RKCNN-I-2@k=32")
    point = f"#mnist-paper-frontier-params-point-{index}"
    assert page.ask("document.querySelector('#tip').hidden")
    page.move_to(point)
    words = page.ask("document.querySelector('#tip').innerText")
    for word in ("RKCNN-I-2@k=32", "0.350 ± 0.016 %", "0.330 ± 0.016 %", "57,000", "7.00 M", "65 s", "0, 1, 2, 3, 4"):
        assert word in words
    assert page.ask("document.querySelector('tr.lit').dataset.row") == str(index)
    page.press("Escape")
    assert page.ask("document.querySelector('#tip').hidden")
    page.ask(f"document.querySelector({point!r}).focus({{preventScroll: true}})")
    assert "RKCNN-I-2@k=32" in page.ask("document.querySelector('#tip').innerText")
    page.move_to("h1")
    page.ask(f"document.querySelector({point!r}).blur()")
    assert page.ask("document.querySelector('#tip').hidden")


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_nothing_is_wider_than_the_window(page: Page, file: Path, width: int) -> None:
    page.asked.clear()
    page.open(file, width)
    assert page.ask("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_what_can_be_concluded_is_seen_without_scrolling(page: Page, file: Path, width: int) -> None:
    page.asked.clear()
    page.open(file, width)
    right = page.ask("document.querySelector('#mnist-paper tbody td').getBoundingClientRect().right")
    head = page.ask("document.querySelector('#mnist-paper thead th:nth-child(2)').innerText")
    assert head.startswith("against RKCNN-R-2 k=32")
    assert 0 < right <= width


@pytest.mark.parametrize(("width", "cut"), [(390, True), (1280, False)])
def test_a_table_that_is_cut_off_says_so(page: Page, file: Path, width: int, cut: bool) -> None:
    page.asked.clear()
    page.open(file, width)
    page.wait()
    assert page.ask("document.querySelector('#mnist-paper .hint').checkVisibility()") == cut
    assert page.ask("document.querySelector('#mnist-paper .bands .hint').checkVisibility()") == cut
    assert not page.ask("document.querySelector('#mnist-paper .forest .hint').checkVisibility()"), "it shrinks"


def test_figures_shrink_with_the_window(page: Page, file: Path) -> None:
    page.asked.clear()
    page.open(file, 390)
    widths = page.ask("[...document.querySelectorAll('figure:not(.bands) .plot')].map(p => p.clientWidth)")
    assert widths
    assert max(widths) <= 390


def test_light_dark_and_print(page: Page) -> None:
    def shine(selector: str, name: str) -> int:
        """0 black to 255 white."""
        colour = page.ask(f"getComputedStyle(document.querySelector({selector!r})).{name}")
        return min(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    def show(scheme: str, media: str = "") -> tuple[int, int, int]:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.call("Emulation.setEmulatedMedia", media=media, features=features)
        return shine("body", "backgroundColor"), shine("body", "color"), shine(".plot text", "fill")

    assert show("light") == (255, 26, 26)
    paper, *inks = show("dark")
    assert paper < 40
    assert min(inks) > 200
    page.ask("document.querySelector('#mnist-paper [data-all=off]').click()")
    assert show("dark", "print") == (255, 26, 26)
    assert page.ask(NETWORKS) == list(TABLES["mnist"].specs), "on paper all rows stand"
    assert not page.ask("document.querySelector('.controls').checkVisibility()")
