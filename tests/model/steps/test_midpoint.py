"""The midpoint network."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.midpoint import Antisymmetric, Midpoint


def test_the_field_is_antisymmetric() -> None:
    """<(K - K^T) y, y> = 0: the linear part neither grows nor shrinks y."""
    torch.manual_seed(0)
    step = Antisymmetric(4, Layers("gn")).double()
    y = torch.randn(2, 4, 6, 7, dtype=torch.float64)
    linear = step.conv(y) - torch.nn.functional.conv_transpose2d(y, step.conv.weight, padding=1)
    assert abs(float((linear * y).sum().detach())) < 1e-12


def test_dropout_keeps_it_antisymmetric() -> None:
    """Dropped as one: what is left is (K - K^T) y or nothing, never K y alone."""
    torch.manual_seed(0)
    step = Antisymmetric(4, Layers("gn", dropout=0.5)).train()
    step.norm = torch.nn.Identity()
    y = torch.randn(2, 4, 6, 7)
    whole = step.eval()(y)
    ratio = (step.train()(y) / whole)[whole > 0]
    assert sorted(ratio.detach().unique().round(decimals=3).unique().tolist()) == [0.0, 2.0]


def test_the_equation_and_its_inverse() -> None:
    torch.manual_seed(0)
    period = Midpoint(parse("Midpoint@k=8,r=4"), 0, Layers("gn")).double()
    y = [torch.randn(2, 8, 5, 5, dtype=torch.float64)]
    y.append(y[0] + period.steps[0](y[0]) / 4)
    for n in (1, 2, 3):
        y.append(y[n - 1] + period.steps[n](y[n]) / 2)
    torch.testing.assert_close(period(y[0])[0], y[4])
    torch.testing.assert_close(period.inverse(y[4], y[3]), y[0], rtol=1e-11, atol=1e-11)
