"""The parts around the periods, by hand."""

from __future__ import annotations

import torch
from torch import nn

from rkcnn.model.frame import Attention, OdeNetStem, Readout, Transition
from rkcnn.model.layers import Layers


def test_ode_net_stem_maps_28_to_6_with_the_papers_parameters() -> None:
    stem = OdeNetStem(1, 32, Layers("gn"))
    assert stem(torch.randn(2, 1, 28, 28)).shape == (2, 32, 6, 6)
    assert sum(p.numel() for p in stem.parameters()) == 32 * 32**2 + 16 * 32


def test_attention_scales_channels() -> None:
    torch.manual_seed(0)
    attention, x = Attention(6), torch.randn(2, 6, 3, 4)
    mean = x.sum((2, 3)) / 12
    hidden = (mean @ attention.squeeze.weight.T + attention.squeeze.bias).clamp(min=0)
    scale = 1 / (1 + torch.exp(-(hidden @ attention.excite.weight.T + attention.excite.bias)))
    torch.testing.assert_close(attention(x), x * scale[:, :, None, None])


def test_transition_halves_also_odd_sizes() -> None:
    transition = Transition(6, 9, Layers("bn"), attention=True)
    assert transition(torch.randn(2, 6, 7, 9)).shape == (2, 9, 3, 4)
    assert Transition(6, 9, Layers("bn"), attention=False).attention is None


def test_readout_is_the_mean_of_the_activated_or_of_all() -> None:
    x = torch.randn(2, 3, 4, 5)
    torch.testing.assert_close(Readout(nn.Identity())(x), x.clamp(min=0).sum((2, 3)) / 20)
    torch.testing.assert_close(Readout(None)(x), x.sum((2, 3)) / 20)
