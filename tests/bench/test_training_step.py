"""Training steps that are timed are training steps."""

from __future__ import annotations

import pytest
import torch

from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.bench.training_step import PlainStep, default_batch, our_training_step, peer_training_step

CPU = torch.device("cpu")


def test_batches_of_the_papers_recipes() -> None:
    assert (default_batch(1), default_batch(3)) == (128, 32)


def test_ours_takes_as_many_steps_as_asked_for_in_every_turn() -> None:
    contender = our_training_step("RKCNN-R-2@k=4", 4, "bf16", "eager", 2, CPU, steps=3)
    assert [contender.take_turn(count) > 0 for count in (3, 1, 3)] == [True] * 3
    found = contender.measurement
    assert (found.label, found.precision, found.batch) == ("rkcnn eager, 2 at once", "bf16", 4)


def test_our_convolutions_are_those_of_runs_and_a_peers_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours give the same bits every time, which may cost time; a peer's are the fastest, as in the authors' script."""
    used: list[tuple[bool, bool]] = []

    def note(*args: object) -> None:
        used.append((torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark))

    ours = our_training_step("RKCNN-R-2@k=4", 4, "fp32", "eager", 1, CPU, steps=1)
    peer = peer_training_step(PeerChoice("naive"), "RKCNN-E-1@k=4", 4, CPU, compare=False)
    monkeypatch.setattr("rkcnn.fit.engine.Engine.advance", note)
    monkeypatch.setattr("rkcnn.bench.training_step.PlainStep.take", note)
    ours.take_turn(1)
    peer.take_turn(1)
    assert used == [(True, False), (False, True)]


@pytest.mark.parametrize("engine", ["graph", "graph-uncompiled"])
def test_an_engine_that_the_device_has_not_is_no_other_engine(engine: str) -> None:
    with pytest.raises(CannotRun, match="no CUDA graph: it needs a GPU"):
        our_training_step("RKNet-radau3@k=4", 4, "fp32", engine, 1, CPU, steps=1)


def test_a_peer_learns() -> None:
    contender = peer_training_step(PeerChoice("naive"), "RKCNN-E-1@k=4", 4, CPU)
    assert contender.take_turn(2) > 0
    assert (contender.measurement.code, contender.measurement.difference) == ("naive", 0)
    layer = torch.nn.Linear(16, 10)
    before = layer.weight.clone()
    PlainStep(torch.nn.Sequential(torch.nn.Flatten(), layer), 2, 1, 4, CPU).take()
    assert not torch.equal(before, layer.weight)
