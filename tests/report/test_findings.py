"""The tables of docs/findings.md, from records; and that the page is current."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from scipy import stats

from report.records import ERRORS, put_records
from rkcnn.error import InputError
from rkcnn.record.memory import read_memories
from rkcnn.report.figures.style import render
from rkcnn.report.findings import (
    PAGE,
    WRITERS,
    draw_pictures,
    find_order,
    markers,
    write_cost,
    write_implicit,
    write_memory,
    write_noise,
    write_page,
    write_step,
)
from rkcnn.report.published import report_published
from rkcnn.report.readme import replace_between
from rkcnn.report.report import Report
from rkcnn.report.results import read_records

ROOT = Path(__file__).parents[2]
CONTROLLED = {**ERRORS, "Identity@k=32": (0.0060, 0.0061, 0.0059)}


def published(folder: Path) -> Report:
    return report_published(read_records(folder)[0], read_memories(folder)[0])


def test_the_page_is_current() -> None:
    stale = "run python -m rkcnn.report.findings"
    report = published(ROOT / "results")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    for name, write in WRITERS.items():
        assert replace_between(page, markers(name), write(report)) == page, stale
    pictures = draw_pictures(report)
    assert {path.name for path in pictures} == {path.name for path in (ROOT / "docs").glob("findings*.svg")}, stale
    for path, figure in pictures.items():
        drawn, kept = render(figure, "svg").decode(), (ROOT / path).read_text(encoding="utf-8")
        assert drawn.count("<text") == kept.count("<text"), stale


def test_pairs_are_told_apart_by_welch_and_holm(tmp_path: Path) -> None:
    """The oracle is scipy's, with Holm's correction written out."""
    put_records(tmp_path)
    (part,) = published(tmp_path).tables
    pairs = list(combinations(ERRORS.values(), 2))
    p_values = sorted(stats.ttest_ind(one, two, equal_var=False).pvalue for one, two in pairs)
    apart = 0
    for i, p in enumerate(p_values):
        if p * (len(p_values) - i) >= 0.05:
            break
        apart += 1
    found = find_order(part)
    assert (found.networks, found.pairs, found.by_ours) == (5, 10, apart)
    assert 0 < found.agreeing <= found.by_ours
    assert found.by_paper > 0


def test_an_order_against_the_papers_is_counted(tmp_path: Path) -> None:
    """In the paper the bottleneck errs more than the RKCNN-R; here it errs less."""
    put_records(tmp_path, {"ResNet-bottleneck@k=32": (0.002, 0.0021), "RKCNN-R-2@k=32": (0.006, 0.0061)})
    (part,) = published(tmp_path).tables
    found = find_order(part)
    assert (found.pairs, found.by_ours, found.agreeing) == (1, 1, 0)


def test_single_runs_are_not_told_apart(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet-bottleneck@k=32": (0.002,), "RKCNN-R-2@k=32": (0.006,)})
    (part,) = published(tmp_path).tables
    assert find_order(part).by_ours == 0
    assert "| - | 0.063 | 0.200 to 0.600 |" in write_noise(published(tmp_path))


def test_what_moves_an_error(tmp_path: Path) -> None:
    put_records(tmp_path, CONTROLLED)
    means = [fmean(values) for values in ERRORS.values()]
    spread = fmean(stats.tstd(values) ** 2 for values in CONTROLLED.values()) ** 0.5
    row = write_noise(published(tmp_path)).splitlines()[-1]
    assert row == (
        f"| MNIST, paper-mnist | 0.020 (0.020 to 0.020) | {100 * spread:.3f} | "
        f"{100 * (fmean(means) * (1 - fmean(means)) / 10_000) ** 0.5:.3f} | "
        f"{100 * min(means):.3f} to {100 * max(means):.3f} |"
    )


def test_the_worth_of_a_step(tmp_path: Path) -> None:
    put_records(tmp_path, CONTROLLED, params=52_234)
    row = write_step(published(tmp_path)).splitlines()[-1]
    assert row.startswith("| MNIST | 0.600 % (52.2 K parameters) | 0.402 % (52.2 K parameters) | 0.352 %")
    low, high = stats.ttest_ind(
        ERRORS["ResNet@k=32"], CONTROLLED["Identity@k=32"], equal_var=False
    ).confidence_interval()
    assert f"| -0.198 ({100 * low:+.3f} to {100 * high:+.3f}) |" in row


def test_without_the_control_the_step_waits(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert write_step(published(tmp_path)) == "Not run yet."


def test_explicit_and_refined_and_what_was_not_run(tmp_path: Path) -> None:
    single = {"ODENet-ab@k=32": (0.004,), "ODENet-abm@k=32": (0.0045,), "RKNet-rk4_38@k=32": (0.004,)}
    put_records(tmp_path, {**ERRORS, **single}, params=2_000)
    text = write_implicit(published(tmp_path))
    names = "| MNIST, paper-mnist | ODE-Net (4th-order explicit) | ODE-Net (4th-order implicit) |"
    assert f"{names} 0.400 % (2 K parameters) | 0.450 % (2 K parameters) | +0.050 |" in text
    assert "| RKCNN-E-2 k=32 | RKCNN-I-2 k=32 | 0.388 % (2 K parameters) | 0.350 % (2 K parameters) | -0.038 (" in text
    assert text.endswith("\n\nNot run yet beside an explicit one: RKNet-radau3 on MNIST.")


def test_the_frontier_is_named_and_drawn(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.0041)}, params=52_234, flops=8_000_000)
    put_records(tmp_path, {"DenseNet-2@k=32": (0.005, 0.0051)}, params=56_266, flops=7_000_000)
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.003, 0.0031)}, params=1_500_000, flops=2_000_000_000)
    lines = write_cost(published(tmp_path)).splitlines()
    assert lines[0] == "- MNIST, by parameters: pre-act ResNet (52.2 K; 0.405 %), RKCNN-R-2 k=32 (1.5 M; 0.305 %)."
    assert lines[1].startswith("- MNIST, by FLOPs: DenseNet (T = 2) (7 M; 0.505 %), pre-act ResNet (8 M; 0.405 %)")
    assert lines[-1].endswith("(findings-mnist.svg)")
    assert [path.name for path in draw_pictures(published(tmp_path))] == ["findings-mnist.svg"]


def test_memory_that_was_not_measured(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert write_memory(published(tmp_path)).splitlines()[-1] == "| MNIST | - | - | - | - |"


def test_the_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    put_records(tmp_path / "results")
    page = tmp_path / "findings.md"
    page.write_text("\n".join(markers("order")))
    with pytest.raises(InputError, match=r"lacks <!-- noise"):
        list(write_page(str(page), str(tmp_path / "results")))
    assert page.read_text() == "\n".join(markers("order"))
    page.write_text("\n".join(line for name in WRITERS for line in markers(name)))
    (tmp_path / "results" / "result.json").write_text("{")
    (trouble,) = write_page(str(page), str(tmp_path / "results"))
    assert "can't be read" in trouble
    assert "| MNIST, paper-mnist | 5 | 10 |" in page.read_text()
