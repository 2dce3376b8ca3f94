"""The control row."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.identity import Identity


def test_nothing_happens() -> None:
    period = Identity(parse("Identity@k=8"), 0, Layers("gn"))
    y = torch.randn(2, 8, 5, 5)
    assert period(y) == (y, y)
    assert list(period.parameters()) == []
