"""A tiny run that the tests of this room share."""

from __future__ import annotations

import numpy as np
import pytest

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.use.train import TrainingResult, train

Arrays = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="session")
def digits() -> tuple[Images, Images]:
    return load_data_set("mnist-mini")


@pytest.fixture(scope="session")
def arrays(digits: tuple[Images, Images]) -> Arrays:
    """The first 200 training and 50 test digits: uint8 (N, 28, 28), and labels."""
    training, test = digits
    return (
        (training.pixels[:200, 0].numpy(), training.labels[:200].numpy()),
        (test.pixels[:50, 0].numpy(), test.labels[:50].numpy()),
    )


@pytest.fixture(scope="session")
def trained(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """Two short epochs on those arrays."""
    out = tmp_path_factory.mktemp("runs")
    return train("ResNet@k=4", arrays, epochs=2, batch=50, out=out, progress=False)
