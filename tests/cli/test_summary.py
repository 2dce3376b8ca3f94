"""Runs and tables in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.cli.summary import (
    WARNINGS,
    describe_plan,
    describe_table,
    roughly,
    suggest_next,
    summarise_runs,
    summarise_table,
)
from rkcnn.error import InputError
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, NEW
from rkcnn.record.tables import TABLES


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "seconds"),
        (44, "seconds"),
        (46, "1 minute"),
        (100, "2 minutes"),
        (1337, "20 minutes"),
        (2600, "40 minutes"),
        (2760, "1 hour"),
        (4407, "1 hour"),
        (9000, "2 hours"),
        (12 * 3600, "10 hours"),
        (20 * 3600, "1 day"),
        (3.4 * 86400, "3 days"),
        (1234 * 86400, "1,000 days"),
    ],
)
def test_an_estimate_has_one_significant_digit(seconds: float, text: str) -> None:
    assert roughly(seconds) == text


def test_the_commands_that_use_the_network_are_suggested(trained: Path) -> None:
    lines = list(suggest_next(read_result(trained / "result.json"), trained))
    for line, command in zip(lines, ("evaluate", "predict", "runs"), strict=True):
        assert f"rkcnn {command} " in line


def test_what_repeats_a_run_names_the_weights_that_it_started_from(trained: Path) -> None:
    result = read_result(trained / "result.json")
    assert any("rkcnn train --config FILE repeats the run" in line for line in summarise_runs([result], [trained]))
    recipe = replace(result.run.recipe, initial_weights="22ec07331e8f")
    tuned = replace(
        result, run=replace(result.run, recipe=recipe), data={**result.data, "init_from": "RKCNN-R-2@k=32.mnist"}
    )
    said = "rkcnn train --config FILE --init-from RKCNN-R-2@k=32.mnist repeats the run"
    assert any(said in line for line in summarise_runs([tuned], [trained]))
    nameless = replace(tuned, data=result.data)
    assert any("--config FILE --init-from ... repeats" in line for line in summarise_runs([nameless], [trained]))


def runs(preset: str, rows: str, seeds: int) -> tuple[Run, ...]:
    return tuple(TABLES["mnist"].runs(preset, rows, seeds))


def test_what_will_happen_in_plain_numbers() -> None:
    lines = list(describe_table(TABLES["mnist"], "paper", runs("paper", "RKCNN-R*", 5), "15 new"))
    assert lines[1] == "runs      3 networks x 5 seeds on mnist, recipe paper-mnist in fp32; 15 new"
    lines = list(describe_table(TABLES["mnist"], "smoke", runs("smoke", "Identity*", 1), "1 new"))
    assert lines[0] == WARNINGS["smoke"]
    assert lines[2] == "runs      1 network x 1 seed on mnist-mini, recipe smoke in fp32; 1 new"


def test_a_plan_counts_what_is_left_row_by_row() -> None:
    chosen = runs("smoke", "Identity*,ResNet@*", 2)
    lines = list(describe_plan(chosen, chosen[:3], "cpu"))
    assert "seconds" in lines[3]
    assert [line.split()[2] for line in lines[1:3]] == ["2", "1"]
    assert lines[3].split()[1] == "3"


def test_a_plan_marks_what_depends_on_the_data() -> None:
    chosen = runs("smoke", "Identity*,RKNet-radau3@*", 1)
    _, implicit, plain, total, _ = describe_plan(chosen, chosen, "cpu")
    assert implicit.startswith("RKNet-radau3@k=32  ")
    assert [line.count(">") for line in (implicit, plain, total)] == [2, 0, 1]


def test_errors_over_seeds_and_what_is_missing() -> None:
    one, two, three, four = runs("paper", "ResNet@*", 4)
    diverged = outcome((), status="diverged: the loss is nan", error=None, error_best=None)
    states: dict[Run, Result | str | InputError] = {
        one: replace(outcome((0.1, 0.004, 0.005)), run=one),
        two: replace(outcome((0.1, 0.003, 0.003)), run=two),
        three: diverged,
        four: NEW,
    }
    *lines, footnote = summarise_table(states)
    assert footnote == "* the lowest error of any epoch, chosen on the test set"
    assert lines[-1].split("  ")[-1] == "2 of 4, 1 diverged"
    assert "0.40 ± 0.14 %" in lines[-1]
    assert "0.35 %" in lines[-1]
    assert list(summarise_table({one: BEGUN}))[-2].split() == ["ResNet@k=32", "-", "-", "0", "of", "1"]
