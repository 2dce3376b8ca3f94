"""Only runs on the published images stand in a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report.records import put_records, results_of
from rkcnn.data.sets import SETS
from rkcnn.record.tables import TABLES
from rkcnn.report.any_runs import arrange_runs
from rkcnn.report.claims.judge import judge_claims
from rkcnn.report.findings import write_noise
from rkcnn.report.footnotes import note_images
from rkcnn.report.published import write_readme_part
from rkcnn.report.report import build_report
from rkcnn.report.results import build_result_table, read_records
from rkcnn.report.results_page import write_results_page

MNIST = SETS["mnist"].test


def put(folder: Path, seed: int, data: dict[str, Any], table: str = "mnist", preset: str = "paper") -> None:
    """One run of ResNet on images that are described so."""
    spec = "ResNet@k=32" if table == "mnist" else "ResNet@k=120_120_120"
    run = replace(TABLES[table].runs(preset, spec, 1)[0], seed=seed)
    put_records(folder / str(seed), {spec: (0.004,)}, table, preset, run=run, data=data)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({}, "its record does not say that mnist was verified to be the published set"),
        ({"verified": False}, "its record does not say that mnist was verified to be the published set"),
        ({"verified": True, "test_sha256": "0" * 64}, "mnist had other test images than the published set"),
        (
            {"verified": True, "train_sha256": "1", "test_labels_sha256": "2"},
            "mnist had other training images and labels of the test images than the published set",
        ),
    ],
)
def test_a_run_on_other_images_is_named_and_left_out(tmp_path: Path, data: dict[str, Any], fault: str) -> None:
    put(tmp_path, 0, {"verified": True, "test_sha256": MNIST.pixels, "test_labels_sha256": MNIST.labels})
    put(tmp_path, 1, data)
    records, (error,) = read_records(tmp_path)
    assert [result.run.seed for _, result in records] == [0]
    assert str(error).startswith(f"{tmp_path / '1'}/")
    assert str(error).endswith(f" is left out: {fault}; train it again on the published images")
    assert sum(len(row.results) for row in results_of(tmp_path).rows) == 1


def test_where_no_checksum_is_published_the_first_run_counts(tmp_path: Path) -> None:
    for seed, content in enumerate(("a", "a", "b", "a")):
        put(tmp_path, seed, {"verified": True, "test_sha256": content}, "svhn", "fast")
    records, (error,) = read_records(tmp_path)
    assert [result.run.seed for _, result in records] == [0, 1, 3]
    assert "svhn had other test images than the first run on svhn" in str(error)


def test_an_unverified_copy_is_reported_and_said_where_no_checksum_of_pixels_is_published(tmp_path: Path) -> None:
    for seed, content in enumerate(("a", "a", "b")):
        put(tmp_path, seed, {"verified": False, "test_sha256": content}, "svhn", "fast")
    records, (error,) = read_records(tmp_path)
    assert [result.run.seed for _, result in records] == [0, 1]
    assert "svhn had other test images than the first run on svhn" in str(error)
    results = build_result_table(TABLES["svhn"], records)
    report = build_report([results], records)
    (compared,) = build_report([arrange_runs(records)]).tables
    note = "The images of svhn were not verified to be the published ones"
    assert note in "".join(note_images(results))
    assert note in write_readme_part(report)
    assert note in write_results_page(report, records)
    assert note in write_noise(report)
    assert note in "".join(compared.notes)


def test_a_claim_says_which_set_was_not_verified(tmp_path: Path) -> None:
    errors = {"ResNet@k=120_120_120": (0.05, 0.051), "RKCNN-I-2_2_2@k=120": (0.04, 0.041)}
    put_records(tmp_path, errors, "svhn", "fast", data={"verified": False, "test_sha256": "a"})
    noted = {name for judged in judge_claims(read_records(tmp_path)[0], "fast") for name in judged.noted}
    assert noted == {"svhn"}


def test_a_record_without_a_checksum_does_not_decide_for_the_others(tmp_path: Path) -> None:
    for seed, content in enumerate(({}, {"test_sha256": "a"}, {"test_sha256": "b"})):
        put(tmp_path, seed, content, "svhn", "fast")
    records, (error,) = read_records(tmp_path)
    assert [result.run.seed for _, result in records] == [0, 1]
    assert "svhn had other test images than the first run on svhn" in str(error)


def test_verified_and_unverified_copies_are_not_mixed(tmp_path: Path) -> None:
    for seed, verified in enumerate((False, True, False, True)):
        put(tmp_path, seed, {"verified": verified, "test_sha256": "a"}, "svhn", "fast")
    records, errors = read_records(tmp_path)
    assert [result.run.seed for _, result in records] == [1, 3]
    assert len(errors) == 2
    assert "does not say that svhn was verified" in str(errors[0])
    assert list(note_images(build_result_table(TABLES["svhn"], records))) == []


def test_runs_of_no_table_may_have_any_images(tmp_path: Path) -> None:
    run = TABLES["mnist"].runs("paper", "ResNet@k=32", 1)[0]
    others = (
        replace(run, data="folder:photos"),
        replace(run, data="mnist~validation-50"),
        replace(run, network="ResNet@k=8"),
        replace(run, recipe=replace(run.recipe, lr=0.2)),
    )
    for i, other in enumerate(others):
        put_records(tmp_path / str(i), {"ResNet@k=32": (0.004,)}, run=other, data={"verified": False})
    records, left_out = read_records(tmp_path)
    assert (len(records), left_out) == (4, [])


def test_another_precision_is_no_way_round(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, precision="bf16", data={"verified": False})
    assert len(read_records(tmp_path)[1]) == 1
