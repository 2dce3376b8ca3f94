"""Costs in the records beside the paper's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from footprints import put_memories
from report.records import put_records, report_of, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.costs import MISPRINTED, Footprint, check_costs, find_footprint, format_footprint, shorten
from rkcnn.report.page.table import list_facts
from rkcnn.report.paper import MISPRINTS, cells
from rkcnn.report.tables.markdown import table_markdown
from rkcnn.report.tables.text import table_text


@pytest.mark.parametrize(
    ("table", "spec", "counts", "states"),
    [
        ("mnist", "ResNet@k=32", (52_234, 8_434_000), ("agrees", "agrees")),
        ("mnist", "ResNet@k=32", (52_240, None), ("differs", "not counted")),
        ("mnist", "DenseNet-2@k=32", (56_266, 8_650_000), ("misprint", "agrees")),
        ("mnist", "DenseNet-2@k=32", (56_267, 8_650_000), ("differs", "agrees")),  # not the known count either
        ("mnist", "ODENet-abm@k=32", (52_938, 19_490_000), ("agrees", "agrees")),  # printed >19.49
        ("mnist", "RKNet-radau3@k=32", (52_938, None), ("agrees", "-")),
        ("mnist", "Identity@k=32", (33_674, None), ("-", "-")),
        ("cifar100", "RKCNN-I-2_2_2@k=120", (1_964_020, 1_706_941_080), ("agrees", "agrees")),
        ("cifar10", "RKCNN-I-2_2_2@k=120", (1_964_020, 1_706_941_080), ("differs", "agrees")),
        ("scaling", "RKCNN-I-2_2_2@k=120", (1_931_530, 1_706_941_080), ("-", "-")),
    ],
)
def test_states(tmp_path: Path, table: str, spec: str, counts: tuple[int, int | None], states: tuple[str, str]) -> None:
    put_records(tmp_path, {spec: (0.01,)}, table, params=counts[0], paper_flops=counts[1])
    seen = results_of(tmp_path, table)
    row = next(row for row in seen.rows if row.network == spec)
    checks = check_costs(seen, row)
    assert tuple(check.state for check in checks) == states
    assert all(bool(check.why) == (check.state == "misprint") for check in checks)


def test_a_misprint_is_shown_beside_what_was_counted(tmp_path: Path) -> None:
    put_records(tmp_path, {"DenseNet-2@k=32": (0.004,)}, params=56_266, paper_flops=8_654_000)
    seen = results_of(tmp_path)
    params, flops = next(check_costs(seen, row) for row in seen.rows if row.results)
    assert (params.text, params.remark) == ("56,266", "misprint: paper 57.55 K")
    assert (flops.text, flops.remark) == ("8.654 M", "")
    absent, _ = check_costs(seen, seen.rows[0])
    assert (absent.text, absent.remark) == ("34.86 K", "the paper's")


def test_the_least_count_is_shown_as_one(tmp_path: Path) -> None:
    spec = "ODENet-abm@k=32"  # whose data decide how often f is evaluated
    put_records(tmp_path, {spec: (0.004,), "ODENet-ab@k=32": (0.004,)}, flops=20_793_216, paper_flops=19_485_024)
    part = report_of(tmp_path)
    least, exact = (next(row for row in part.results.rows if row.network == name) for name in (spec, "ODENet-ab@k=32"))
    assert check_costs(part.results, least)[1].text == ">19.485 M"
    assert check_costs(part.results, exact)[1].text == "19.485 M"
    assert ">19.49 M  >19.485 M  agrees" in table_text(part)
    assert "| >19.485 M |" in table_markdown(part)
    assert dict(list_facts(least, 2))["FLOPs (2 × MAC)"] == ">20.79 M an image"
    assert dict(list_facts(exact, 2))["FLOPs (2 × MAC)"] == "20.79 M an image"
    assert shorten(19_485_024, is_least=True) == ">19.49 M"


def test_the_counts_behind_misprints_are_the_networks(rkcnn_models: dict[tuple[str, str], dict[str, int]]) -> None:
    assert MISPRINTED.keys() == MISPRINTS.keys()
    columns = {"params": "params", "params_100": "params_100", "flops": "paper_flops"}
    for (table, name, column), count in MISPRINTED.items():
        assert rkcnn_models[table, name][columns[column]] == count


@pytest.fixture(scope="module")
def rkcnn_models() -> dict[tuple[str, str], dict[str, int]]:
    """What `rkcnn models` counts, by table and network."""
    listed = subprocess.check_output([sys.executable, "-m", "rkcnn", "models", "--json"])
    return {(row["table"], row["name"]): row for row in json.loads(listed)}


def test_smoke_checks_tables_of_digits_alone(tmp_path: Path) -> None:
    for table, spec, state in (
        ("mnist", "ResNet@k=32", "agrees"),
        ("cifar10", "ResNet@k=120_120_120", "not counted"),
    ):
        put_records(tmp_path, {spec: (0.5,)}, table, "smoke", params=52_234)
        seen = results_of(tmp_path, table, "smoke")
        assert next(check_costs(seen, row)[0].state for row in seen.rows if row.results) == state


def test_short_counts() -> None:
    assert [shorten(n) for n in (12, 52_234, 8_434_000, 1_706_941_080)] == ["12", "52.23 K", "8.43 M", "1.71 G"]


def find(folder: Path, spec: str, table: str = "mnist") -> Footprint:
    seen = results_of(folder, table)
    return find_footprint(seen, next(row for row in seen.rows if row.network == spec))


def test_nothing_where_nothing_was_measured_not_even_theirs(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert find(tmp_path, "ResNet@k=32") == Footprint()
    assert format_footprint(Footprint()) == ("-",) * 5


def test_no_difference_from_another_machines_identity(tmp_path: Path) -> None:
    put_memories(tmp_path, {"ResNet@k=32": 620})
    assert find(tmp_path, "ResNet@k=32") == (767, 620, None, 2, 0.75)
    put_memories(tmp_path, {"Identity@k=32": 500}, gpu="NVIDIA A100")
    assert find(tmp_path, "ResNet@k=32").above is None
    put_memories(tmp_path, {"Identity@k=32": 630})
    assert format_footprint(find(tmp_path, "ResNet@k=32")) == ("767", "620", "-10", "2", "0.75")
    assert find(tmp_path, "Identity@k=32") == (None, 630, 0, 2, 0.75)


@pytest.mark.parametrize("table", ["mnist", "cifar10", "cifar100", "svhn"])
def test_every_cell_of_the_papers_column_is_found(tmp_path: Path, table: str) -> None:
    put_memories(tmp_path, {TABLES[table].control: 600}, data=TABLES[table].data)
    seen = results_of(tmp_path, table)
    theirs = [find_footprint(seen, row).printed for row in seen.rows]
    place = "tb:MNIST" if table == "mnist" else "tb:cifar"
    printed = [cell.printed for cell in cells(place) if cell.column == "memory"]
    assert theirs == [*(None if text == "-" else float(text) for text in printed), None]  # Identity is ours
