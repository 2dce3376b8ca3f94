"""Networks of which stem, transitions and update are fused train as plain ones do, under Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from fit.bench import RECIPE, trainer
from rkcnn.fit.trainer import Trainer
from rkcnn.model.backends import backends_set_to
from rkcnn.model.fast import choose, stem
from rkcnn.model.fast.tiles import Window
from rkcnn.model.fast.update import update_parameters
from rkcnn.model.frame import StemConv, Transition

STEPS = 2


def train(run: Trainer) -> tuple[float, dict[str, Tensor]]:
    """Take some steps, and return the sum of the losses and the state of the network."""
    run.loss = run.forward
    run.begin_epoch()
    for _ in range(STEPS):
        run.learn(*run.prepare())
        run.step += 1
    return float(run.state()["totals"][0]), run.network.state_dict()


@pytest.mark.parametrize("spec", ["ResNet@k=10_12", "DenseNet-2_2@k=12", "CliqueNet-2_2@k=12"])
def test_it_trains_as_the_plain_network_and_repeats_its_bits(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter multiplies float32 in full, so that where tf32 is allowed all agrees with the plain steps."""
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    monkeypatch.setattr(stem, "choose_window", lambda *shape: Window(16, 32, 16, 4))
    convolved: list[StemConv] = []
    take_stem = stem.take_stem

    def take(conv: StemConv, images: Tensor) -> Tensor:
        convolved.append(conv)
        return take_stem(conv, images)

    monkeypatch.setattr(stem, "take_stem", take)

    def make(fused: bool) -> Trainer:
        run = trainer(spec, device="cpu", recipe=replace(RECIPE, precision="tf32", batch=2))
        if fused:
            assert choose.fuse_network(run.network, run.device, "tf32") == ""
            run.sgd.fused = update_parameters
        return run

    with backends_set_to("tf32", deterministic=True):
        plain, fused = make(False), make(True)
        frame = [part for part in fused.network.modules() if isinstance(part, StemConv | Transition)]
        assert [bool(part.fused) if isinstance(part, StemConv) else part.pools_first for part in frame] == [True, True]
        (loss, expected), (found_loss, found), (again, same) = train(plain), train(fused), train(make(True))
    assert len(convolved) == 2 * STEPS
    assert found_loss == pytest.approx(loss, rel=1e-4)
    assert again == found_loss
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=2e-2, atol=2e-3)
        assert torch.equal(same[name], found[name]), name
