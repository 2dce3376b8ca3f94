"""The linear multistep network."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.lm import LinearMultistep


def test_the_equation() -> None:
    torch.manual_seed(0)
    period = LinearMultistep(parse("LM@k=8,r=3"), 0, Layers("gn"))
    assert period.c.shape == (2,)
    assert -0.1 <= float(period.c.detach().min()) <= float(period.c.detach().max()) <= 0
    y = [torch.randn(2, 8, 5, 5)]
    y.append(y[0] + period.steps[0](y[0]))
    for n in (1, 2):
        c = period.c[n - 1]
        y.append((1 - c) * y[n] + c * y[n - 1] + period.steps[n](y[n]))
    torch.testing.assert_close(period(y[0])[0], y[3])
