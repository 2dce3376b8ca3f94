"""The fused step against the readable one: result, gradients and running statistics, under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.model.fast import launch_backward, launch_forward
from rkcnn.model.fast.program import program_of
from rkcnn.model.fast.step import take_step
from rkcnn.model.fast.tiles import Plain, Product, Split, Stream, Sums, Tiles
from rkcnn.model.layers import Layers
from rkcnn.model.steps.rkcnn import RKStep

SMALL = Tiles(
    Product(16, 16, 16), Product(32, 16, 8), Product(16, 8, 16), Stream(16, 16, 6), Split(16, 16, 16, 60),
    Split(32, 8, 16, 20), Sums(16, 2), Plain(16),
)  # fmt: skip
STEPS: dict[str, Callable[[], RKStep]] = {
    "E, one stage": lambda: RKStep(1, 8, Layers("bn")),
    "E, two stages, odd width": lambda: RKStep(2, 5, Layers("torch")),
    "I, two stages": lambda: RKStep(2, 6, Layers("bn"), newest=True, sweeps=1),
    "I, three stages, two sweeps": lambda: RKStep(3, 4, Layers("bn"), newest=True, sweeps=2),
    "R, two stages, several blocks of channels": lambda: RKStep(2, 20, Layers("torch"), sweeps=1),
    "R, three stages, Phase II without y": lambda: RKStep(3, 3, Layers("bn"), sweeps=1, y=False),
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks in every direction."""
    for module in (launch_forward, launch_backward):
        monkeypatch.setattr(module, "choose_tiles", lambda *shape: SMALL)


def width(step: RKStep) -> int:
    return program_of(step).k


def plain_step(step: RKStep, y: Tensor) -> Tensor:
    _, e = step(y)
    return torch.stack([y, *e]).sum(0)


def make(name: str) -> RKStep:
    """A step with norms that have weights and statistics of their own."""
    torch.manual_seed(1)
    step = STEPS[name]()
    for module in step.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    return step.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def results(take: Callable[[RKStep, Tensor], Tensor], step: RKStep, y: Tensor) -> dict[str, Tensor]:
    """Everything that a training step takes from it, after two batches."""
    step = deepcopy(step)
    y = y.clone().requires_grad_()
    take(step, y.detach() + 1)
    out = take(step, y)
    weights = torch.sin(torch.arange(out.numel())).view_as(out)
    (out.float() * weights).sum().backward()
    assert y.grad is not None
    found = {"out": out.detach().float(), "y": y.grad.float()}
    found |= {name: value.grad for name, value in step.named_parameters() if value.grad is not None}
    assert len(found) == 2 + len(list(step.parameters()))
    return found | {name: value.clone() for name, value in step.named_buffers()}


def distance(found: Tensor, expected: Tensor) -> float:
    found, expected = found.double(), expected.double()
    return float((found - expected).norm() / expected.norm().clamp(min=1e-3))


def mean_distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    return sum(distance(found[key], value) for key, value in expected.items()) / len(expected)


@pytest.mark.parametrize("name", STEPS)
def test_the_fused_step_computes_what_the_readable_one_does(name: str) -> None:
    step = make(name)
    y = 2 * torch.randn(3, width(step), 5, 4) + 0.5
    expected, found = results(plain_step, step, y), results(take_step, step, y)
    for key, value in expected.items():
        assert distance(found[key], value) < 2e-5, key


@pytest.mark.parametrize("name", ["I, two stages", "R, three stages, Phase II without y"])
def test_in_float16_it_is_as_close_to_float32_as_the_readable_one(name: str) -> None:
    """One ReLU that rounding opens or closes moves some gradients by a tenth, so the mean over all tensors counts."""

    def plain_half(step: RKStep, y: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.float16):
            return plain_step(step, y)

    step = make(name)
    y = 2 * torch.randn(2, width(step), 4, 6) + 0.5
    expected = results(plain_step, step, y)
    fused, plain = results(take_step, step, y.half()), results(plain_half, step, y.half())
    assert mean_distance(fused, expected) < 1.5 * mean_distance(plain, expected) + 1e-4


@pytest.mark.parametrize("name", STEPS)
def test_the_1x1_product_by_rows_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = SMALL._replace(narrow_by_rows=Stream(16, 8, 4), sums=Sums(16, 2, stages=3))
    for module in (launch_forward, launch_backward):
        monkeypatch.setattr(module, "choose_tiles", lambda *shape: by_rows)
    test_the_fused_step_computes_what_the_readable_one_does(name)


def test_torchs_convolutions_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launch_forward, launch_backward):
        monkeypatch.setattr(
            module, "choose_tiles", lambda *shape: SMALL._replace(conv=None, conv_back=None, conv_weights=None)
        )
    test_the_fused_step_computes_what_the_readable_one_does("I, two stages")


def test_the_gradient_may_come_in_any_layout_and_the_state_too() -> None:
    step = make("I, two stages")
    y = torch.randn(2, 6, 4, 4)
    expected = results(take_step, step, y.contiguous(memory_format=torch.channels_last))
    found = results(take_step, step, y)
    assert all(torch.equal(found[key], value) for key, value in expected.items())


def test_torch_compile_sees_one_operator() -> None:
    """Forward and backward are one operator each, and the compiled step gives the same bits."""
    step = make("E, one stage")
    y = torch.randn(2, 8, 4, 4)
    torch._dynamo.reset()
    compiled = torch.compile(take_step, backend="aot_eager", fullgraph=True)
    expected, found = results(take_step, step, y), results(compiled, step, y)
    assert all(torch.equal(found[key], value) for key, value in expected.items())
