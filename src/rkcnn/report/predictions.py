"""The predictions of a row's first seed, and which test images they got wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.data.cache import read_test_labels
from rkcnn.data.options import Sources
from rkcnn.data.sets import DataSet
from rkcnn.report.results import Row
from rkcnn.run_folder import PREDICTIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read_predictions(row: Row) -> NDArray[np.integer] | None:
    """Return the class that seed 0 predicts for each test image; None where there is no readable file of them."""
    import numpy as np

    for folder, result in zip(row.folders, row.results, strict=False):
        path = folder / PREDICTIONS
        if result.run.seed or not path.is_file():
            continue
        try:
            predictions: NDArray[np.integer] = np.load(path, allow_pickle=False)
        except (OSError, ValueError):
            return None
        return predictions
    return None


def find_mistakes(row: Row, data: DataSet) -> NDArray[np.bool_] | None:
    """Return, image by image, whether seed 0 is wrong.

    None without its predictions or the data set's labels, or where the share of mistakes is not the recorded error.
    """
    predictions = read_predictions(row)
    labels = read_labels(data) if predictions is not None else None
    if predictions is None or labels is None or predictions.shape != labels.shape:
        return None
    wrong: NDArray[np.bool_] = predictions != labels
    error = next(result.error for result in row.results if not result.run.seed)
    return wrong if error is not None and abs(wrong.mean() - error) < 0.5 / len(wrong) else None


def read_labels(data: DataSet) -> NDArray[np.int64] | None:
    """Return the labels of the test set if a verified copy is on this machine; nothing is fetched."""
    return read_test_labels(data, Sources().folders())
