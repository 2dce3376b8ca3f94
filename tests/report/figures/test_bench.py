"""The figure of time against batch."""

from __future__ import annotations

from record.benches import made, measured
from rkcnn.report.figures.bench import draw_bench


def test_a_panel_for_each_network_and_a_line_for_each_contender() -> None:
    found = [measured(code, [0.002, 0.003]) for code in ("rkcnn", "naive") for _ in range(2)]
    found[1].batch = found[3].batch = 32
    found.append(measured("rkcnn", [0.001]))
    found[-1].network = "Identity@k=4"
    figure = draw_bench(made(*found))
    assert [axes.get_title() for axes in figure.axes] == ["ResNet@k=4: training step", "Identity@k=4: training step"]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["rkcnn eager, fp32", "naive eager, fp32"]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["8", "32"]


def test_memory_is_drawn_too() -> None:
    found = measured("rkcnn", [])
    found.memory_bytes = [1 << 20]
    assert draw_bench(made(found)).axes[0].get_ylabel() == "peak memory, MiB"
