"""Training error beside test error where evaluations of f share the running statistics of a batch norm."""

from __future__ import annotations

from pathlib import Path

from measured_norms import put_measured
from report.records import put_records
from rkcnn.report.published import report_published, write_readme_part
from rkcnn.report.results import read_records
from rkcnn.report.shared_norms import (
    NO_PAIRS,
    NONE_MEASURED,
    NOT_RUN,
    write_measured_norms,
    write_separate_norms,
    write_shared_norms,
)

RKNN, RESNET = "RKNN-rk4_38@k=120_120_120", "ResNet@k=120_120_120"


def write(folder: Path) -> str:
    return write_shared_norms(report_published(read_records(folder)[0]))


def test_networks_that_share_most_come_first(tmp_path: Path) -> None:
    put_records(tmp_path, {RESNET: (0.06, 0.08), "Identity@k=120_120_120": (0.3,)}, "cifar10", "fast", evaluations=3)
    for folder in put_records(tmp_path, {RKNN: (0.16, 0.20)}, "cifar10", "fast", evaluations=12):
        put_measured(folder, each=61)
    assert write(tmp_path).splitlines()[2:] == [
        "| CIFAR-10, fast-cifar | RKNN (4th-order ERK) | 4 | 9.00 | 18.00 | 9.00 | 6.10 |",
        "| CIFAR-10, fast-cifar | pre-act ResNet | 1 | 3.50 | 7.00 | 3.50 | - |",
    ]


def test_a_table_in_which_none_shares_is_left_out(tmp_path: Path) -> None:
    put_records(tmp_path, {RESNET: (0.06, 0.08), "DenseNet-2_2_2@k=120": (0.07,)}, "cifar10", "fast", evaluations=3)
    put_records(tmp_path, {"RKNN-rk4_38@k=32": (0.004,), "ResNet@k=32": (0.004,)}, evaluations=4)  # group norm in f
    assert write(tmp_path) == NOT_RUN


def compare_kinds(folder: Path) -> str:
    return write_separate_norms(report_published(read_records(folder)[0]))


def test_both_kinds_are_compared_seed_by_seed(tmp_path: Path) -> None:
    shared, each = "RKNN-rk4_38@k=32,norm=bn", "RKNN-rk4_38@k=32,norm=bn,statistics=each"
    put_records(tmp_path, {shared: (0.005, 0.006, 0.009), each: (0.004, 0.0054)}, "norms", "fast")
    put_records(tmp_path, {RKNN: (0.18,), f"{RKNN},statistics=each": (0.07,)}, "statistics", "fast")
    ode = "ODENet-ab@k=32,norm=bn"
    put_records(tmp_path, {ode: (0.007,), f"{ode},statistics=each": (0.006,)}, "norms", "fast")
    assert compare_kinds(tmp_path).splitlines()[2:] == [
        f"| MNIST, fast-mnist | {shared} | 2 | 0.235 | 0.550 | 0.470 | -0.080 (-0.334 to +0.174) |",
        f"| MNIST, fast-mnist | {ode} | 1 | 0.300 | 0.700 | 0.600 | -0.100 |",
        "| MNIST, fast-mnist | all of these | 3 | 0.257 | 0.600 | 0.513 | -0.087 (-0.144 to -0.029) |",
        f"| CIFAR-10, fast-cifar | {RKNN} | 1 | 3.50 | 18.00 | 7.00 | -11.00 |",
    ]


def test_one_kind_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {RKNN: (0.18,), "ResNet@k=120_120_120": (0.07,)}, "cifar10", "fast")
    assert compare_kinds(tmp_path) == NO_PAIRS


def test_the_same_weights_are_set_beside_others_of_the_table(tmp_path: Path) -> None:
    small = {RKNN: (0.16, 0.20), RESNET: (0.06, 0.08), "RKCNN-I-2_2_2@k=78_78_80": (0.05,)}
    folders = put_records(tmp_path, small, "cifar10", "fast", evaluations=12, params=800_000)
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.04,)}, "cifar10", "fast", evaluations=12, params=1_900_000)
    for folder, each in zip(folders[:2], (61, 65), strict=True):
        put_measured(folder, each)
    report = report_published(read_records(tmp_path)[0])
    assert write_measured_norms(report).splitlines()[2:] == [
        "| CIFAR-10, fast-cifar | RKNN (4th-order ERK) (800.00 K, 2 runs) | 18.00 | 18.00 | 19.00 | 6.30 | -0.70 "
        "(-11.60 to +10.20); pre-act ResNet: 7.00 % (800.00 K, 2 runs) | +1.30 (no interval); "
        "RKCNN-I-2_2_2 k=78_78_80: 5.00 % (800.00 K, 1 run) |",
    ]


def test_a_readme_cell_has_both_errors_if_all_runs_were_measured(tmp_path: Path) -> None:
    first, second, _ = put_records(tmp_path, {RKNN: (0.16, 0.20), RESNET: (0.06,)}, "cifar10", "fast", evaluations=12)
    put_measured(first, each=61)
    assert "| 18.00 ± 2.83 (n = 2) |" in write_readme_part(report_published(read_records(tmp_path)[0]))
    put_measured(second, each=65)
    text = write_readme_part(report_published(read_records(tmp_path)[0]))
    assert "| 18.00 ± 2.83 (n = 2) (6.30 with statistics for each evaluation) |" in text


def test_what_shares_nothing_has_no_other_error(tmp_path: Path) -> None:
    errors = {RESNET: (0.06,), "Identity@k=120_120_120": (0.3,)}
    for folder in put_records(tmp_path, errors, "cifar10", "fast", evaluations=12):
        put_measured(folder, each=50)
    assert write_measured_norms(report_published(read_records(tmp_path)[0])) == NONE_MEASURED


def test_a_damaged_record_is_named_with_the_results(tmp_path: Path) -> None:
    (folder,) = put_records(tmp_path, {RKNN: (0.16,)}, "cifar10", "fast", evaluations=12)
    (folder / "errors-by-statistics.json").write_text("{")
    (trouble,) = read_records(tmp_path)[1]
    assert "errors-by-statistics.json can't be read" in str(trouble)
