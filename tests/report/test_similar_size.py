"""Networks that are compared because they have about as many parameters."""

from __future__ import annotations

from pathlib import Path

from report.records import put_records, results_of
from rkcnn.report.similar_size import pair_by_size


def test_parameters_choose_the_pairs(tmp_path: Path) -> None:
    sizes = {
        "ResNet@k=32": 52_234,
        "ResNet-bottleneck@k=32": 34_858,
        "RKCNN-I-2@k=26": 52_010,
        "RKCNN-E-2@k=30": 48_850,
    }
    for name, params in {**sizes, "RKCNN-R-2@k=32": 78_410, "Identity@k=32": 50_000}.items():
        put_records(tmp_path, {name: (0.004, 0.0041)}, params=params)
    pairs = [(one.network, two.network) for one, two in pair_by_size(results_of(tmp_path).rows)]
    assert pairs == [
        ("RKCNN-E-2@k=30", "ResNet@k=32"),
        ("RKCNN-I-2@k=26", "ResNet@k=32"),
        ("RKCNN-I-2@k=26", "RKCNN-E-2@k=30"),
    ], "the widest has none that is near, and the control is no rival"


def test_what_diverged_is_no_partner(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-E-2@k=32": (0.004, 0.0041), "ResNet@k=32": (0.004, None)}, params=50_000)
    assert list(pair_by_size(results_of(tmp_path).rows)) == []
