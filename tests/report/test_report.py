"""A report is computed once, whoever renders it, and is not bound to the paper's tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.text import Text

from outcome import outcome
from report.records import put_records, results_of
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.result import Result, Stretch
from rkcnn.report.files import write_files
from rkcnn.report.report import build_report, find_origins
from rkcnn.report.results import ResultTable, read_records
from rkcnn.report.row import Row
from rkcnn.report.tables.csv import table_csv
from rkcnn.report.tables.markdown import table_markdown
from rkcnn.report.tables.text import table_text


def test_claims_are_those_of_each_preset_and_table(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast")
    tables = [results_of(tmp_path, name) for name in ("mnist", "sota-mnist", "cifar10")]
    found = build_report(tables, read_records(tmp_path)[0])
    assert list(found.claims) == ["paper", "fast"]
    spoken = [{judged.claim.id for judged in found.claims_of(part)} for part in found.tables]
    assert "bottleneck" in spoken[0]
    assert spoken[1] == {"params-share"}
    assert build_report([results_of(tmp_path)]).claims == {}


def own_table(**errors: tuple[float, ...]) -> ResultTable:
    """Networks that no table of the paper has, on the digits, by a recipe of our own."""
    recipe = find_recipe("mini")

    def run(name: str, seed: int, error: float) -> Result:
        made = outcome((0.5, error - 0.001, error))
        return replace(made, run=replace(made.run, network=name, seed=seed, recipe=recipe))

    rows = tuple(
        Row(
            network=name,
            family="ResNet",
            label=name,
            params=1000 * (i + 1),
            flops=10_000 * (i + 1),
            printed=None,
            results=tuple(run(name, seed, error) for seed, error in enumerate(values)),
            diverged=(),
            missing=0,
        )
        for i, (name, values) in enumerate(errors.items())
    )
    return ResultTable("own", "three networks of our own", "mnist-mini", recipe, rows, dict.fromkeys(errors, "b"), 2000)


def test_any_runs_on_the_same_data_make_a_report(tmp_path: Path) -> None:
    found = build_report([own_table(a=(0.05, 0.06, 0.055), b=(0.03, 0.031, 0.032), c=(0.03, 0.033, 0.031))])
    (part,) = found.tables
    assert [comparison.row.network for comparison in part.comparisons] == ["a", "c"]
    assert part.comparisons[0].separable
    assert part.coverage == "9 runs of 3 of 3 networks. Against b, 1 of 2 err more, none less; 1 can't be told apart."
    assert found.runs == 9
    text = table_text(part)
    assert text.startswith("own: three networks of our own; mini in fp32, 9 runs\n")
    assert "paper" not in text.replace("by the paper's rule", "")
    assert "is compared with b (the reference)" in " ".join(text.split())
    assert "| a | 1,000 |" in table_markdown(part)
    assert table_csv(part).startswith("table,preset,recipe,")
    names = {path.name for path in write_files(found, tmp_path)}
    assert {"own.md", "own.csv", "own-forest.svg", "own-frontier-params.png", "report.html"} <= names


def test_with_validation_runs_nothing_is_called_a_test(tmp_path: Path) -> None:
    table = own_table(a=(0.05, 0.06, 0.055), b=(0.03, 0.031, 0.032), c=(0.03, 0.033, 0.031))
    data = "mnist-mini~validation-500"
    rows = tuple(
        replace(row, results=tuple(replace(each, run=replace(each.run, data=data)) for each in row.results))
        for row in table.rows
    )
    (part,) = build_report([replace(table, data=data, rows=rows)]).tables
    text = table_text(part)
    assert "chosen on the validation set" in text
    assert not [word for word in ("test set", "test images", "test error") if word in text]
    for figure in part.figures.values():
        words = [artist.get_text() for artist in figure.findobj(Text) if isinstance(artist, Text)]
        assert not [word for word in words if "test " in word]


def test_equal_origins_are_counted_and_the_most_runs_come_first() -> None:
    gpu: dict[str, Any] = {
        "versions": {"rkcnn": "0.1.0", "torch": "2.11.0"},
        "machine": {"gpu": "NVIDIA H200"},
        "stretches": (Stretch(commit="abc+", source="0123456789abcdef", hash_version=2, epochs=3),),
    }
    made = [outcome(), outcome(**gpu), outcome(**gpu), outcome(**gpu, engine="graph")]
    made = [replace(result, run=replace(result.run, seed=seed)) for seed, result in enumerate(made)]
    first, *others = find_origins(made)
    assert (first.runs, first.commit, first.torch, first.machine) == (2, "abc+", "2.11.0", "NVIDIA H200")
    assert [origin.runs for origin in others] == [1, 1]
    assert sum(origin.runs for origin in find_origins(made)) == len(made)


def test_what_a_record_does_not_say_is_unknown() -> None:
    (origin,) = find_origins([outcome(machine={"gpu": None, "processor": "x86_64", "threads": 2})])
    assert (origin.commit, origin.torch, origin.machine) == ("unknown", "unknown", "x86_64, 2 threads")
    assert origin.source == "0123456789abcdef"


def test_no_records_no_origins() -> None:
    assert find_origins([]) == []


def test_a_run_of_several_tables_counts_once() -> None:
    other = replace(outcome(), run=replace(outcome().run, seed=1))
    (origin,) = find_origins([outcome(), other, outcome(), outcome()])
    assert origin.runs == 2


def test_a_run_that_another_version_continued_lists_both() -> None:
    stretches = (
        Stretch(epochs=123, commit="037bf535bfd0" + "0" * 28, source="0123456789abcdef", hash_version=1),
        Stretch(epochs=37, commit=None, source="fedcba9876543210", hash_version=2),
    )
    (origin,) = find_origins([outcome(stretches=stretches)])
    assert origin.commit == "037bf535bfd0 (123 epochs), then unknown (37 epochs)"
    assert origin.source == "0123456789abcdef (123 epochs), then fedcba9876543210 (37 epochs)"
