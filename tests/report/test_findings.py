"""What the runs show and what they can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import ERRORS, put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.compare import compare
from rkcnn.report.findings import Statement, agree_with_paper, say_coverage, say_limits, say_shown
from rkcnn.report.footnotes import NORMS
from rkcnn.report.view import view


def say(folder: Path, table: str = "mnist") -> tuple[str, list[Statement], list[str]]:
    seen = view(TABLES[table], folder)
    contrasts = compare(seen)
    return say_coverage(seen, contrasts), list(say_shown(seen, contrasts)), say_limits(seen, contrasts)


def test_a_table_with_comparisons(tmp_path: Path) -> None:
    put_records(tmp_path)
    coverage, (against_paper, among), (sampling, norms) = say(tmp_path)
    assert coverage == (
        "24 runs of 5 of 19 networks. Against RKCNN-R-2 k=32, 2 of 4 err more, none less; 2 can't be told apart."
    )
    assert against_paper.text.startswith("Counted as the paper counts, our means lie +0.004 to +0.028 points from")
    assert [word for word, _ in among.groups] == ["err more", "not separable"]
    assert sampling.startswith("Intervals are over seeds")
    assert norms == NORMS


def test_one_run_is_nothing_to_compare(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.0586,)}, "cifar10", "fast")
    coverage, shown, (single,) = say(tmp_path, "cifar10")
    assert coverage == (
        "1 run of 1 of 17 networks; nothing to compare yet: RKCNN-I-2_2_2 k=120 and another row need two finished runs "
        "each, none diverged."
    )
    assert shown == []
    assert single.startswith("RKCNN-I-2_2_2 k=120 is one run: 5.86 %")


@pytest.mark.parametrize(("preset", "said"), [("paper", True), ("fast", False)])
def test_other_recipes_are_not_set_against_the_paper(tmp_path: Path, preset: str, said: bool) -> None:
    put_records(tmp_path, preset=preset)
    assert bool(agree_with_paper(view(TABLES["mnist"], tmp_path))) == said


def test_smoke_compares_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31)}, preset="smoke")
    coverage, shown, limits = say(tmp_path)
    assert coverage == (
        "2 runs of 1 of 19 networks; nothing to compare: smoke says nothing about accuracy, with however many seeds."
    )
    assert (shown, limits) == ([], [])


def test_each_reference_has_its_sentence(tmp_path: Path) -> None:
    specs = ("RKCNN-R-2@k=32,norm=bn", "RKCNN-R-2@k=32,norm=gn", "ResNet@k=32", "ResNet@k=32,norm=bn")
    put_records(tmp_path, dict.fromkeys(specs, (0.003, 0.0032)), "norms")
    _, shown, _ = say(tmp_path, "norms")
    assert ["norm=gn" in statement.text for statement in shown] == [True, False]
    assert all("Holm's correction for 2 comparisons" in statement.text for statement in shown)


def test_what_diverged_is_said(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "Identity@k=32": (0.006, None)})
    _, shown, _ = say(tmp_path)
    assert shown[1].text.startswith("1 of 2 runs of Identity@k=32 diverged")
