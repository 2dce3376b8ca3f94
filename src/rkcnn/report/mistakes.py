"""Which test images a run got wrong."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.data.fetch import find_stored
from rkcnn.data.sets import DataSet
from rkcnn.data.sources import Sources
from rkcnn.report.view import Row
from rkcnn.run_folder import PREDICTIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def find_mistakes(row: Row, data: DataSet) -> NDArray[np.bool_] | None:
    """Of seed 0, image by image; None without its predictions or the set's labels, or where the two don't agree
    with the result."""
    import numpy as np

    for folder, result in zip(row.folders, row.results, strict=True):
        path = folder / PREDICTIONS
        if result.run.seed or not path.is_file():
            continue
        labels = read_labels(data)
        try:
            predictions = np.load(path, allow_pickle=False)
        except (OSError, ValueError):
            return None
        if labels is None or predictions.shape != labels.shape:
            return None
        wrong: NDArray[np.bool_] = predictions != labels
        return wrong if result.error is not None and abs(wrong.mean() - result.error) < 0.5 / len(wrong) else None
    return None


def read_labels(data: DataSet) -> NDArray[np.int64] | None:
    """The labels of the test set, if a checked copy lies on this machine; nothing is fetched."""
    found = find_stored(data, Sources(offline=True))
    return _labels(found[0], data.coarse) if found else None


@cache
def _labels(folder: Path, coarse: bool) -> NDArray[np.int64]:
    import numpy as np

    return np.fromfile(folder / f"test.{'coarse' if coarse else 'labels'}", np.int64)
