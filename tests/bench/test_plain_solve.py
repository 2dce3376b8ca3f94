"""rkcnn.solve beside odeint."""

from __future__ import annotations

import pytest
import torch

from rkcnn.bench.peers.in_frame import TORCHDIFFEQ
from rkcnn.bench.plain_solve import plain_solves
from rkcnn.error import InputError

CPU = torch.device("cpu")


def test_both_solve_the_same() -> None:
    ours, theirs = plain_solves("ODENet-ab@k=4", 2, CPU, theirs=True)
    assert (ours.measurement.code, theirs.measurement.code) == ("rkcnn.solve", "torchdiffeq")
    assert ours.measurement.group == theirs.measurement.group
    assert ours.take_turn(1) > 0
    assert theirs.take_turn(1) > 0
    assert (theirs.measurement.difference or 0) < 1e-12


def test_alone_or_not_at_all() -> None:
    assert len(list(plain_solves("RKNN-euler@k=4", 2, CPU, theirs=False))) == 1
    assert not list(plain_solves("RKNet-radau3@k=4", 2, CPU, theirs=True))
    assert not list(plain_solves("ResNet@k=4", 2, CPU, theirs=True))


def test_another_solution_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TORCHDIFFEQ, "rk4_38", ("midpoint", {}))
    with pytest.raises(InputError, match=r"torchdiffeq was not timed: .* differs from ours by"):
        list(plain_solves("RKNet-rk4_38@k=4", 2, CPU, theirs=True))
