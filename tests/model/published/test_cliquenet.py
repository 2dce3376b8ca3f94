"""The original clique block."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.layers import Layers
from rkcnn.model.published.cliquenet import CliqueBlock
from rkcnn.model.spec import parse
from rkcnn.model.steps.clique import CliqueNet


def test_with_equal_widths_it_is_the_frames_clique_block() -> None:
    torch.manual_seed(0)
    ours = CliqueNet(parse("CliqueNet-3@k=4"), 0, Layers("bn")).eval()
    original = CliqueBlock(4, 4, 3, True, Layers("bn")).eval()
    original.load_state_dict({k.replace("step.both", "stages"): v for k, v in ours.state_dict().items()})
    y = torch.randn(2, 4, 5, 5)
    for a, b in zip(ours(y), original(y), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("bottleneck", [False, True])
def test_widths(bottleneck: bool) -> None:
    onward, readout = CliqueBlock(6, 4, 3, bottleneck, Layers("bn"))(torch.randn(2, 6, 5, 5))
    assert (onward.shape[1], readout.shape[1]) == (12, 18)
