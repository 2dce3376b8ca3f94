"""Cells as the paper writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import ERRORS, put_records, report_of
from rkcnn.report.tables.cells import RowText


def text_of(folder: Path, label: str, table: str = "mnist", preset: str | None = None) -> RowText:
    return next(text for text in report_of(folder, table, preset).texts if text.label == label)


def test_a_row_with_all_its_seeds(tmp_path: Path) -> None:
    put_records(tmp_path)
    one = text_of(tmp_path, "RKCNN-I-2 k=32")
    assert one.printed == "0.29(0.316±0.033)"
    assert one.last == "0.350±0.016"
    assert one.best == "0.31(0.330±0.016)"
    assert (one.seeds, one.last_difference, one.best_difference) == ("5", "+0.034", "+0.014")


def test_missing_and_diverged_are_said(tmp_path: Path) -> None:
    errors = {"ODENet-ab@k=32": (0.004, None), "RKNet-radau3@k=32": (None,), "RKCNN-R-2@k=32": ERRORS["RKCNN-R-2@k=32"]}
    put_records(tmp_path, errors)
    some = text_of(tmp_path, "ODE-Net (4th-order explicit)")
    assert (some.last, some.seeds, some.best) == ("0.400", "1/5, 1 diverged", "0.38")
    assert (some.last_difference, some.best_difference) == ("-", "-"), "a survivor is chosen"
    none = text_of(tmp_path, "RK-Net (5th-order IRK)")
    assert (none.last, none.seeds, none.printed, none.last_difference) == ("diverged", "0/5, 1 diverged", "N/A", "-")
    assert text_of(tmp_path, "RKCNN-R-2 k=32").seeds == "4/5"
    absent = text_of(tmp_path, "pre-act ResNet")
    assert (absent.last, absent.seeds, absent.best) == ("not run yet", "0/5", "-")


def test_seeds_beyond_the_tables_are_just_more(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,) * 7, "Identity@k=32": (0.004,) * 6 + (None,)})
    assert text_of(tmp_path, "pre-act ResNet").seeds == "7"
    assert text_of(tmp_path, "Identity@k=32").seeds == "6/7, 1 diverged"


def test_a_quoted_cell_has_a_star_and_its_only_number_is_compared(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNet-64": (0.0042, 0.0044)}, "sota-mnist")
    one = text_of(tmp_path, "RK-Net (Chen et al. 2018)", "sota-mnist")
    assert (one.printed, one.best_difference) == ("0.47*", "-0.060")


def test_two_decimals_where_the_paper_has_two(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-E-2_2_2@k=120": (0.0524, 0.0518, 0.0530)}, "cifar10")
    one = text_of(tmp_path, "RKCNN-E-2_2_2", "cifar10")
    assert (one.last, one.best, one.last_difference) == ("5.24±0.06", "5.16(5.22±0.06)", "+0.00")


@pytest.mark.parametrize("preset", ["fast", "smoke"])
def test_other_recipes_are_not_compared_with_the_paper(tmp_path: Path, preset: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset=preset)
    one = text_of(tmp_path, "pre-act ResNet")
    assert one.printed == "0.33(0.372±0.031)", "for orientation"
    one = one._replace(last=f"{float(one.last):.2f}", seeds=one.seeds.partition("/")[0])
    assert (one.last, one.seeds, one.last_difference, one.best_difference) == ("30.00", "1", "-", "-")
