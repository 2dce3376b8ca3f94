"""Places names beside the points of a scatter plot, none over another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from numpy.typing import NDArray

    Boxes = NDArray[np.float64]  # (..., 4): left, bottom, right, top, in pixels

Place = tuple[float, float]
Line = tuple[Place, Place]

ROUNDS = 8
SIZE = 8.0
NEXT_TO = 8.0  # points: so near, a name needs no line
_RINGS = (NEXT_TO, 14.0, 22.0, 32.0, 44.0, 58.0, 74.0, 92.0, 112.0, 134.0, 158.0)
_SIDES = tuple(
    (x, y) for x in (1.0, -1.0, 0.5, -0.5, 0.0) for y in (0.0, 0.5, -0.5, 1.0, -1.0) if max(abs(x), abs(y)) == 1
)
_SPOTS = [(x * far, y * far) for far in _RINGS for x, y in _SIDES]


def place_labels(
    axes: Axes,
    points: Sequence[Place],
    names: Sequence[str],
    colours: Sequence[str],
    lines: Sequence[Line] = (),
    nameless: Sequence[Place] = (),
) -> list[Annotation]:
    """Write each name at a free spot near its point, off the straight `lines` and the `nameless` markers.

    Each name takes the best spot in turn, in several rounds, since a later name may free a better spot for an earlier
    one. A name that isn't next to its point gets a line to it, in its colour.
    """
    import numpy as np

    figure = cast("Figure", axes.figure)
    figure.draw_without_rendering()  # the layout, and with it the scale, is settled by drawing
    scale = figure.dpi / 72
    frame = np.array(axes.get_window_extent().extents)
    pixels = axes.transData.transform(np.array(points))
    markers = np.hstack([pixels, pixels]) + 5 * scale * np.array([-1, -1, 1, 1])
    ends = axes.transData.transform(np.array(lines).reshape(-1, 2)).reshape(-1, 2, 2)
    taken = np.hstack([ends.min(1), ends.max(1)]) + 2 * scale * np.array([-1, -1, 1, 1])
    hollow = axes.transData.transform(np.array(nameless).reshape(-1, 2))
    taken = np.vstack([taken, np.hstack([hollow, hollow]) + 5 * scale * np.array([-1, -1, 1, 1])])
    spots = np.array(_SPOTS)
    candidates = [
        _lay_out(pixel, spots * scale, size) for pixel, size in zip(pixels, _measure(axes, names), strict=True)
    ]
    chosen = [0] * len(names)
    for turn in range(ROUNDS):
        for i, boxes in enumerate(candidates):
            placed = [candidates[j][chosen[j]] for j in range(len(names)) if j != i and (turn or j < i)]
            others = np.array(placed).reshape(-1, 4)
            costs = _cost(boxes, np.vstack([markers, taken]), frame) + 10 * _meet(boxes, others)
            costs += _confuse(boxes, pixels, i, np.vstack([np.delete(markers, i, 0), others]))
            chosen[i] = int(np.argmin(costs + 0.04 * np.abs(spots).max(1) / NEXT_TO))
    return [_write(axes, *at) for at in zip(points, names, colours, (_SPOTS[i] for i in chosen), strict=True)]


def _measure(axes: Axes, names: Sequence[str]) -> list[Place]:
    """Return the width and height of each name in pixels."""
    sizes = []
    for name in names:
        text = axes.text(0, 0, name, fontsize=SIZE, parse_math=False)
        extent = text.get_window_extent()
        sizes.append((extent.width, extent.height))
        text.remove()
    return sizes


def _lay_out(pixel: NDArray[np.float64], shifts: NDArray[np.float64], size: Place) -> Boxes:
    """Return the box of a name at every spot: it begins to the right of its point, or stands above it."""
    import numpy as np

    low = pixel + shifts - np.array(size) * (1 - np.sign(shifts)) / 2
    return np.hstack([low, low + size])


def _cost(boxes: Boxes, blocked: Boxes, frame: Boxes) -> NDArray[np.float64]:
    """Return the share of each box that lies over something, and far more where the frame cuts it off."""
    import numpy as np

    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    over = _overlap(boxes[:, None], blocked[None])
    over = np.where(over > 0, np.maximum(over, 0.25 * area[:, None]), 0).sum(1)  # a thin line spoils a name, too
    cut = 1 - _overlap(boxes, frame) / area
    return over / area + 10 * cut + 5 * (cut > 1e-6)


def _meet(boxes: Boxes, others: Boxes) -> NDArray[np.float64]:
    """Count the names that each box would touch: two that overlap can't be read, however little they share."""
    import numpy as np

    return (_overlap(boxes[:, None], others[None] + np.array([-8, -1, 8, 1])) > 0).sum(1).astype(np.float64)


def _overlap(one: Boxes, two: Boxes) -> NDArray[np.float64]:
    import numpy as np

    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    return np.maximum(sides, 0).prod(-1)


def _confuse(boxes: Boxes, pixels: NDArray[np.float64], own: int, across: Boxes) -> NDArray[np.float64]:
    """Return the cost of what misleads a reader: another point nearer than the name's own, a line across others."""
    import numpy as np

    nearest = np.clip(pixels[None], boxes[:, None, :2], boxes[:, None, 2:])  # of each box to each point
    far = np.linalg.norm(nearest - pixels[None], axis=-1)
    nearer = (far < far[:, own : own + 1] + 1).sum(1) - 1
    way = np.linspace(0.1, 0.9, 7)[None, :, None]
    path = pixels[own] * (1 - way) + nearest[:, own][:, None] * way
    hit = (path[:, :, None] > across[None, None, :, :2]) & (path[:, :, None] < across[None, None, :, 2:])
    return 0.15 * nearer + 0.3 * hit.all(-1).any(1).sum(-1)


def _write(axes: Axes, point: Place, name: str, colour: str, spot: Place) -> Annotation:
    across, up = ((x > 0) - (x < 0) for x in spot)
    line = {"arrowstyle": "-", "linewidth": 0.8, "color": colour, "shrinkA": 0, "shrinkB": 4,
        "relpos": ((1 - across) / 2, (1 - up) / 2)}  # fmt: skip
    return axes.annotate(
        name, point, xytext=spot, textcoords="offset points", fontsize=SIZE, parse_math=False,
        ha=("center", "left", "right")[across], va=("center", "bottom", "top")[up],
        arrowprops=line if max(map(abs, spot)) > NEXT_TO else None, zorder=4,
        bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5},  # read over a bar, where one must be
    )  # fmt: skip
