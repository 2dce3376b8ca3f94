"""Fixed points: the linear ones are known, and plain iteration is the thing to beat."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rkcnn.solvers.anderson import MEMORY, fixed_point

UNKNOWNS = 40
kinds = st.sampled_from(["general", "symmetric", "skew"])


class Linear:
    """g(x) = M x + b with |M| = lipschitz, its fixed point, and a count of calls."""

    def __init__(self, lipschitz: float, seed: int = 0, kind: str = "general", dtype: str = "float64") -> None:
        generator = torch.Generator().manual_seed(seed)
        m = torch.randn(UNKNOWNS, UNKNOWNS, generator=generator, dtype=torch.float64)
        m = {"general": m, "symmetric": m + m.T, "skew": m - m.T}[kind]
        m = lipschitz * m / torch.linalg.matrix_norm(m, 2)
        b = torch.randn(UNKNOWNS, generator=generator, dtype=torch.float64)
        self.x = torch.linalg.solve(torch.eye(UNKNOWNS, dtype=torch.float64) - m, b)
        self.m, self.b = m.to(getattr(torch, dtype)), b.to(getattr(torch, dtype))
        self.start = torch.zeros(1, 1, UNKNOWNS, dtype=self.m.dtype)
        self.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x @ self.m.T + self.b

    def plain_iterations(self, tol: float) -> int:
        x, g = self.start, self(self.start)
        iterations = 1
        while not ((g - x).abs() < tol + tol * torch.maximum(g.abs(), x.abs())).all():
            x, g = g, self(g)
            iterations += 1
        return iterations


@given(st.floats(0, 0.9), st.integers(0, 99), kinds)
def test_solves_a_contraction_and_counts(lipschitz: float, seed: int, kind: str) -> None:
    g = Linear(lipschitz, seed, kind)
    found = fixed_point(g, g.start, tol=1e-10, max_iterations=200)
    assert bool(found.converged)
    assert int(found.iterations) == g.calls
    assert float((found.x - g.x).abs().max()) < 1e-8 / (1 - lipschitz)


@given(st.floats(0.001, 0.9), st.integers(0, 99), kinds, st.sampled_from([("float32", 1e-5), ("float64", 1e-10)]))
def test_is_never_much_slower_than_plain_iteration(
    lipschitz: float, seed: int, kind: str, precision: tuple[str, float]
) -> None:
    """Also where gaps shrink so fast that their squares differ by more than float32 can hold."""
    dtype, tol = precision
    g = Linear(lipschitz, seed, kind, dtype)
    found = fixed_point(g, g.start, tol, max_iterations=300)
    assert bool(found.converged)
    assert int(found.iterations) <= g.plain_iterations(tol) + 1


def test_is_faster_where_plain_iteration_is_slow() -> None:
    g = Linear(0.99, kind="skew")
    assert int(fixed_point(g, g.start, 1e-8, 1000).iterations) * 10 < g.plain_iterations(1e-8)


@pytest.mark.parametrize("budget", [1, 7, 40])
def test_what_cannot_converge_says_so_and_stops_at_its_budget(budget: int) -> None:
    g = Linear(30.0)
    found = fixed_point(g, g.start, 1e-6, budget)
    assert not bool(found.converged)
    assert int(found.iterations) == g.calls == budget
    assert float(found.residual) > 1e-3


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("after", [0, 1, 2, MEMORY + 2])
def test_what_is_not_finite_stops_and_keeps_the_best_iterate(bad: float, after: int) -> None:
    g = Linear(0.9)
    calls = 0

    def breaks(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return g(x) if calls <= after else g(x) * bad

    found = fixed_point(breaks, g.start, 1e-12, 50)
    assert calls == after + 1 == int(found.iterations)
    assert not bool(found.converged)
    assert bool(found.residual.isfinite()) == (after > 0)
    assert bool(found.x.isfinite().all())
    if after:
        assert float(found.residual) == float((g(found.x) - found.x).abs().max())


def by_image(rates: Tensor) -> Callable[[Tensor], Tensor]:
    """g(x) = cos(rate x) for each image; NaN where the rate is."""
    return lambda x: torch.cos(rates[None, :, None] * x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_per_image_knows_no_neighbours(dtype: torch.dtype) -> None:
    rates = torch.tensor([0.1, 0.9, float("nan"), 50.0, 0.0], dtype=dtype)
    start = torch.linspace(0, 1, 3 * 5 * 8, dtype=dtype).reshape(3, 5, 8)
    together = fixed_point(by_image(rates), start, 1e-5, 20, per_image=True)
    assert together.converged.tolist() == [True, True, False, False, True]
    for i in (0, 1, 2, 4):  # the map of image 3 is chaotic: another order of a sum, another path
        alone = fixed_point(by_image(rates[i : i + 1]), start[:, i : i + 1], 1e-5, 20, per_image=True)
        torch.testing.assert_close(alone.x, together.x[:, i : i + 1], rtol=1e-4, atol=1e-4)
        assert alone.iterations.item() == together.iterations[i].item()
        assert alone.converged.item() == together.converged[i].item()
        torch.testing.assert_close(alone.residual, together.residual[i : i + 1], rtol=1e-2, atol=1e-5, equal_nan=True)


def test_the_whole_batch_is_judged_together() -> None:
    rates = torch.tensor([0.1, 50.0])
    found = fixed_point(by_image(rates), torch.zeros(1, 2, 3), 1e-5, 20)
    assert found.converged.tolist() == [False]


@given(st.floats(0.1, 100), st.integers(0, 99), kinds, st.integers(1, 60), st.booleans())
def test_what_does_not_converge_is_its_best_iterate(
    lipschitz: float, seed: int, kind: str, budget: int, always_best: bool
) -> None:
    g = Linear(lipschitz, seed, kind)
    found = fixed_point(g, g.start, 1e-12, budget, always_best=always_best)
    first = float(g.b.abs().max())  # the residual of the first guess, x = 0
    assert float(found.residual) <= first
    if not bool(found.converged):
        assert float(found.residual) == float((g(found.x) - found.x).abs().max())


def test_what_converges_is_the_newest_value_or_the_best_iterate() -> None:
    g = Linear(0.5)
    newest = fixed_point(g, g.start, 1e-3, 40)
    best = fixed_point(g, g.start, 1e-3, 40, always_best=True)
    assert torch.equal(newest.x, g(best.x))
    assert float(newest.residual) == float(best.residual) == float((g(best.x) - best.x).abs().max())


def test_on_meta_it_evaluates_once() -> None:
    found = fixed_point(lambda x: x + 1, torch.empty(3, 2, 4, device="meta"), 1e-6, 20, per_image=True)
    assert found.x.shape == (3, 2, 4)
    assert found.iterations.tolist() == [1, 1]
