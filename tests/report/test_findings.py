"""The tables of docs/findings.md and the pages beside it, from records; and that the pages are current."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from scipy import stats

from footprints import put_memories
from report.records import ERRORS, put_records, words_of
from rkcnn.error import InputError
from rkcnn.record.memory import read_memories
from rkcnn.record.tables import TABLES
from rkcnn.report.figures.style import render
from rkcnn.report.findings import (
    NONE_YET,
    WRITERS,
    draw_pictures,
    markers,
    write_apart,
    write_cost,
    write_implicit,
    write_memory,
    write_noise,
    write_open,
    write_order,
    write_pages,
    write_step,
)
from rkcnn.report.published import report_published
from rkcnn.report.readme import replace_between
from rkcnn.report.report import Report
from rkcnn.report.results import read_records
from rkcnn.report.similar_size import write_size

ROOT = Path(__file__).parents[2]
CONTROLLED = {**ERRORS, "Identity@k=32": (0.0060, 0.0061, 0.0059)}


def published(folder: Path) -> Report:
    return report_published(read_records(folder)[0], read_memories(folder)[0])


def test_the_pages_are_current() -> None:
    stale = "run python -m rkcnn.report.findings"
    report = published(ROOT / "results")
    for name, writers in WRITERS.items():
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for part, write in writers.items():
            assert replace_between(page, markers(part), write(report)) == page, stale
    pictures = draw_pictures(report)
    assert {path.name for path in pictures} == {path.name for path in (ROOT / "docs").glob("findings*.svg")}, stale
    for path, figure in pictures.items():
        drawn, kept = render(figure, "svg").decode(), (ROOT / path).read_text(encoding="utf-8")
        assert words_of(drawn) == words_of(kept), stale


def test_what_moves_an_error(tmp_path: Path) -> None:
    put_records(tmp_path, CONTROLLED)
    means = [fmean(values) for values in ERRORS.values()]
    squares = sum((len(values) - 1) * stats.tvar(values) for values in ERRORS.values())
    spread = (squares / sum(len(values) - 1 for values in ERRORS.values())) ** 0.5
    row = write_noise(published(tmp_path)).splitlines()[-1]
    assert row == (
        f"| MNIST, paper-mnist | 0.020 (0.020 to 0.020) | 0 of 24 | {100 * spread:.3f} | "
        f"{100 * (fmean(means) * (1 - fmean(means)) / 10_000) ** 0.5:.3f} | "
        f"{100 * min(means):.3f} to {100 * max(means):.3f} |"
    )


def test_single_runs_have_no_spread_and_no_tests(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet-bottleneck@k=32": (0.002,), "RKCNN-R-2@k=32": (0.006,)})
    report = published(tmp_path)
    assert "| MNIST, paper-mnist | 0.020 (0.020 to 0.020) | 0 of 2 | 0.063 | 0.200 to 0.600 |" in write_noise(report)
    assert write_order(report).splitlines()[-1].startswith("| MNIST, paper-mnist | 2 | -0.017 (standard error 0.289) |")
    assert "told apart by our runs" not in write_order(report), "nothing could be tested"


def test_the_order_at_best_epochs(tmp_path: Path) -> None:
    put_records(tmp_path)
    head, _, row = write_order(published(tmp_path)).splitlines()
    assert "| rank correlation | pairs | in the paper's order |" in head
    assert row == "| MNIST, paper-mnist | 5 | +0.016 (standard error 0.004) | 0.90 | 10 | 9 | 5 | 5 | 5 | 4 |"


def test_the_worth_of_a_step(tmp_path: Path) -> None:
    put_records(tmp_path, CONTROLLED, params=52_234)
    explicit, row = write_step(published(tmp_path)).splitlines()[-2:]
    assert "| RKCNN-E-2 k=32: 0.388 % (52.23 K) |" in explicit
    assert row.startswith(
        "| MNIST | Identity@k=32: 0.600 % (52.23 K, 3 runs) | pre-act ResNet: 0.402 % (52.23 K) | RKCNN-R-2 k"
    )
    test = stats.ttest_ind(ERRORS["ResNet@k=32"], CONTROLLED["Identity@k=32"], equal_var=False)
    low, high = test.confidence_interval()
    assert f"| -0.198 ({100 * low:+.3f} to {100 * high:+.3f}): 33 % fewer errors |" in row


def test_without_the_control_the_step_waits(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert write_step(published(tmp_path)) == NONE_YET


def test_pairs_of_similar_size_are_told_apart_after_correction(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-E-2@k=32": (0.003, 0.0031, 0.0032), "ResNet@k=32": (0.005, 0.0051, 0.0052)}, params=9)
    put_records(tmp_path, {"RKCNN-I-2@k=32": (0.003, 0.0033)}, params=9)
    told = write_size(published(tmp_path)).splitlines()[-1]
    assert told == "After Holm's correction for all 3 pairs, these are told apart: RKCNN-E-2 k=32 and pre-act ResNet."


def test_who_is_told_apart_of_like_size_and_norm(tmp_path: Path) -> None:
    assert write_apart(published(tmp_path)) == NONE_YET
    sizes = {"RKCNN-E-2@k=32": (0.003, 0.0031, 0.0032), "ResNet@k=32": (0.005, 0.0051, 0.0052)}
    put_records(tmp_path, sizes, preset="fast", params=9)
    errors = {"RKCNN-R-2@k=32,norm=bn": (0.004, 0.0041), "ResNet@k=32,norm=bn": (0.004, 0.0042)}
    put_records(tmp_path, errors, "norms", "fast")
    assert write_apart(published(tmp_path)).splitlines() == [
        "- Of similar size: by Welch's test, these are told apart: RKCNN-E-2 k=32 and pre-act ResNet.",
        "- With the same norm: by Welch's test, none is told apart.",
    ]


def test_explicit_and_refined_of_the_same_width_and_what_is_missing(tmp_path: Path) -> None:
    odes = {"ODENet-ab@k=32": (0.004,), "ODENet-abm@k=32": (0.0045, 0.0045), "RKNet-radau3@k=32": (0.004, None)}
    errors = {**ERRORS, **odes, "RKCNN-I-2@k=32": (0.0035, None), "RKCNN-I-2@k=26": (0.003, 0.0031)}
    put_records(tmp_path, errors, params=2_000)
    text = write_implicit(published(tmp_path))
    explicit = "ODE-Net (4th-order explicit): 0.400 % (2.00 K, 1 run)"
    implicit = "ODE-Net (4th-order implicit): 0.450 % (2.00 K, 2 runs)"
    assert f"| MNIST, paper-mnist | {explicit} | {implicit} | +0.050 (no interval) |" in text
    assert "k=26" not in text, "a narrower network is no partner"
    assert text.endswith(
        "\n\nWithout such a pair so far: RK-Net (implicit) on MNIST (1 of 2 runs diverged), RKCNN-I on MNIST (1 of 2 "
        "runs diverged)."
    )


def test_what_is_not_run_yet(tmp_path: Path) -> None:
    first, second, *others = TABLES["mnist"].specs
    put_records(tmp_path, {**dict.fromkeys(others, (0.004,) * 5), second: (0.004,) * 3})
    assert first == "ResNet-bottleneck@k=32"
    assert write_open(published(tmp_path)) == (
        "- MNIST by the paper's recipe: pre-act ResNet (bottleneck), pre-act ResNet (2 of 5 runs).\n"
        "- CIFAR-10, CIFAR-100 and SVHN: every network."
    )


def test_the_frontier_is_named_and_drawn(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.0041)}, params=52_234, flops=8_000_000)
    put_records(tmp_path, {"DenseNet-2@k=32": (0.005, 0.0051)}, params=56_266, flops=7_000_000)
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.003, 0.0031)}, params=1_500_000, flops=2_000_000_000)
    lines = write_cost(published(tmp_path)).splitlines()
    assert lines[0] == "- MNIST, by parameters: pre-act ResNet (52.23 K; 0.405 %), RKCNN-R-2 k=32 (1.50 M; 0.305 %)."
    assert lines[1].startswith("- MNIST, by FLOPs: DenseNet (T = 2) (7.00 M; 0.505 %), pre-act ResNet (8.00 M; 0.405")
    assert lines[-1].endswith("(findings-mnist.svg)")
    assert [path.name for path in draw_pictures(published(tmp_path))] == ["findings-mnist.svg"]


def test_memory_is_that_of_the_networks_that_the_paper_measured(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert write_memory(published(tmp_path)) == NONE_YET
    sizes = {"ResNet@k=32": 718, "RKCNN-R-2@k=32": 720, "RKNet-radau3@k=32": 816, "Identity@k=32": 717}
    put_memories(tmp_path, sizes)
    row = write_memory(published(tmp_path)).splitlines()[-1]
    assert row == "| MNIST | 17 | 747 to 767 MiB | 718 to 720 MiB | 1 to 3 MiB | 1 MiB |"


def test_the_pages_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    put_records(tmp_path / "results")
    empty = {
        tmp_path / name: "\n".join(line for part in parts for line in markers(part)) for name, parts in WRITERS.items()
    }
    for page, text in empty.items():
        page.write_text(text)
    last = tmp_path / "batch-norm.md"
    last.write_text("")
    with pytest.raises(InputError, match=r"lacks <!-- shared"):
        list(write_pages(str(tmp_path), str(tmp_path / "results")))
    assert all(page.read_text() == text for page, text in empty.items() if page != last)
    last.write_text(empty[last])
    (tmp_path / "results" / "result.json").write_text("{")
    (trouble,) = write_pages(str(tmp_path), str(tmp_path / "results"))
    assert "can't be read" in trouble
    assert "| MNIST, paper-mnist | 5 | +0.016" in (tmp_path / "findings.md").read_text()
    assert (tmp_path / "findings-mnist.svg").exists()


def test_networks_that_share_running_statistics_say_nothing_of_others_noise(tmp_path: Path) -> None:
    two = {"ResNet@k=120_120_120": (0.06, 0.07), "DenseNet-2_2_2@k=120": (0.06, 0.065)}
    put_records(tmp_path, two, "cifar10", "fast", evaluations=3)
    alone = write_noise(published(tmp_path))
    put_records(tmp_path, {"RKNN-rk4_38@k=120_120_120": (0.16, 0.20)}, "cifar10", "fast", evaluations=12)
    assert write_noise(published(tmp_path)) == alone
