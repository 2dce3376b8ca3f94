"""Implicit steps, and fixed points by Anderson acceleration."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.implicit import MEMORY, fixed_point, implicit
from rkcnn.solvers.methods import TABLEAUS, gauss1, gauss2, gauss3, lobatto3c, radau3
from rkcnn.solvers.solver_step import Field, SolverStep
from rkcnn.solvers.tableau import Tableau
from solvers.problems import Counted, conv_field, exact, field, greatest, last

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
def test_an_iteration_that_cannot_converge_says_so_and_stops_at_its_budget(budget: int) -> None:
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
def test_a_fixed_point_per_image_knows_no_neighbours(dtype: torch.dtype) -> None:
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


IMPLICIT = [method for method in TABLEAUS.values() if method.kind != "explicit"]


def dense(weight: Tensor, bias: Tensor) -> Field:
    return lambda t, y: torch.tanh(y @ weight + t * bias)


def dense_problem() -> tuple[Tensor, Tensor, Tensor]:
    """y, weight, bias."""
    torch.manual_seed(3)
    y, bias = torch.randn(2, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    return y, torch.randn(3, 3, dtype=torch.float64), bias


def unrolled(f: Field, y: Tensor, method: Tableau, iterations: int = 400) -> Tensor:
    """One step by plain damped iteration, every evaluation kept for backward."""
    a, b = (torch.tensor(x, dtype=y.dtype) for x in (method.a, method.b))
    z = torch.zeros(method.stages, *y.shape, dtype=y.dtype)
    for _ in range(iterations):
        inner = y + torch.einsum("ij,jnk->ink", a, z)
        new = torch.stack([f(node, x) for node, x in zip(method.c, inner, strict=True)])
        z = (z + new) / 2
    return y + torch.einsum("i,ink->nk", b, z)


@pytest.mark.parametrize(("method", "steps"), [*((method, 1) for method in IMPLICIT), (radau3, 2)])
def test_gradient_is_the_finite_difference(method: Tableau, steps: int) -> None:
    inputs = tuple(x.requires_grad_() for x in dense_problem())

    def end(y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        f = dense(weight, bias)
        step = last(implicit(f, y, method, (weight, bias), steps, tol=1e-13, max_iterations=100))
        assert bool(step.converged)
        return step.y

    assert torch.autograd.gradcheck(end, inputs, eps=1e-6, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("method", [gauss3, radau3, lobatto3c], ids=lambda method: method.name)
def test_solution_and_gradient_are_those_of_an_unrolled_solve(method: Tableau) -> None:
    y, weight, bias = (x.requires_grad_() for x in dense_problem())
    f = dense(weight, bias)
    ours = last(implicit(f, y, method, (weight, bias), tol=1e-13, max_iterations=100)).y
    theirs = unrolled(f, y, method)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    mine, plain = (torch.autograd.grad(x.square().sum(), (y, weight, bias)) for x in (ours, theirs))
    torch.testing.assert_close(mine, plain, rtol=0, atol=1e-10)


def test_radau3_agrees_with_scipy_on_a_fine_grid() -> None:
    y, weight, bias = dense_problem()
    f = dense(weight, bias)

    def flat(t: float, x: Tensor) -> Tensor:
        return f(t, torch.as_tensor(x).reshape(y.shape)).reshape(-1)

    expected = solve_ivp(flat, (0, 1), y.reshape(-1), "Radau", rtol=1e-9, atol=1e-9).y[:, -1]
    found = last(implicit(f, y, radau3, steps=16, tol=1e-13)).y
    torch.testing.assert_close(found.reshape(-1), torch.as_tensor(expected), rtol=0, atol=1e-7)


@pytest.mark.parametrize("wants", [(True, False, False), (False, True, False), (False, False, True)])
def test_only_what_wants_a_gradient_gets_one(wants: tuple[bool, ...]) -> None:
    y, weight, bias = (x.requires_grad_() if want else x for x, want in zip(dense_problem(), wants, strict=True))
    last(implicit(dense(weight, bias), y, gauss2, (weight, bias))).y.sum().backward()
    assert tuple(x.grad is not None for x in (y, weight, bias)) == wants


@given(st.sampled_from(IMPLICIT), st.integers(1, 3), st.floats(1e-10, 0.9))
def test_counts_evaluations(method: Tableau, steps: int, tol: float) -> None:
    f = Counted()
    step = last(implicit(f, exact(0), method, steps=steps, tol=tol))
    iterations = greatest(step.iterations)
    assert greatest(step.evaluations) == f.calls == steps + method.stages * iterations
    assert bool(step.converged)
    assert step.residual is not None
    assert float(step.residual) < tol * 10  # tol + tol |slope|, |slope| < 9


@given(st.floats(1e-12, 1e-3))
@settings(max_examples=20)
def test_the_stage_equations_hold_to_the_tolerance(tol: float) -> None:
    y = exact(0)
    step = last(implicit(field, y, radau3, tol=tol))
    z = [e / b for e, b in zip(step.increments, radau3.b, strict=True)]
    for row, node, slope in zip(radau3.a, radau3.c, z, strict=True):
        inner = y + sum(w * other for w, other in zip(row, z, strict=True))
        assert float((field(node, inner) - slope).abs().max()) < 20 * tol


def test_refuses_to_take_no_step() -> None:
    with pytest.raises(InputError, match="`steps=0` given"):
        last(implicit(field, exact(0), radau3, steps=0))


def test_increments_sum_to_the_change() -> None:
    y = exact(0)
    for step in implicit(field, y, lobatto3c, steps=3):
        torch.testing.assert_close(y + sum(step.increments), step.y, rtol=0, atol=1e-15)
        y = step.y


def test_at_solution_sees_every_solved_stage_once_a_step() -> None:
    """That is where batch norm may touch its buffers; what it returns changes nothing."""
    seen: list[tuple[Tensor, Tensor]] = []

    def touch(t: float | Tensor, y: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        assert isinstance(t, Tensor)
        seen.append((t, y))
        return torch.full_like(y, torch.nan)

    y = exact(torch.tensor([0.0, 0.3, 0.6]))
    taken = list(implicit(field, y, radau3, steps=2, tol=1e-12, at_solution=touch))
    plain = list(implicit(field, y, radau3, steps=2, tol=1e-12))
    assert len(seen) == 2
    for n, (step, without, (times, states)) in enumerate(zip(taken, plain, seen, strict=True)):
        torch.testing.assert_close(step.y, without.y, rtol=0, atol=0)
        assert greatest(step.evaluations) == greatest(without.evaluations) + 3 * (n + 1)
        nodes = torch.tensor([(n + c) / 2 for c in radau3.c], dtype=y.dtype)
        torch.testing.assert_close(times.reshape(3, 3), nodes[:, None].expand(3, 3))
        slopes = torch.cat([e / (b / 2) for e, b in zip(step.increments, radau3.b, strict=True)])
        torch.testing.assert_close(field(times, states), slopes, rtol=0, atol=1e-10)  # the stage equations


def stiff(t: float | Tensor, y: Tensor) -> Tensor:
    """Lipschitz constant 200."""
    return 4 * torch.sin(50 * y + t)


@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize("budget", [1, 5, 30])
def test_what_cannot_converge_says_so_and_stops_at_its_budget(budget: int, per_image: bool) -> None:
    f = Counted(stiff)
    y = torch.linspace(0, 1, 8, dtype=torch.float64).reshape(4, 2).requires_grad_()
    step = last(implicit(f, y, radau3, max_iterations=budget, per_image=per_image))
    assert torch.as_tensor(step.converged).tolist() == [False] * (4 if per_image else 1)
    assert f.calls == 1 + 3 * budget == greatest(step.evaluations)
    assert bool(step.y.isfinite().all())
    step.y.sum().backward()  # the same formula at the best iterate; its own solve is linear and can't diverge
    assert y.grad is not None
    assert bool(y.grad.isfinite().all())
    assert step.backward is not None
    settled = bool(torch.as_tensor(step.backward.converged).all())  # on some processors, with the largest budget
    assert step.backward.products == 4 * budget + 1 or (settled and step.backward.products < 4 * budget + 1)
    assert float(y.grad.abs().max()) < 1e3


def residual_of(f: Field, y: Tensor, method: Tableau, z: list[Tensor]) -> Tensor:
    """The largest error of the stage equations with h = 1, for each image."""
    states = [y + sum(a * other for a, other in zip(row, z, strict=True)) for row in method.a]
    errors = [f(c, state) - slope for c, state, slope in zip(method.c, states, z, strict=True)]
    return torch.stack(errors).abs().transpose(0, 1).flatten(1).amax(1)


@given(
    st.sampled_from(IMPLICIT),
    st.lists(st.floats(-1000, 1000), min_size=1, max_size=4),
    st.integers(1, 300),
    st.booleans(),
)
@settings(max_examples=30)
def test_a_stiff_system_gives_its_best_iterate(
    method: Tableau, rates: list[float], budget: int, per_image: bool
) -> None:
    """y' = rate y: beyond its contraction the iteration must not make y worse than the first guess does."""
    rate = torch.tensor(rates, dtype=torch.float64)[:, None]
    y = torch.ones(len(rates), 3, dtype=torch.float64).requires_grad_()

    def f(t: float | Tensor, y: Tensor) -> Tensor:
        return rate * y

    step = last(implicit(f, y, method, max_iterations=budget, per_image=per_image))
    z = [(e / b).detach() for e, b in zip(step.increments, method.b, strict=True)]
    found, first = (
        residual_of(f, y.detach(), method, z),
        residual_of(f, y.detach(), method, [f(0, y).detach()] * len(z)),
    )
    if not per_image:
        found, first = found.amax(0, keepdim=True), first.amax(0, keepdim=True)
    failed = ~torch.as_tensor(step.converged)
    assert bool((found[failed] <= first[failed] * (1 + 1e-9)).all())
    assert bool(step.y.isfinite().all())
    assert step.residual is not None
    torch.testing.assert_close(step.residual[failed], found[failed], rtol=1e-6, atol=1e-6)
    step.y.sum().backward()
    assert y.grad is not None
    assert bool(y.grad.isfinite().all())


@pytest.mark.parametrize("budget", [30, 300])
@pytest.mark.parametrize("method", [gauss1, radau3], ids=lambda method: method.name)
def test_rates_up_to_100_stay_of_their_size(method: Tableau, budget: int) -> None:
    """They came back as 3e8 and 3e9, and after 300 iterations as 1e83 and 6e60."""
    rates = torch.linspace(1, 100, 40, dtype=torch.float64)
    step = last(implicit(lambda t, y: -rates * y, torch.ones(1, 40).double(), method, max_iterations=budget))
    assert not bool(step.converged)
    assert float(step.y.abs().max()) < 200  # with the first guess for all stages: 100


def test_a_step_that_failed_is_not_forgotten() -> None:
    def f(t: float | Tensor, y: Tensor) -> Tensor:
        return stiff(t, y) if float(t) < 0.5 else -y

    taken = list(implicit(f, exact(0), gauss2, steps=4, max_iterations=8))
    assert not any(bool(step.converged) for step in taken)
    assert greatest(taken[-1].iterations) < 4 * 8  # the steps after it did converge


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_reported(bad: float) -> None:
    y = exact(0).requires_grad_()
    step = last(implicit(lambda t, y: y * bad, y, radau3))
    assert not bool(step.converged)
    assert step.residual is not None
    assert not bool(step.residual.isfinite())
    assert greatest(step.iterations) == 1
    step.y.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_per_image_knows_no_neighbours(dtype: torch.dtype) -> None:
    """Even where a neighbour is chaotic or is not a number."""

    def f(t: float | Tensor, y: Tensor) -> Tensor:
        return torch.cat([torch.sin(y[:, 1:] * y[:, :1] + t), 0 * y[:, 1:]], 1)  # the rate is a state

    batch = torch.tensor([[0.5, 0.1], [0.4, 2.0], [1.0, 90.0], [float("nan"), 1.0], [0.1, 0.9]], dtype=dtype)
    together = last(implicit(f, batch, radau3, steps=2, tol=1e-4, per_image=True))
    converged = torch.as_tensor(together.converged)
    checked = [0, 1, 3, 4]  # image 2 is chaotic: another order of a sum, another path, and luck decides
    assert converged[checked].tolist() == [True, True, False, True]
    for i in checked:
        alone = last(implicit(f, batch[i : i + 1], radau3, steps=2, tol=1e-4, per_image=True))
        if converged[i]:
            torch.testing.assert_close(alone.y[0], together.y[i], rtol=0, atol=1e-6)
        for name in ("evaluations", "iterations", "converged"):
            assert getattr(alone, name).item() == getattr(together, name)[i].item()


def test_the_gradient_is_better_than_a_coarse_solution() -> None:
    """With the paper's tol = 0.5 the backward solve is still exact to 1e-4 at what was found."""
    conv, f = conv_field()
    step = last(implicit(f, torch.randn(2, 4, 5, 5), radau3, tuple(conv.parameters()), tol=0.5))
    step.y.square().sum().backward()
    assert step.backward is not None
    assert bool(step.backward.converged)
    assert greatest(step.iterations) < step.backward.products < 20
    assert step.backward.evaluations == 3


def solved(f: Field, conv: torch.nn.Conv2d) -> Iterator[SolverStep]:
    return implicit(f, torch.randn(2, 4, 5, 5), radau3, tuple(conv.parameters()), steps=2)


def test_nothing_outlives_a_step() -> None:
    """A cycle from the graph to its own output would keep every step's stages until a collection."""
    conv, f = conv_field()
    counted = Counted(f)
    alive = weakref.ref(counted)
    gc.disable()
    try:
        step = last(solved(counted, conv))
        step.y.sum().backward()
        del step, counted
        assert alive() is None
    finally:
        gc.enable()


def test_on_meta_it_takes_the_least_path() -> None:
    f = Counted(lambda t, y: y + 1)
    step = last(implicit(f, torch.empty(2, 3, device="meta"), radau3))
    assert step.y.is_meta
    assert f.calls == greatest(step.evaluations) == 4


MEMORY_SCRIPT = """
    import sys, torch
    from pathlib import Path
    from rkcnn.solvers.implicit import implicit
    from rkcnn.solvers.methods import radau3

    def peak():  # not ru_maxrss, which a child inherits from its parent
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    torch.set_num_threads(1)
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(32, 32, 3, padding=1)
    y = torch.randn(128, 32, 6, 6, requires_grad=True)

    scale = torch.nn.Parameter(torch.full((32, 1, 1), 0.5))

    def solve(inside, parameters, tol, budget):
        f = lambda t, y: torch.tanh(inside(y) + t)
        *_, step = implicit(f, y, radau3, parameters, tol=tol, max_iterations=budget)
        (step.y ** 2).mean().backward()
        return int(step.iterations), bool(step.converged)

    def multiply(y):  # as large as what the convolution gives, in less time
        return scale * y

    print(*solve(conv, tuple(conv.parameters()), 1e-5, 30), peak())
    print(*solve(multiply, (scale,), 0.0, 10), peak())
    print(*solve(multiply, (scale,), 0.0, 50), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_batch_of_mnist_by_radau3_takes_under_2_gb() -> None:
    """147,456 unknowns, forward and backward; memory does not grow with the iterations."""
    source = Path(__file__).parents[2] / "src"
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY_SCRIPT)],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (iterations, converged, peak), (few, _, small), (many, _, large) = map(str.split, out.splitlines())
    assert converged == "True"
    assert int(iterations) < 20
    assert float(peak) < 2048  # MB, with torch itself; measured 340
    assert (few, many) == ("10", "50")
    assert (
        float(large) - float(small) < 40
    )  # a copy of the stages kept by each of 40 iterations: 68 MB; malloc alone: up to 18
