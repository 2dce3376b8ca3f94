"""Which test images a run got wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.data.cache import read_test_labels
from rkcnn.data.options import Sources
from rkcnn.data.sets import DataSet
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
    """Return the labels of the test set if a verified copy is on this machine; nothing is fetched."""
    return read_test_labels(data, Sources().folders())
