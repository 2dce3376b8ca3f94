"""The leapfrog network."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.leapfrog import Leapfrog, TiedConv


def test_the_transpose_is_the_adjoint() -> None:
    """<K y, z> = <y, K^T z>, with norm and activation taken away."""
    torch.manual_seed(0)
    step = TiedConv(3, 5, Layers("gn")).double()
    y = torch.randn(2, 3, 6, 7, dtype=torch.float64)
    z = torch.randn(2, 5, 6, 7, dtype=torch.float64)
    transposed = torch.nn.functional.conv_transpose2d(z, step.conv.weight, padding=1)
    torch.testing.assert_close((step.conv(y) * z).sum(), (y * transposed).sum())


def test_the_equation_and_its_inverse() -> None:
    torch.manual_seed(0)
    period = Leapfrog(parse("Leapfrog@k=8,r=4"), 0, Layers("gn")).double()
    y = [torch.randn(2, 8, 5, 5, dtype=torch.float64)]
    before = y[0]
    for step in period.steps:
        y.append(2 * y[-1] - before - step(y[-1]) / 16)
        before = y[-2]
    torch.testing.assert_close(period(y[0])[0], y[4])
    torch.testing.assert_close(period.inverse(y[4], y[3]), y[0], rtol=1e-11, atol=1e-11)
