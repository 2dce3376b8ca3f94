"""What a period promises."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.model.period import Period, TimeStep


class Doubling(Period):
    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        for _ in range(3):
            e = y
            y = y + e
            yield TimeStep(y, (e,))


def test_the_last_state_goes_on_and_is_read_out() -> None:
    onward, readout = Doubling(transition_channels=2)(torch.ones(1, 2))
    assert onward.tolist() == readout.tolist() == [[8.0, 8.0]]


def test_the_readout_is_as_wide_as_what_goes_on_unless_told() -> None:
    assert Doubling(transition_channels=2).classifier_channels == 2
    assert Doubling(transition_channels=2, classifier_channels=6).classifier_channels == 6
