"""The Hamiltonian network."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.hamiltonian import Hamiltonian


def test_the_equation_and_its_inverse() -> None:
    torch.manual_seed(0)
    period = Hamiltonian(parse("Hamiltonian@k=8,r=2"), 0, Layers("gn")).double()
    start = torch.randn(2, 8, 5, 5, dtype=torch.float64)
    y, z = start.split(4, 1)
    for first, second in zip(period.first, period.second, strict=True):
        z = z - first(y) / 2
        y = y + second(z) / 2
    end = period(start)[0]
    torch.testing.assert_close(end, torch.cat([y, z], 1))
    torch.testing.assert_close(period.inverse(end), start, rtol=1e-11, atol=1e-11)
