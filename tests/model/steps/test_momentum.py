"""Momentum steps."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.momentum import Momentum


def test_the_equation() -> None:
    torch.manual_seed(0)
    period = Momentum(parse("Momentum@k=8"), 0, Layers("gn"))
    y = torch.randn(2, 8, 5, 5)
    v = torch.zeros_like(y)
    expected = y
    for step in period.steps:
        v = 0.9 * v + 0.1 * step.get_submodule("f")(expected)
        expected = expected + v
    torch.testing.assert_close(period(y)[0], expected)


@pytest.mark.parametrize("name", ["Momentum@k=8,r=4", "Momentum@k=8,v0=learned"])
def test_inverse(name: str) -> None:
    torch.manual_seed(0)
    period = Momentum(parse(name), 0, Layers("gn")).double()
    y = torch.randn(2, 8, 5, 5, dtype=torch.float64)
    *_, last = period.walk(y)
    torch.testing.assert_close(period.inverse(last.y, last.e[0]), y, rtol=1e-11, atol=1e-11)
