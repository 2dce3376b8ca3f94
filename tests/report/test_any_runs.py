"""Any runs as a table: grouped by network, and only where data and recipe are the same."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.report.any_runs import arrange_runs
from rkcnn.report.page.page import write_page
from rkcnn.report.report import TableReport, build_report
from rkcnn.report.tables.csv import table_csv
from rkcnn.report.tables.markdown import table_markdown
from rkcnn.report.tables.text import table_text

CONTENT = dict.fromkeys(("train_sha256", "train_labels_sha256", "test_sha256", "test_labels_sha256"), "0")
RECIPE = replace(find_recipe("mini"), epochs=3)
ERRORS = {"Mine@k=8": (0.10, 0.12, 0.11), "Yours-2@k=8": (0.20, 0.23, 0.21), "ResNet@k=8": (0.14, 0.10, 0.12)}
"""Of families of steps that this package doesn't know, and of one that it knows."""


def record(spec: str, error: float | None, seed: int = 0, **changes: Any) -> Result:
    made = outcome((0.5, 0.3, error)) if error is not None else outcome((), status="diverged: nan", error=None)
    data = {**CONTENT, "held_out_images": 100, **changes.pop("data", {})}
    run = Run("folder:photos", spec, RECIPE, seed)
    return replace(made, run=replace(run, **changes), flops=10**6, data=data, machine={"gpu": None, "together": 1})


def records(errors: Mapping[str, Sequence[float | None]] = ERRORS) -> list[tuple[Path, Result]]:
    return [
        (Path(spec, f"seed-{seed}"), record(spec, error, seed))
        for spec, values in errors.items()
        for seed, error in enumerate(values)
    ]


def report(found: Sequence[tuple[Path, Result]], reference: str | None = None) -> TableReport:
    return build_report([arrange_runs(found, reference)]).tables[0]


def test_seeds_of_a_network_are_one_row_compared_with_the_first_network() -> None:
    part = report(records())
    assert [(row.network, row.family, len(row.results)) for row in part.results.rows] == [
        ("Mine@k=8", "Mine", 3),
        ("Yours-2@k=8", "Yours", 3),
        ("ResNet@k=8", "ResNet", 3),
    ]
    assert part.results.images == 100
    assert part.title == "comparison: 3 networks on folder:photos; mini,epochs=3 in fp32, 9 runs"
    yours, _ = part.comparisons
    oracle = stats.ttest_ind(ERRORS["Yours-2@k=8"], ERRORS["Mine@k=8"], equal_var=False)
    assert yours.difference.interval == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert yours.p == pytest.approx(2 * oracle.pvalue)
    assert yours.permutation
    assert yours.permutation.p == pytest.approx(0.1)


def test_another_network_can_be_the_reference() -> None:
    part = report(records(), "resnet@K=8")
    assert {comparison.reference.network for comparison in part.comparisons} == {"ResNet@k=8"}
    with pytest.raises(InputError, match=r"`reference=ResNet@k=9` given \(did you mean ResNet@k=8\?\); the"):
        report(records(), "ResNet@k=9")


def test_a_copy_of_a_run_counts_once() -> None:
    twice = [*records(), (Path("copy"), record("Mine@k=8", 0.9))]
    assert arrange_runs(twice).rows[0].errors == [0.10, 0.12, 0.11]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"data_name": "folder:other"}, "they are on different data, folder:photos and folder:other"),
        ({"data_name": "folder:photos~validation-50"}, "folder:photos and folder:photos~validation-50"),
        ({"test_sha256": "1"}, "folder:photos had other test images in the second run"),
        ({"train_labels_sha256": "1"}, "folder:photos had other labels of the training images in the second run"),
        ({"recipe": replace(find_recipe("mini"), epochs=9)}, r"their recipes \(mini\) differ in epochs \(3 and 9\)"),
        ({"recipe": find_recipe("smoke")}, r"their recipes \(mini and smoke\) differ in epochs \(3 and 1\), batch"),
    ],
)
def test_other_data_or_another_recipe_is_refused_by_name(other: dict[str, Any], said: str) -> None:
    changes: dict[str, Any] = {"recipe": other.get("recipe", RECIPE)}
    content = {name: value for name, value in other.items() if name in CONTENT}
    if "data_name" in other:
        content = {"test_sha256": "2"} if "~" not in other["data_name"] else {}
    two = record("ResNet@k=8", 0.1, data=content, **changes)
    if "data_name" in other:
        two = replace(two, run=replace(two.run, data=other["data_name"]))
    with pytest.raises(InputError, match=rf"a and b can't be compared: .*{said}.*; name runs on the same data"):
        arrange_runs([(Path("a"), record("Mine@k=8", 0.1)), (Path("b"), two)])


def test_the_same_images_by_another_path_and_a_recipe_by_another_name_are_the_same() -> None:
    two = record("ResNet@k=8", 0.1, recipe=replace(RECIPE, name="other"))
    two = replace(two, run=replace(two.run, data="folder:/home/photos"))
    assert len(arrange_runs([(Path("a"), record("Mine@k=8", 0.1)), (Path("b"), two)]).rows) == 2


def test_networks_trained_further_start_from_weights_of_their_own() -> None:
    first, second, third = (replace(RECIPE, initial_weights=digits) for digits in ("1", "2", "3"))
    mine, other = record("Mine@k=8", 0.1, recipe=first), record("ResNet@k=8", 0.1, recipe=second)
    assert len(arrange_runs([(Path("a"), mine), (Path("b"), other)]).rows) == 2
    again = record("ResNet@k=8", 0.1, 1, recipe=third)
    with pytest.raises(InputError, match=r"b and c can't be compared: .* differ in initial_weights \(2 and 3\)"):
        arrange_runs([(Path("a"), mine), (Path("b"), other), (Path("c"), again)])
    with pytest.raises(InputError, match=r"differ in initial_weights \(1 and none\)"):
        arrange_runs([(Path("a"), mine), (Path("b"), record("ResNet@k=8", 0.1))])


def test_single_runs_have_a_difference_and_are_tested_image_by_image(tmp_path: Path) -> None:
    """On a user's own images: the true classes lie beside the predictions."""
    found = []
    for spec, wrong in {"Mine@k=8": range(10), "ResNet@k=8": range(5, 23)}.items():
        said = np.zeros(100, np.int16)
        said[list(wrong)] = 1
        folder = tmp_path / spec
        folder.mkdir()
        np.save(folder / "predictions.npy", said)
        np.save(folder / "labels.npy", np.zeros(100, np.int16))
        found.append((folder, record(spec, len(wrong) / 100)))
    part = report(found)
    (pair,) = part.pairs
    assert pair.mcnemar
    assert pair.mcnemar[:2] == (13, 5)
    assert part.comparisons == ()
    (sentence,) = part.conclusions
    assert "the difference is +8.00 points, without an interval" in sentence
    assert "13 images are wrong in the first alone, 5 in the second, uncorrected p 0.096" in sentence
    (_, line) = csv.DictReader(table_csv(part).splitlines())
    assert (line["difference"], line["low"], line["only_wrong"], line["mcnemar_p"]) == ("8.0000", "", "13", "0.0963")
    text = table_text(part)
    assert "No test over seeds: Mine@k=8 and another row need two finished runs each" in text
    assert " ".join(sentence.split()) in " ".join(text.split())


def test_diverged_runs_are_told_and_not_compared() -> None:
    part = report(records({**ERRORS, "Yours-2@k=8": (0.2, None)}))
    assert [comparison.row.network for comparison in part.comparisons] == ["ResNet@k=8"]
    assert any("Yours-2@k=8 diverged with seed 1" in note for note in part.notes)


@pytest.mark.parametrize(
    ("data", "kept", "images"),
    [
        ("mnist", None, 10_000),
        ("mnist~validation-50", None, 50),
        ("folder:photos", 7, 7),
        ("folder:photos", None, None),
    ],
)
def test_the_number_of_images_of_records_that_do_not_say(
    tmp_path: Path, data: str, kept: int | None, images: int | None
) -> None:
    made = record("Mine@k=8", 0.1)
    facts = {name: value for name, value in made.data.items() if name != "held_out_images"}
    if kept is not None:
        np.save(tmp_path / "predictions.npy", np.zeros(kept, np.int16))
    assert arrange_runs([(tmp_path, replace(made, run=replace(made.run, data=data), data=facts))]).images == images


def test_the_page_and_the_table_speak_of_no_paper(tmp_path: Path) -> None:
    found = build_report([arrange_runs(records())])
    page = write_page(found, tmp_path / "report.html").read_text(encoding="utf-8")
    table = table_markdown(found.tables[0])
    for text in (table, page.partition("</style>")[2].partition("<script>")[0]):
        assert "Yours-2@k=8" in text
        assert "FLOPs (2 × MAC)" in text
        assert "the paper" not in text.lower()
        assert "paper’s" not in text
    assert page.count("<figure") == 5
