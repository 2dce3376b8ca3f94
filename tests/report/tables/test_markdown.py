"""A table as Markdown."""

from __future__ import annotations

from pathlib import Path

from footprints import put_memories
from report.records import put_records, report_of
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.judge import judge_claims
from rkcnn.report.results import read_records
from rkcnn.report.tables.markdown import short_table, table_markdown


def test_one_table_with_the_papers_columns_first(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234, paper_flops=8_434_000)
    judged = judge_claims(read_records(tmp_path)[0], "paper")
    text = table_markdown(report_of(tmp_path), judged)
    assert (
        "| pre-act ResNet | 52,234 | 8.434 M | agree | 0.33 (0.372 ± 0.031) | 0.402 ± 0.019 | 5 "
        "| 0.36 (0.382 ± 0.019) | +0.030 | +0.010 |\n"
    ) in text
    assert "| RKNN (4th-order ERK) | 52.36 K | 12.44 M | the paper's | 0.35 (0.378 ± 0.024) | not run yet |" in text
    assert (
        "| RKCNN-I-2 k=32 | 52,234 | 8.434 M | params: differs (paper 78.41 K), FLOPs: differs (paper 10.27 M) |"
    ) in text
    assert "| params | FLOPs (paper's rule) | costs |" in text
    assert "| n | ours, best epoch (chosen on the test set) |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(TABLES["mnist"].specs)
    assert len({line.count("|") for line in rows}) == 1
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# mnist",
        "## Comparisons",
        "## The paper's claims",
    ]


def test_stars_stay_stars(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNet-64": (0.0042,)}, "sota-mnist")
    text = table_markdown(report_of(tmp_path, "sota-mnist"))
    assert "| 0.47\\* |" in text
    assert "- \\* The paper quotes" in text


def test_smoke_is_marked(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    text = table_markdown(report_of(tmp_path))
    assert "**SMOKE: 40 steps on mnist-mini; says nothing about accuracy**" in text
    assert "| ours, last epoch (SMOKE) |" in text
    assert text.count("\n| SMOKE ") == len(TABLES["mnist"].specs)


def test_the_short_form_has_what_was_run(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005), "RKNet-radau3@k=32": (None,)}, params=52_234)
    assert short_table(report_of(tmp_path)).splitlines()[2:] == [
        "| pre-act ResNet | 52,234 | 0.33 (0.372 ± 0.031) | 0.38 (0.430 ± 0.071) | 0.450 ± 0.071 | 2/5 |",
        "| RK-Net (5th-order IRK) | 52,234 | N/A | - | diverged | 0/5, 1 diverged |",
    ]


def test_memory_stands_last_where_it_was_measured(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "memory, paper" not in table_markdown(report_of(tmp_path))
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    text = table_markdown(report_of(tmp_path))
    assert "| memory, paper | memory, driver | driver − Identity | torch reserved | torch allocated |\n" in text
    assert "| +0.030 | +0.010 | 767 | 620 | +8 | 2 | 0.75 |\n" in text
