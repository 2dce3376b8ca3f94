"""RKNN, RK-Net and ODE-Net."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torchdiffeq import odeint

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.create import create_model
from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.ode import OdeFunction, OdeNet
from rkcnn.solvers.solver_step import Time


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


@pytest.mark.parametrize(
    ("name", "evaluations"),
    [
        ("RKNN-rk4_38@k=8_8,statistics=each", 4),
        ("RKNet-rk4@k=8_8,r=2,statistics=each", 8),
        ("RKNet-dopri5@k=8_8,r=2,statistics=each", 13),  # the second step begins with the last stage of the first
        ("ODENet-ab@k=8_8,statistics=each", 10),
    ],
)
def test_each_evaluation_has_statistics_of_its_own(name: str, evaluations: int) -> None:
    """As many batch norms with one weight would have, one for each evaluation in turn."""
    torch.manual_seed(0)
    period = OdeNet(parse(name), 0, Layers("bn")).double().train()
    alone = [[BatchNorm(8).double() for _ in range(evaluations)] for _ in range(3)]
    norms = [period.f.get_submodule(name) for name in ("norm1", "norm2", "norm3")]
    seen: list[list[Tensor]] = [[], [], []]
    hooks = [norm.register_forward_hook(lambda _, x, __, i=i: seen[i].append(x[0])) for i, norm in enumerate(norms)]
    for _ in range(2):
        period(torch.randn(2, 8, 5, 5, dtype=torch.float64))
    for norm, others, inputs in zip(norms, alone, seen, strict=True):
        assert len(inputs) == 2 * evaluations
        for call, x in enumerate(inputs):
            others[call % evaluations](x)
        for buffer in ("running_mean", "running_var", "num_batches_tracked"):
            torch.testing.assert_close(
                norm.get_buffer(buffer), torch.stack([other.get_buffer(buffer) for other in others])
            )
    for hook in hooks:
        hook.remove()
    period.eval()
    y, given = torch.randn(3, 8, 5, 5, dtype=torch.float64), iter(range(evaluations))

    def by_the_others(t: Time, y: Tensor, i: int) -> Tensor:
        assert i == next(given)
        f = deepcopy(period.f)
        f.norm1, f.norm2, f.norm3 = (others[i].eval() for others in alone)
        return f(t, y)

    *_, last = period.solver.walk(Given(period.f, by_the_others), y)
    torch.testing.assert_close(period(y)[0], last.y)


class Given(nn.Module):
    """A function of (t, y, evaluation) as a module."""

    def __init__(self, f: nn.Module, compute: Callable[[Time, Tensor, int], Tensor]) -> None:
        super().__init__()
        self.f, self.compute = f, compute

    def forward(self, t: Time, y: Tensor, evaluation: int) -> Tensor:
        return self.compute(t, y, evaluation)


def test_statistics_of_each_evaluation_are_no_parameters_and_the_first_velocity_has_one_set() -> None:
    names = ("SONODE@k=8_8", "SONODE@k=8_8,statistics=each")
    shared, each = (create_model(name) for name in names)
    assert {key: value.shape for key, value in shared.named_parameters()} == {
        key: value.shape for key, value in each.named_parameters()
    }
    assert each.get_buffer("periods.0.f.acceleration.norm1.running_mean").shape == (4, 8)
    assert each.get_buffer("periods.0.velocity.norm1.running_mean").shape == (8,)


def test_several_threads_may_use_a_network_with_statistics_of_each_evaluation() -> None:
    network = create_model("RKNet-rk4_38@k=8_8,r=3,statistics=each").eval()
    for norm in network.modules():
        if isinstance(norm, BatchNorm):
            nn.init.normal_(norm.get_buffer("running_mean"))
    x = torch.randn(4, 3, 16, 16)

    def answer(_: int) -> Tensor:
        with torch.no_grad():
            return network(x)

    expected = answer(0)
    with ThreadPoolExecutor(3) as threads:
        assert all(torch.equal(found, expected) for found in threads.map(answer, range(30)))
