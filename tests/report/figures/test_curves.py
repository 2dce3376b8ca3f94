"""The curves show a run's numbers, in files that equal runs share."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from PIL import Image

from outcome import outcome
from rkcnn.disk import DiskError
from rkcnn.report.figures.curves import WIDEST, draw_curves
from rkcnn.report.figures.style import save_figure


def words(svg: Path) -> str:
    return " ".join(re.findall(r">([^<>]+)</text>", svg.read_text()))


def points(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_xydata())


def test_lines_are_the_results_in_percent() -> None:
    errors, losses = draw_curves(outcome()).axes
    learnt, tested, best, last = errors.lines
    assert points(tested) == pytest.approx(np.array([(1, 50), (2, 2), (3, 3)]))
    assert points(learnt) == pytest.approx(np.array([(1, 25), (2, 1), (3, 1.5)]))
    assert np.concatenate([points(best), points(last)]) == pytest.approx(np.array([(2, 2), (3, 3)]))
    assert points(losses.lines[0]) == pytest.approx(np.array([(1, 1.5), (2, 0.06), (3, 0.09)]))
    assert learnt.get_linestyle() != tested.get_linestyle(), "told apart without colour"
    assert best.get_fillstyle() == "none"


def test_words_say_what_it_is_and_what_came_of_it(tmp_path: Path) -> None:
    svg, png = save_figure(draw_curves(outcome()), tmp_path / "curves")
    text = words(svg)
    assert "ResNet@k=4 on mnist-mini: mini,epochs=3, seed 0" in text
    assert "best: 2.00 % in epoch 2, chosen on the test set" in text
    assert "last: 3.00 %" in text
    assert "lr 0.1" in text
    with Image.open(png) as picture:
        assert picture.size == (1350, 540)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "curves.svg"]


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    pictures = [save_figure(draw_curves(outcome()), tmp_path / name) for name in ("one", "two")]
    for first, second in zip(*pictures, strict=True):
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("errors", [(0.5,), (0.0, 0.0), (0.9, 0.9, 0.0), tuple(1 / n for n in range(1, 301))])
def test_any_course_can_be_drawn(tmp_path: Path, errors: tuple[float, ...]) -> None:
    svg, _ = save_figure(draw_curves(outcome(errors)), tmp_path / "curves")
    assert f"last: {100 * errors[-1]:.2f} %" in words(svg)


def test_a_validation_run_and_a_dollar_in_its_path(tmp_path: Path) -> None:
    made = outcome()
    made = replace(made, run=replace(made.run, data="npz:$a$/x_y.npz~validation-50"))
    svg, _ = save_figure(draw_curves(made), tmp_path / "curves")
    assert "npz:$a$/x_y.npz~validation-50" in words(svg)
    assert "validation" in words(svg).split()
    assert "chosen on the validation set" in words(svg)
    assert "test" not in words(svg)


def test_a_learning_rate_that_moves_all_the_time_is_not_written_out(tmp_path: Path) -> None:
    made = outcome((0.5,) * 20)
    made = replace(made, epochs=tuple(replace(epoch, lr=0.1 * epoch.number) for epoch in made.epochs))
    svg, _ = save_figure(draw_curves(made), tmp_path / "curves")
    assert "lr " not in words(svg)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"can't write to .*curves\.svg"):
        save_figure(draw_curves(outcome()), tmp_path / "no" / "curves")


def test_a_long_title_lies_inside_the_figure() -> None:
    """Of names without a space, as own images have them."""
    made = outcome()
    recipe = replace(made.run.recipe, initial_weights="0123456789ab", label_smoothing=0.1, recompute_norms=True)
    run = replace(
        made.run, network="RKCNN-R-2_2_2@k=24,stem=odenet", data=f"folder:{'W' * 90}~split-0.2", recipe=recipe
    )
    figure = draw_curves(replace(made, run=run))
    figure.draw_without_rendering()
    (title,) = figure.texts
    lines = title.get_text().splitlines()
    assert lines[0] == "RKCNN-R-2_2_2@k=24,stem=odenet on"
    assert max(map(len, lines)) <= WIDEST
    assert lines[-1].endswith(", seed 0")
    box = title.get_window_extent()
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1


def test_a_rate_that_changes_all_the_time_is_not_written(tmp_path: Path) -> None:
    made = outcome()
    run = replace(made.run, recipe=replace(made.run.recipe, schedule="triangle"))
    svg, _ = save_figure(draw_curves(replace(made, run=run)), tmp_path / "curves")
    assert "lr " not in words(svg)
