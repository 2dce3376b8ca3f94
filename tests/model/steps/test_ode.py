"""RKNN, RK-Net and ODE-Net."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor
from torchdiffeq import odeint

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.ode import OdeFunction, OdeNet


@pytest.mark.parametrize("k", [8, 32])
def test_parameters_of_f(k: int) -> None:
    assert sum(p.numel() for p in OdeFunction(k, Layers("gn")).parameters()) == 18 * k * k + 26 * k
    assert sum(p.numel() for p in OdeFunction(k, Layers("gn"), time=False).parameters()) == 18 * k * k + 8 * k


def test_time_is_the_leading_channel_of_both_convolutions() -> None:
    torch.manual_seed(0)
    f = OdeFunction(4, Layers("gn"))
    y = torch.randn(3, 4, 5, 5)
    assert not torch.equal(f(0.0, y), f(0.5, y))
    each = torch.tensor([0.1, 0.2, 0.3]).reshape(3, 1, 1, 1)
    alone = torch.cat([f(float(t), y[i : i + 1]) for i, t in enumerate(each)])
    torch.testing.assert_close(f(each, y), alone)
    with torch.no_grad():
        f.conv1.weight[:, 0] = 0
        f.conv2.weight[:, 0] = 0
    torch.testing.assert_close(f(0.0, y), f(0.5, y))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_f_is_that_of_a_channel_filled_with_t(dropout: float) -> None:
    """The oracle stores the channel beside y, as ODE-Net's own code does; in float64, with the gradients."""
    torch.manual_seed(0)
    f = OdeFunction(4, Layers("gn", dropout)).double()
    y = torch.randn(3, 4, 5, 6, dtype=torch.float64, requires_grad=True)
    t = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

    def naive(t: Tensor, y: Tensor) -> Tensor:
        for norm, conv in ((f.norm1, f.conv1), (f.norm2, f.conv2)):
            y = conv(torch.cat([t.expand(3, 1, 5, 6), norm(y).relu()], 1))
        return cast(Tensor, f.norm3(y))

    found = []
    for function in (f, naive):
        torch.manual_seed(1)  # the same dropout
        out = function(t, y)
        found.append((out, *torch.autograd.grad(out.square().sum(), [t, y, *f.parameters()])))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "method", "options"),
    [
        ("RKNN-rk4_38@k=8", "rk4", {"step_size": 1.0}),
        ("RKNet-rk4_38@k=8,r=2", "rk4", {"step_size": 0.5}),
        ("ODENet-ab@k=8", "explicit_adams", {"step_size": 0.25, "max_order": 5}),
        ("ODENet-abm@k=8,r=4", "implicit_adams", {"step_size": 0.25, "max_order": 4}),
    ],
)
def test_the_period_is_torchdiffeqs_solution(name: str, method: str, options: dict[str, float]) -> None:
    torch.manual_seed(0)
    period = OdeNet(parse(name), 0, Layers("gn")).double()
    y = torch.randn(2, 8, 5, 5, dtype=torch.float64)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    expected = odeint(period.f, y, ends, method=method, options=options, rtol=0.5, atol=0.5)[1]
    torch.testing.assert_close(period(y)[0], expected, rtol=1e-12, atol=1e-12)


def test_the_increments_of_an_rk_step_are_its_weighted_slopes() -> None:
    """e_i = h b_i z_i (Eq. 5 of the paper)."""
    torch.manual_seed(0)
    period = OdeNet(parse("RKNet-rk4_38@k=8"), 0, Layers("gn"))
    y = torch.randn(2, 8, 5, 5)
    (move,) = period.walk(y)
    torch.testing.assert_close(move.e[0], period.f(0.0, y) / 8)


def test_fixed_steps_update_running_statistics_at_every_evaluation() -> None:
    period = OdeNet(parse("RKNN-rk4_38@k=8,norm=bn"), 0, Layers("bn")).train()
    period(torch.randn(2, 8, 5, 5))
    assert {int(n.num_batches_tracked or 0) for n in period.modules() if isinstance(n, BatchNorm)} == {4}
