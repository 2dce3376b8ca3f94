"""The fused step, f and stem on a GPU, in bf16 and tf32: as close to float64 as the plain ones, the same bits again."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fit.bench import RECIPE, trainer
from rkcnn.fit.engine import Graph, start_engine
from rkcnn.model.backends import backends_set_to, set_precision
from rkcnn.model.fast.choose import fuse_network
from rkcnn.model.frame import ConvStem, OdeNetStem, StemConv
from rkcnn.model.layers import Layers
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.model.steps.rkcnn import RKCNN, RKStep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
FARTHER = {"bf16": 1.3, "tf32": 3.0}  # than the plain one; cutting float32 off to tf32 is 2.4 to 2.7 times rounding it
DRAWS, MANY = 15, 10_000  # where there are not more pixels than that


@pytest.fixture(autouse=True)
def settings_restored() -> Iterator[None]:
    with backends_set_to("fp32", deterministic=True, benchmark=False):  # as in runs: else cuDNN's gradients in tf32 may
        yield  # have other bits each time


def fused_parts(network: nn.Module) -> list[Any]:
    """Return what has kernels of our own: steps of RKCNN, but not those of DenseNet or CliqueNet, f, and the stem."""
    steps = [step for period in network.modules() if isinstance(period, RKCNN) for step in period.steps]
    return [*steps, *(part for part in network.modules() if isinstance(part, OdeFunction | StemConv))]


def compute(module: nn.Module, x: Tensor, fused: bool) -> Tensor:
    from rkcnn.model.fast.ode import take_function
    from rkcnn.model.fast.stem import take_stem
    from rkcnn.model.fast.step import take_step

    if isinstance(module, OdeFunction):
        return take_function(module, 0.5, x) if fused else module(0.5, x)
    if isinstance(module, RKStep):
        return take_step(module, x) if fused else torch.stack([x, *module(x)[1]]).sum(0)
    for conv in module.modules():
        if isinstance(conv, StemConv) and fused:
            conv.fused, conv.takes_tf32 = take_stem, True
    return module(x)


def results(module: nn.Module, x: Tensor, precision: str, fused: bool = False) -> dict[str, Tensor]:
    """Result, gradients and statistics in fp64, tf32, or bf16 by autocast.

    A bias before a batch norm is left out: the norm removes it, and its gradient is zero but for rounding.
    """
    set_precision(precision)
    dtype = torch.float64 if precision == "fp64" else torch.float32
    module = deepcopy(module).to(dtype)
    x = x.detach().to(dtype, copy=True).requires_grad_()  # a tensor of its own, so that no gradients add up
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        out = compute(module, x, fused)
    (out.double() * torch.sin(torch.arange(out.numel(), device=x.device)).view(out.shape)).sum().backward()
    assert x.grad is not None
    found = {"out": out.detach(), "x": x.grad}
    found |= {name: value.grad for name, value in module.named_parameters() if value.grad is not None}
    found = {name: value for name, value in found.items() if name not in ("conv1.bias", "conv2.bias")}
    return {name: value.double() for name, value in (found | dict(module.named_buffers())).items()}


def distances(found: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    return {key: float((found[key] - v).norm() / v.norm().clamp(min=1e-6)) for key, v in expected.items()}


def check(make: Callable[[], nn.Module], shape: tuple[int, ...], precision: str) -> None:
    """Compare the distances from fp64, of each tensor the median over draws of weights and images.

    Where there are few pixels, a ReLU that rounding opens in one of the two paths changes gradients by a tenth, so that
    a draw may have 20 times the distance, either way. In tf32 the plain path may compute convolutions of few channels
    in float32, so half of what bf16 is off by is always allowed: it keeps three bits less, and the number of ReLUs
    that rounding opens or closes grows with the square root of what is lost.
    """
    drawn: dict[str, list[dict[str, float]]] = {"plain": [], "fused": [], "bf16": []}
    for seed in range(3 if shape[0] * shape[2] * shape[3] > MANY else DRAWS):
        torch.manual_seed(seed)
        module = make().cuda().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(shape).cuda().contiguous(memory_format=torch.channels_last)
        exact = results(module, x, "fp64")
        fused, again = (results(module, x, precision, fused=True) for _ in range(2))
        assert all(torch.equal(fused[key], value) for key, value in again.items())
        drawn["fused"].append(distances(fused, exact))
        drawn["plain"].append(distances(results(module, x, precision), exact))
        drawn["bf16"].append(distances(results(module, x, "bf16"), exact))
    usual = {
        kind: {key: statistics.median(draw[key] for draw in draws) for key in draws[0]} for kind, draws in drawn.items()
    }
    mean = {kind: statistics.mean(found.values()) for kind, found in usual.items()}
    allowed = mean["bf16"] / 2 if precision == "tf32" else 0.0
    assert mean["fused"] < max(FARTHER[precision] * mean["plain"], allowed), usual
    for key, distance in usual["fused"].items():
        assert distance < 3 * FARTHER[precision] * max(usual["plain"][key], mean["plain"]) + allowed, (key, usual)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
@pytest.mark.parametrize(
    ("s", "k", "newest", "sweeps", "images", "size"),
    [
        (2, 120, True, 1, 4, 16),
        (2, 120, True, 1, 32, 32),
        (2, 120, True, 1, 64, 32),  # where torch's convolutions are faster
        (3, 78, False, 1, 5, 9),
        (3, 78, False, 1, 32, 32),
        (5, 80, True, 1, 4, 8),
        (2, 26, False, 0, 32, 7),
        (2, 32, False, 2, 6, 8),
        (2, 32, False, 1, 128, 6),
    ],
)
def test_the_fused_step_is_as_exact_as_the_plain_one(
    s: int, k: int, newest: bool, sweeps: int, images: int, size: int, precision: str
) -> None:
    check(lambda: RKStep(s, k, Layers("bn"), newest=newest, sweeps=sweeps), (images, k, size, size), precision)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
@pytest.mark.parametrize(
    ("channels", "k", "odenet", "images", "size"),
    [
        (1, 32, True, 128, 28),  # MNIST
        (1, 20, True, 5, 28),
        (3, 64, True, 128, 33),
        (3, 120, False, 32, 32),
        (4, 128, False, 64, 32),
        (3, 26, False, 3, 15),
    ],
)
def test_the_fused_stem_is_as_exact_as_the_plain_one(
    channels: int, k: int, odenet: bool, images: int, size: int, precision: str
) -> None:
    def make() -> nn.Module:
        return OdeNetStem(channels, k, Layers("bn")) if odenet else ConvStem(channels, k)

    check(make, (images, channels, size, size), precision)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
@pytest.mark.parametrize(
    ("k", "time", "images", "size"), [(120, True, 256, 32), (120, False, 32, 16), (78, True, 5, 9), (20, False, 32, 7)]
)
def test_the_fused_f_is_as_exact_as_the_plain_one(k: int, time: bool, images: int, size: int, precision: str) -> None:
    check(lambda: OdeFunction(k, Layers("bn"), time), (images, k, size, size), precision)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
@pytest.mark.parametrize(
    "spec",
    [
        *("RKCNN-I-2@k=16", "RKCNN-R-2_2@k=10_12", "RKCNN-R-2@k=32", "RKNet-rk4_38@k=10_12"),
        *("DenseNet-2_2@k=12", "CliqueNet-2_2@k=12"),  # of which stem, transition and update are fused
    ],
)
def test_a_graph_trains_fused_and_repeats_its_bits(spec: str, precision: str) -> None:
    """A partial batch, which runs outside the graph, and a whole one after it too; with stem, transition, odd width."""
    recipe = replace(RECIPE, precision=precision)
    set_precision(precision)

    def states(fused: bool) -> list[Tensor]:
        run = trainer(spec, device="cuda", recipe=recipe)
        engine = start_engine("fused", run) if fused else Graph(run)
        assert all(bool(part.fused) == fused for part in fused_parts(run.network))
        engine.begin()
        for steps in (4, 2):
            engine.wait()  # the last epoch's steps add to the totals that this sets to 0
            run.begin_epoch()
            engine.wait_for_caller()
            for _ in range(steps):
                engine.advance()
        engine.wait()
        return list(run.state().values())

    plain, fused, again = states(False), states(True), states(True)
    assert all(torch.equal(a, b) for a, b in zip(fused, again, strict=True))
    assert float(fused[-1][0]) == pytest.approx(float(plain[-1][0]), rel=0.05)  # the sum of the losses


def test_steps_that_depend_on_the_data_train_fused_without_a_graph() -> None:
    recipe = replace(RECIPE, precision="bf16")
    set_precision("bf16")

    def states(kind: str) -> list[Tensor]:
        run = trainer("ODENet-abm@k=10_12", device="cuda", recipe=recipe)
        engine = start_engine(kind, run)
        assert engine.kind == kind
        engine.begin()
        run.begin_epoch()
        engine.wait_for_caller()
        for _ in range(4):
            engine.advance()
        engine.wait()
        return list(run.state().values())

    plain, fused, again = states("eager"), states("fused"), states("fused")
    assert all(torch.equal(a, b) for a, b in zip(fused, again, strict=True))
    assert float(fused[-1][0]) == pytest.approx(float(plain[-1][0]), rel=0.05)  # the sum of the losses


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_networks_of_the_paper_can_be_fused(precision: str) -> None:
    run = trainer("RKCNN-R-2@k=32", device="cuda")
    assert fuse_network(run.network, run.device, precision) == ""
