"""f of RKNN, RK-Net and ODE-Net in fused kernels against the readable one, under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.model.create import create_model
from rkcnn.model.fast import ode
from rkcnn.model.fast.ode import take_function
from rkcnn.model.fast.tiles import Plain, Sums, choose_tiles
from rkcnn.model.layers import Layers
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.solvers.solver_step import Time

FUNCTIONS: dict[str, Callable[[], OdeFunction]] = {
    "with the time": lambda: OdeFunction(8, Layers("bn")),
    "with the time, odd width": lambda: OdeFunction(5, Layers("torch")),
    "without the time": lambda: OdeFunction(8, Layers("torch"), time=False),
    "without the time, odd width": lambda: OdeFunction(19, Layers("bn"), time=False),
}
WITHOUT_EFFECT = ("conv1.bias", "conv2.bias")  # of which the norm after the convolution leaves nothing but rounding


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of rows, and parts of several blocks."""
    tiles = choose_tiles(64, 8)._replace(sums=Sums(16, 3, stages=3), plain=Plain(16))
    monkeypatch.setattr(ode, "choose_tiles", lambda *shape: tiles)


def make(name: str) -> OdeFunction:
    """f with norms that have weights and statistics of their own."""
    torch.manual_seed(1)
    f = FUNCTIONS[name]()
    for module in f.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    return f.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def solve(take: Callable[[OdeFunction, Time, Tensor], Tensor], f: OdeFunction, y: Tensor) -> Tensor:
    """Take two steps of Euler's method, whose state stays in float32."""
    for t in (0.25, 0.75):
        y = y + take(f, t, y).to(y.dtype)
    return y


def plain(f: OdeFunction, y: Tensor) -> Tensor:
    return solve(OdeFunction.__call__, f, y)


def fused(f: OdeFunction, y: Tensor) -> Tensor:
    return solve(take_function, f, y)


def results(solve: Callable[[OdeFunction, Tensor], Tensor], f: OdeFunction, y: Tensor) -> dict[str, Tensor]:
    """Everything that a training step takes from a solve."""
    f = deepcopy(f)
    y = y.clone().requires_grad_()
    out = solve(f, y)
    weights = torch.sin(torch.arange(out.numel())).view_as(out)
    (out.float() * weights).sum().backward()
    assert y.grad is not None
    found = {"out": out.detach().float(), "y": y.grad.float()}
    grads = {name: value.grad for name, value in f.named_parameters() if value.grad is not None}
    found |= {name: grad for name, grad in grads.items() if name not in WITHOUT_EFFECT}
    return found | {name: value.clone() for name, value in f.named_buffers()}


def distance(found: Tensor, expected: Tensor) -> float:
    found, expected = found.double(), expected.double()
    return float((found - expected).norm() / expected.norm().clamp(min=1e-3))


def mean_distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    return sum(distance(found[key], value) for key, value in expected.items()) / len(expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [(3, 5, 4), (2, 3, 7)])
def test_fused_kernels_compute_what_the_readable_f_does(name: str, size: tuple[int, int, int]) -> None:
    f = make(name)
    images, height, width = size
    y = 2 * torch.randn(images, f.conv1.out_channels, height, width) + 0.5
    expected, found = results(plain, f, y), results(fused, f, y)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        assert distance(found[key], value) < 2e-5, key


@pytest.mark.parametrize("mean", [0.5, 8.0])
@pytest.mark.parametrize("name", ["with the time", "without the time"])
def test_in_float16_it_is_as_close_to_float32_as_the_readable_one(name: str, mean: float) -> None:
    """One ReLU that rounding opens or closes moves some gradients by a tenth, so the mean over all tensors counts.

    A state may have a mean of several deviations, which the first norm removes.
    """

    def half(solve: Callable[[OdeFunction, Tensor], Tensor]) -> Callable[[OdeFunction, Tensor], Tensor]:
        def in_half(f: OdeFunction, y: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.float16):
                return solve(f, y)

        return in_half

    f = make(name)
    y = 2 * torch.randn(2, f.conv1.out_channels, 4, 6) + mean
    expected = results(plain, f, y)
    found, rounded = results(half(fused), f, y), results(half(plain), f, y)
    assert mean_distance(found, expected) < 1.5 * mean_distance(rounded, expected) + 1e-4


def test_the_state_may_come_in_any_layout() -> None:
    f = make("with the time")
    y = torch.randn(2, 8, 4, 4)
    expected = results(fused, f, y.contiguous(memory_format=torch.channels_last))
    found = results(fused, f, y)
    assert all(torch.equal(found[key], value) for key, value in expected.items())


def test_torch_compile_sees_one_operator() -> None:
    """Forward and backward are one operator each, and the compiled f gives the same numbers."""
    f = make("with the time")
    y = torch.randn(2, 8, 4, 4)
    torch._dynamo.reset()
    compiled = torch.compile(fused, backend="aot_eager", fullgraph=True)
    expected, found = results(fused, f, y), results(compiled, f, y)
    for key, value in expected.items():
        assert distance(found[key], value) < 1e-6, key


SOLVED = (
    *("RKNN-rk4_38@k=4_4", "ODENet-ab@k=4_5", "ODENet-abm@k=4_4,tol=0.1", "SONODE@k=4_4"),
    *("RKNN-rk4_38@k=4_4,statistics=each", "RKNet-rk4_38@k=4_4,statistics=each"),
    *("RKNet-dopri5@k=4_4,tol=0.1", "RKNet-radau3@k=4_4"),
)


@pytest.mark.parametrize("spec", SOLVED)
def test_a_network_trains_with_it(spec: str) -> None:
    """Gradients and running statistics of the whole network, whose f has the kernels by `takes_tf32` on a CPU too.

    Radau's method asks for its statistics with one time for each stage and image.
    """
    torch.manual_seed(2)
    network = create_model(spec).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for name, parameter in network.named_parameters():
        if name.endswith(WITHOUT_EFFECT):  # on gradients; running means contain them
            nn.init.uniform_(parameter, -0.5, 0.5)
    images = torch.randn(3, 3, 8, 8)
    found: list[dict[str, Tensor]] = []
    for takes in (False, True):
        copy = deepcopy(network).train()
        for f in copy.modules():
            if isinstance(f, OdeFunction) and takes:
                f.fused, f.takes_tf32 = take_function, True
        nn.functional.cross_entropy(copy(images), torch.tensor([1, 0, 2])).backward()
        grads = {name: p.grad for name, p in copy.named_parameters() if p.grad is not None}
        kept = {name: grad for name, grad in grads.items() if not name.endswith(WITHOUT_EFFECT)}
        found.append(kept | {name: buffer.float() for name, buffer in copy.named_buffers()})
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        assert distance(found[1][key], value) < 1e-3, key
