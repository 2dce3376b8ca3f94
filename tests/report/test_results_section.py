"""The README's results, from records."""

from __future__ import annotations

from pathlib import Path

from report.records import put_records
from rkcnn.report.results_section import write_results
from rkcnn.report.view import read_records

def write(folder: Path) -> str:
    return write_results(read_records(folder)[0])


NONE = "No run of the paper's MNIST table by its own recipe has been published yet."


def test_a_table_what_it_shows_and_what_it_cant(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234, machine={"gpu": "NVIDIA H200"})
    text = write(tmp_path)
    assert text.startswith(
        "24 runs of 5 of the 19 rows of the MNIST table by the paper's recipe (160 epochs), on NVIDIA H200."
    )
    assert "| pre-act ResNet | 52,234 | 0.33 (0.372 ± 0.031) |" in text
    assert "our means lie +0.004 to +0.028 points from the paper's over 5 networks, 4 of them within" in text
    assert (
        "err more: pre-act ResNet (bottleneck) (+0.182, +0.143 to +0.220), pre-act ResNet (+0.050, +0.015 to +0.084); "
        "not separable: RKCNN-E-2 k=32 (+0.036, -0.001 to +0.072), RKCNN-I-2 k=32 (-0.002, -0.036 to +0.031)."
    ) in text
    assert "Not run yet: RKNN (4th-order ERK)" in text
    assert "- RKCNN-E errs more than -I and -R, everywhere: **not separable (2 of 8 comparisons)**" in text
    assert write(tmp_path) == text


def test_no_runs_are_said_in_a_sentence(tmp_path: Path) -> None:
    assert write(tmp_path) == NONE
    put_records(tmp_path, {"ResNet@k=32": (0.01,)}, pace="fast")
    assert write(tmp_path) == NONE


def test_other_tables_are_named_if_they_add_runs(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast")
    assert write(tmp_path).endswith(
        "Also in `results/`: cifar10 (fast-cifar, 1 of 51 runs, not the paper's recipe). "
        "`rkcnn report --from results` shows them."
    )
    put_records(tmp_path)
    assert "sota-mnist" not in write(tmp_path)
