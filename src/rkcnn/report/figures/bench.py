"""Time, or memory, against the batch: one panel for each network, one line for each contender."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.record.bench import Bench, Measurement, quartiles
from rkcnn.report.figures.style import scale_log, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv<>P*X"
MIB = 1 << 20


def draw_bench(record: Bench) -> Figure:
    """Draw the medians with bars from quartile to quartile, on logarithmic axes."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((each.work, each.network) for each in record.measurements))
    figure = Figure(figsize=(6.4, 3.8 * len(panels)), layout="constrained")
    for axes, (work, network) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        chosen = [each for each in record.measurements if (each.work, each.network) == (work, network)]
        _draw_panel(axes, chosen)
        axes.set_title(f"{network}: {work}", fontsize=10, parse_math=False)
    write_title(figure, f"rkcnn bench {record.kind}", record.machine.get("gpu") or "on a CPU")
    return figure


def _draw_panel(axes: Axes, measurements: list[Measurement]) -> None:
    names = list(dict.fromkeys(_name(each) for each in measurements))
    seen: list[float] = []
    for i, name in enumerate(names):
        line = sorted((each for each in measurements if _name(each) == name), key=lambda each: each.batch)
        unit = 1e3 if line[0].seconds else 1 / MIB
        low, middle, high = zip(*([unit * value for value in quartiles(each.values)] for each in line), strict=True)
        spread = [[m - q for m, q in zip(middle, low, strict=True)], [q - m for m, q in zip(middle, high, strict=True)]]
        batches = [each.batch for each in line]
        marker = MARKERS[i % len(MARKERS)]
        axes.errorbar(batches, middle, spread, marker=marker, markersize=4, linewidth=1.4, capsize=2, label=name)
        seen += middle
    scale_log(axes, "y", seen)
    axes.set_xscale("log", base=2)
    batches = sorted({each.batch for each in measurements})
    axes.set_xticks(batches, [f"{batch:,}" for batch in batches])
    axes.minorticks_off()
    axes.set(xlabel="batch (images)", ylabel="ms a step" if measurements[0].seconds else "peak memory, MiB")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)


def _name(measurement: Measurement) -> str:
    return f"{measurement.label}, {measurement.precision}"
