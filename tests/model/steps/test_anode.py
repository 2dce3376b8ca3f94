"""Augmented neural ODE."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.anode import Anode
from rkcnn.solvers.explicit import explicit
from rkcnn.solvers.methods import rk4_38


def test_zeros_are_appended_and_all_channels_go_on() -> None:
    torch.manual_seed(0)
    period = Anode(parse("ANODE@k=8,p=3"), 0, Layers("gn"))
    y = torch.randn(2, 8, 5, 5)
    onward, _ = period(y)
    assert (period.transition_channels, period.classifier_channels, onward.shape[1]) == (11, 11, 11)
    (expected,) = explicit(period.f, F.pad(y, (0, 0, 0, 0, 0, 3)), rk4_38)
    assert torch.equal(onward, expected.y)
