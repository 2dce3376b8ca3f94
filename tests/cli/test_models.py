"""rkcnn models: every row of the paper, against what the paper printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rkcnn.cli.models import models, print_tables
from rkcnn.record.tables import PAPER_TABLES, list_models
from rkcnn.report.paper import COST_TABLES, MISPRINTS, agrees
from rkcnn.use.pretrained import catalogue

Rows = list[dict[str, Any]]
COUNT_OF = {"params": "params", "params_100": "params_100", "flops": "paper_flops"}


def test_every_row_of_the_paper_is_there_in_its_order(rows: Rows) -> None:
    for key, table in COST_TABLES.items():
        assert [row["name"] for row in rows if row["table"] == key and row["paper"]] == list(table.rows)
    assert {row["name"] for row in rows} == set(list_models())
    assert {row["name"] for row in rows if not row["paper"]} == {"Identity@k=32", "Identity@k=120_120_120"}


def cells(rows: Rows) -> Iterator[tuple[tuple[str, str, str], bool]]:
    for row in rows:
        table = COST_TABLES[row["table"]]
        for column, count in COUNT_OF.items():
            text = (row["paper"] or {}).get(column)
            if text is not None:
                unit = table.flops_unit if column == "flops" else table.params_unit
                yield (row["table"], row["name"], column), agrees(row[count], text, unit)


def test_a_printed_cell_is_our_count_or_a_named_misprint(rows: Rows) -> None:
    seen = dict(cells(rows))
    assert len(seen) == 35 + 47 + 6 + 43
    assert {cell for cell, agreed in seen.items() if not agreed} == set(MISPRINTS)
    page = (Path(__file__).parents[2] / "docs" / "costs.md").read_text(encoding="utf-8")
    agreed = list(seen.values()).count(True)
    assert f"have {len(seen)} cells of parameters and FLOPs. In {agreed} of them" in page
    assert f"In the other {len(MISPRINTS)} it does not" in page


def test_counts_that_depend_on_the_data_say_so(rows: Rows) -> None:
    at_least = {row["name"].partition("@")[0] for row in rows if not row["exact"]}
    assert at_least == {"RKNet-radau3", "ODENet-abm", "RKNet-64", "ODENet-64", "SONODE-64"}
    runs = {row["name"]: (row["evaluations"], row["unit"]) for row in rows}
    assert runs["RKCNN-I-5_5_6@k=150_120_120"] == (32, "stage")
    assert runs["ODENet-ab@k=32"] == runs["ODENet-abm@k=32"] == (10, "f")
    assert runs["Identity@k=32"] == (0, "f")
    assert runs["ResNet-1001"] == (None, "")


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_tables_show_every_name_whole(
    rows: Rows, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_tables(rows)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "…" not in out
    assert {section.title for section in PAPER_TABLES.values()} <= {line.strip() for line in lines}
    firsts = [line.split()[0] for line in lines if line.strip()]
    assert all(firsts.count(row["name"]) == sum(row["name"] == r["name"] for r in rows) for row in rows)


def test_a_row_reads_as_the_paper_does(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(rows)
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["ODENet-abm@k=32"][1:] == ["52,938", ">20.7932", ">10", "f", ">19.4850", ">19.49", "52.94"]
    assert lines["CliqueNet-2@k=32"][-2:] == ["10.27*", "57.55"]
    assert lines["MomentumResNet-101"][-3:] == ["14.79*", "139.0*", "139.2*"]


def test_pretrained_weights_are_listed(
    pretrained: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    models(pretrained=True)
    head, row, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "params", "file", "recipe", "precision", "seed", "test", "error"]
    models(pretrained=True, json_=True)
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["name"] == pretrained
    assert row.split()[:2] == [pretrained, f"{facts['params']:,}"]
    assert row.split()[-5:] == [facts["recipe"], "fp32", "0", f"{100 * facts['error']:.2f}", "%"]
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    models(pretrained=True)
    assert capsys.readouterr().out == "This version of the package holds no pretrained weights.\n"
