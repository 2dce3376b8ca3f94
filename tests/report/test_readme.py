"""What code wrote into the README and the docs is what the code gives now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from report.records import words_of
from rkcnn.error import InputError
from rkcnn.report.claims.claims import CLAIMS
from rkcnn.report.figures.style import render
from rkcnn.report.paper import COST_TABLES, MISPRINTS
from rkcnn.report.published import PAGE, draw_pictures, report_published, write_readme_part
from rkcnn.report.readme import COSTS, MOST, RESULTS, check_markers, cost_table, replace_between, write_between
from rkcnn.report.results import read_records
from rkcnn.report.results_page import write_results_page

ROOT = Path(__file__).parents[2]


def test_the_cost_table_is_current(rows: list[dict[str, Any]]) -> None:
    costs = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    assert replace_between(costs, COSTS, cost_table(rows)) == costs, "run python -m rkcnn.report.readme"


def test_the_results_are_current() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    records, _ = read_records(ROOT / "results")
    found = report_published(records)
    stale = "run rkcnn report --readme README.md"
    assert replace_between(readme, RESULTS, write_readme_part(found)) == readme, stale
    assert write_results_page(found, records) == (ROOT / PAGE).read_text(encoding="utf-8"), stale
    pictures = draw_pictures(found)
    assert {path.name for path in pictures} == {path.name for path in (ROOT / "docs").glob("results*.svg")}, stale
    for path, figure in pictures.items():
        drawn, kept = render(figure, "svg").decode(), (ROOT / path).read_text(encoding="utf-8")
        assert words_of(drawn) == words_of(kept), stale


def test_no_published_cost_differs_from_the_papers_without_an_explanation() -> None:
    for part in report_published(read_records(ROOT / "results")[0]).tables:
        checks = [(check.column, check.counted) for pair in part.checks for check in pair if check.state == "differs"]
        assert checks == [], part.name


def test_the_table_of_misprints_is_current() -> None:
    lines = ["| table | network | column | printed | why |", "|---|---|---|---|---|"]
    for (table, name, column), why in MISPRINTS.items():
        lines.append(f"| `{table}` | `{name}` | {column} | {getattr(COST_TABLES[table].rows[name], column)} | {why} |")
    assert "\n".join(lines) in (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")


def test_only_what_stands_between_the_markers_changes(tmp_path: Path) -> None:
    start, end = RESULTS
    text = f"before\n{start}\nold\n{end}\nafter"
    assert replace_between(text, RESULTS, "new") == f"before\n{start}\nnew\n{end}\nafter"
    with pytest.raises(InputError, match="lacks"):
        replace_between("no markers", RESULTS, "new")
    path = tmp_path / "README.md"
    path.write_text(text)
    write_between(path, RESULTS, "± new")
    assert path.read_text(encoding="utf-8") == f"before\n{start}\n± new\n{end}\nafter"
    with pytest.raises(InputError, match=r"no file .*none here; name a README that has"):
        write_between(tmp_path / "none", RESULTS, "new")
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="can't be read as text"):
        check_markers(path, RESULTS)
    with path.open("wb") as file:
        file.truncate(MOST + 1)  # a sparse file, as one of gigabytes would be
    with pytest.raises(InputError, match=r"more than 4,194,304 bytes.*; name a README that has"):
        check_markers(path, RESULTS)
    path.write_text("no markers")
    with pytest.raises(InputError, match=r"README\.md lacks"):
        check_markers(path, RESULTS)


def test_the_claims_of_the_docs_are_current() -> None:
    table = "".join(f"| `{claim.id}` | {claim.short} |\n" for claim in CLAIMS)
    assert table in (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
