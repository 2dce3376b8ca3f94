"""Forward passes."""

from __future__ import annotations

import pytest
import torch

from rkcnn.bench.forward_pass import our_forward_pass, peer_forward_pass
from rkcnn.bench.plan import CannotRun, PeerChoice

CPU = torch.device("cpu")


def test_ours_and_a_peers() -> None:
    ours = our_forward_pass("RKCNN-R-2@k=4", 2, "bf16", "eager", CPU)
    theirs = peer_forward_pass(PeerChoice("naive"), "RKCNN-R-2@k=4", 2, CPU)
    assert ours.take_turn(2) > 0
    assert theirs.take_turn(2) > 0
    assert ours.measurement.group == theirs.measurement.group == ("forward pass", "RKCNN-R-2@k=4", 2)
    assert ours.measurement.flops == theirs.measurement.flops


def test_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a compiler that returns what it is given: the real one takes half a minute."""
    monkeypatch.setattr("torch.compile", lambda compute, dynamic: compute)
    monkeypatch.setattr("shutil.which", lambda name: "/c++")
    assert our_forward_pass("ResNet@k=4", 2, "fp32", "compile", CPU).take_turn(1) > 0


def test_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eagerly, and by a compiler that returns what it is given."""
    eager = our_forward_pass("RKCNN-R-2@k=4", 3, "bf16", "fused-eager", CPU)
    assert eager.take_turn(2) > 0
    assert eager.measurement.engine == "fused-eager"
    monkeypatch.setattr("torch.compile", lambda compute, dynamic: compute)
    monkeypatch.setattr("shutil.which", lambda name: "/c++")
    assert our_forward_pass("ResNet@k=4", 3, "fp32", "fused", CPU).take_turn(1) > 0
    with pytest.raises(CannotRun, match="depends on the data"):
        our_forward_pass("RKNet-radau3@k=4", 2, "fp32", "fused", CPU)


def test_why_an_engine_can_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotRun, match="a CUDA graph needs a GPU"):
        our_forward_pass("ResNet@k=4", 2, "fp32", "graph", CPU)
    with pytest.raises(CannotRun, match="depends on the data"):
        our_forward_pass("RKNet-radau3@k=4", 2, "fp32", "compile", CPU)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CannotRun, match="needs a C\\+\\+ compiler"):
        our_forward_pass("ResNet@k=4", 2, "fp32", "compile", CPU)
