"""Which runs are published, and the README's part, from records."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import ERRORS, put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.published import (
    DASH,
    NO_RUNS,
    PICTURE,
    SHOWN,
    TITLES,
    choose_headlines,
    draw_pictures,
    picture_of,
    report_published,
    write_readme_part,
)
from rkcnn.report.report import Report
from rkcnn.report.results import read_records

COLOUR = {
    "ResNet@k=120_120_120": (0.0690, 0.0701, 0.0686),
    "RKCNN-I-2_2_2@k=120": (0.0580, 0.0583, 0.0582),
    "Identity@k=120_120_120": (0.2941, 0.2930, 0.2955),
}


def published(folder: Path) -> Report:
    return report_published(read_records(folder)[0])


def readme(folder: Path) -> str:
    return write_readme_part(published(folder))


def cells(text: str, name: str) -> list[str]:
    """The cells of a row of the README's table."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_table_and_a_picture_over_the_data_sets(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234, machine={"gpu": "NVIDIA H200"})
    put_records(tmp_path, COLOUR, "cifar10", "fast", params=845_050, machine={"gpu": "NVIDIA H200"})
    text = readme(tmp_path)
    assert text.startswith(
        "Test errors in percent. Last epoch: mean ± standard deviation over seeds; nothing in it was chosen on the "
        "test set. Best epochs: the mean over runs of each run's lowest test error, as the paper seems to count; that "
        "epoch is chosen on the test set, so this error is lower. 33 runs on NVIDIA H200: MNIST by the paper's recipe "
        "(160 epochs in fp32), 4 to 5 seeds, 5 of the paper's 18 networks so far; CIFAR-10 by `fast-cifar` (40 epochs "
        "in bf16; the paper has 300), 3 seeds, 2 of the paper's 16 networks so far. No table of CIFAR-100 and SVHN is "
        "run yet.\n"
    )
    assert cells(text, "network") == [
        *("network", "parameters, MNIST", "parameters, CIFAR-10", "MNIST, last epoch"),
        *("MNIST, best epochs, ours", "MNIST, best epochs, the paper's", "CIFAR-10, last epoch"),
    ]
    assert cells(text, "ResNet") == ["ResNet", "52,234", "845,050", "0.402 ± 0.019", "0.382", "0.372", "6.92 ± 0.08"]
    assert cells(text, "RKCNN-R")[3:] == ["0.352 ± 0.022 (n = 4)", "0.332", "0.308", "-"]
    assert cells(text, "Identity") == ["Identity", "-", "845,050", "-", "-", "-", "29.42 ± 0.13"]
    assert f"\n\n{DASH}\n\n" in text
    assert "| RKNN" not in text, "it was run on no data set"
    assert f"]({PICTURE.as_posix()})" in text
    names = "docs/results.svg", "docs/results-mnist-paper.svg", "docs/results-cifar10-fast.svg"
    assert list(draw_pictures(published(tmp_path))) == [Path(name) for name in names]


def test_what_the_sets_show(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, COLOUR, "cifar10", "fast")
    bullets = [line for line in readme(tmp_path).splitlines() if line.startswith("- ")]
    assert bullets[0] == (
        "- MNIST, against the paper: at best epochs our means are +0.004 to +0.028 points from the paper's over 5 "
        "networks, with 95 % intervals within -0.045 to +0.077; Welch's test with Holm's correction separates none of "
        "them."
    )
    assert bullets[1].startswith(
        "- MNIST: of 4 networks, narrower ones included, compared with RKCNN-R, 2 err more (ResNet (bottleneck), "
        "ResNet); none errs less; 2 can't be told from it with so few seeds. Not run yet: RKNN, RK-Net (explicit), "
    )
    assert bullets[2].startswith(
        "- CIFAR-10: of 2 networks, narrower ones included, compared with RKCNN-I, all err more (ResNet, Identity); "
        "none errs less. Not run yet: ResNet (bottleneck), RKNN, "
    )
    assert "up to ±0.09 points on MNIST and ±0.35 points on CIFAR-10; a difference of means has less" in bullets[3]
    assert "on MNIST RKCNN, DenseNet and CliqueNet have batch norm and the rest group norm" in bullets[4]
    assert len(bullets) == 5


def test_the_recipe_with_the_most_networks_is_shown_and_none_are_mixed(tmp_path: Path) -> None:
    put_records(tmp_path, COLOUR, "cifar10", "fast")
    put_records(tmp_path, dict.fromkeys(list(COLOUR)[:2], (0.05,)), "cifar10", precision="bf16")
    put_records(tmp_path, ERRORS, "mnist", "fast")
    put_records(tmp_path, dict.fromkeys(ERRORS, (0.004,)))
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, "mnist", "fast", precision="tf32")
    report = published(tmp_path)
    ways = [(part.name, part.results.way) for part in report.tables]
    assert ways == [("mnist", "paper"), ("cifar10", "fast"), ("cifar10", "paper in bf16")]
    assert [part.results.way for part in choose_headlines(report).values()] == ["paper", "fast"]
    assert picture_of(report.tables[2]) == Path("docs/results-cifar10-paper-bf16.svg")
    assert "by `fast-cifar` (40 epochs" in readme(tmp_path)


def test_another_recipe_is_shown_if_it_has_other_networks(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.005,), "RKCNN-R-2@k=32": (0.005,)}, "mnist", "fast")
    assert [part.results.way for part in published(tmp_path).tables] == ["paper"]
    put_records(tmp_path, {"ODENet-abm@k=32": (0.005,)}, "mnist", "fast")
    assert [part.results.way for part in published(tmp_path).tables] == ["paper", "fast"]


def test_what_diverged_is_said(tmp_path: Path) -> None:
    put_records(
        tmp_path, {**COLOUR, "ResNet@k=120_120_120": (None,), "DenseNet-2_2_2@k=120": (0.06, None)}, "cifar10", "fast"
    )
    text = readme(tmp_path)
    assert cells(text, "ResNet")[-1] == "diverged"
    assert cells(text, "DenseNet")[-1] == "6.00 (n = 1, 1 diverged)"
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.004, None)})
    assert cells(readme(tmp_path), "DenseNet")[4:6] == ["-", "0.358"], "the best epoch of what is left is not compared"


def test_what_the_records_note_about_errors_is_shown(tmp_path: Path) -> None:
    about_run = "Trained before its first weights changed."
    about_record = "Found in a check and corrected by hand: a commit."
    put_records(tmp_path, {"CliqueNet-2@k=32": (0.004,)}, notes=(about_run, about_record))
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, notes=(about_record,))
    assert f"\n\nCliqueNet (T = 2): {about_run}\n\n" in readme(tmp_path)
    assert about_record not in readme(tmp_path)


def test_no_runs_and_too_few(tmp_path: Path) -> None:
    assert readme(tmp_path) == NO_RUNS
    put_records(tmp_path, {"ResNet@k=32": (0.01,)}, preset="fast")
    assert readme(tmp_path) == NO_RUNS
    put_records(tmp_path, {"ResNet@k=32": (0.004,), "DenseNet-2@k=32": (0.004,)})
    assert "- MNIST: 2 runs of 2 of 19 networks; nothing to compare yet:" in readme(tmp_path)
    assert draw_pictures(published(tmp_path)) == {}


@pytest.mark.parametrize("name", TITLES)
def test_the_rows_are_networks_of_the_tables(name: str) -> None:
    specs = [pair[name != "mnist"] for pair in SHOWN.values()]
    assert specs == sorted(specs, key=TABLES[name].specs.index), "in the order of the table"
