"""Second-order neural ODE."""

from __future__ import annotations

import torch
from torch import Tensor
from torchdiffeq import odeint

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.sonode import Sonode


def test_it_solves_the_second_order_equation() -> None:
    """y' = v, v' = f(t, v), v(0) = g(y) as a pair of states in torchdiffeq."""
    torch.manual_seed(0)
    period = Sonode(parse("SONODE@k=8,r=2"), 0, Layers("gn")).double()
    y = torch.randn(2, 8, 5, 5, dtype=torch.float64)

    def field(t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return state[1], period.get_submodule("f.acceleration")(t, state[1])

    times = torch.tensor([0.0, 1.0], dtype=torch.float64)
    start = (y, period.velocity(0.0, y))
    expected = odeint(field, start, times, method="rk4", options={"step_size": 0.5})[0][1]
    torch.testing.assert_close(period(y)[0], expected, rtol=1e-12, atol=1e-12)
