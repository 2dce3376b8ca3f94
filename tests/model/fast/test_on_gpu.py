"""The fused step on a GPU, in bf16: as close to float64 as the plain step, and the same bits again."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fit.bench import RECIPE, trainer
from rkcnn.fit.engine import Graph, start_engine
from rkcnn.model.fast.choose import fuse_steps
from rkcnn.model.layers import Layers
from rkcnn.model.steps.rkcnn import RKStep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


def results(step: RKStep, y: Tensor, dtype: torch.dtype, fused: bool = False) -> dict[str, Tensor]:
    """Result, gradients and statistics of one step, in bf16 by autocast if dtype is that."""
    from rkcnn.model.fast.step import take_step

    low = dtype == torch.bfloat16
    step = deepcopy(step).to(torch.float32 if low else dtype)
    y = y.to(dtype).requires_grad_()
    with torch.autocast("cuda", torch.bfloat16, enabled=low):
        out = take_step(step, y) if fused else torch.stack([y, *step(y)[1]]).sum(0)
    (out.double() * torch.sin(torch.arange(out.numel(), device=y.device)).view(out.shape)).sum().backward()
    assert y.grad is not None
    found = {"out": out.detach(), "y": y.grad}
    found |= {name: value.grad for name, value in step.named_parameters() if value.grad is not None}
    return {name: value.double() for name, value in (found | dict(step.named_buffers())).items()}


def mean_distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    distances = [float((found[key] - v).norm() / v.norm().clamp(min=1e-6)) for key, v in expected.items()]
    return sum(distances) / len(distances)


@pytest.mark.parametrize(
    ("s", "k", "newest", "sweeps", "images", "size"),
    [
        (2, 120, True, 1, 4, 16),
        (2, 120, True, 1, 32, 32),
        (2, 120, True, 1, 64, 32),  # where torch's convolutions are faster
        (3, 78, False, 1, 5, 9),
        (5, 80, True, 1, 4, 8),
        (2, 26, False, 0, 3, 7),
        (2, 32, False, 2, 6, 8),
    ],
)
def test_the_fused_step_is_as_exact_as_the_plain_one(
    s: int, k: int, newest: bool, sweeps: int, images: int, size: int
) -> None:
    torch.manual_seed(0)
    step = RKStep(s, k, Layers("bn"), newest, sweeps).cuda()
    step.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    y = torch.randn(images, k, size, size, device="cuda").contiguous(memory_format=torch.channels_last)
    exact = results(step, y, torch.float64)
    plain, fused, again = (results(step, y, torch.bfloat16, fused) for fused in (False, True, True))
    assert mean_distance(fused, exact) < 1.2 * mean_distance(plain, exact)
    assert all(torch.equal(fused[key], value) for key, value in again.items())


@pytest.mark.parametrize("spec", ["RKCNN-I-2@k=16", "RKCNN-R-2_2@k=10_12"])
def test_a_graph_trains_fused_and_repeats_its_bits(spec: str) -> None:
    """A partial batch, which runs outside the graph, and a whole one after it too; with stem, transition, odd width."""
    recipe = replace(RECIPE, precision="bf16")

    def states(fused: bool) -> list[Tensor]:
        run = trainer(spec, device="cuda", recipe=recipe)
        engine = start_engine("fused", run) if fused else Graph(run)
        assert all(bool(step.fused) == fused for step in run.network.modules() if isinstance(step, RKStep))
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


def test_networks_of_the_paper_can_be_fused() -> None:
    run = trainer("RKCNN-R-2@k=32", device="cuda")
    assert fuse_steps(run.network, run.device) == ""
