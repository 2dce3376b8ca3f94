"""The parts around the periods, by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.frame import Attention, ConvStem, OdeNetStem, Readout, StemConv, Transition
from rkcnn.model.layers import Layers
from rkcnn.model.steps.rkcnn import RKStep


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


@pytest.mark.parametrize("size", [(6, 8), (7, 8)])
@pytest.mark.parametrize("attention", [False, True])
def test_a_transition_that_pools_first_computes_the_same(size: tuple[int, int], attention: bool) -> None:
    torch.manual_seed(0)
    transition = Transition(6, 9, Layers("bn"), attention).double()
    x = torch.randn(2, 6, *size, dtype=torch.float64)
    found = []
    for pools_first in (False, True):
        transition.pools_first = pools_first
        transition.zero_grad()
        out = transition(x)
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in transition.parameters() if p.grad is not None)])
    for plain, pooled in zip(*found, strict=True):
        torch.testing.assert_close(pooled, plain)


def test_the_stem_trains_fused_only_with_autocast() -> None:
    stem, images = ConvStem(3, 4), torch.randn(2, 3, 6, 6)
    plain = stem(images)
    stem.fused = lambda conv, images: images + conv.weight.mean()
    assert torch.equal(stem(images), plain)
    with torch.autocast("cpu", torch.bfloat16):
        assert stem(images).shape == images.shape
        assert stem.eval()(images).shape == plain.shape
        stem.evaluates_fused = True
        assert stem(images).shape == images.shape
        assert not stem.fuses(images[:1].expand(2**28, 3, 6, 6))


def test_the_stem_takes_float32_only_where_tf32_is_allowed() -> None:
    stem, images = ConvStem(3, 4), torch.randn(2, 3, 6, 6)
    stem.fused = lambda conv, images: images
    assert not stem.fuses(images)
    stem.takes_tf32 = True
    assert stem.fuses(images)
    assert not stem.fuses(images.double())
    assert not stem.fuses(images.to("meta"))


@pytest.mark.parametrize("spec", ["RKCNN-I-2_2@k=4", "RKCNN-I-2@k=4,stem=odenet"])
def test_costs_of_a_network_with_fused_kernels_can_be_counted(spec: str) -> None:
    """They are counted on the meta device, of which torch knows no autocast: no fused run could write its result."""
    network = create_model(spec, 10, 3)
    expected = cost(network)
    for module in network.modules():
        if isinstance(module, StemConv | RKStep):
            module.fused = lambda *given: given[-1]
    assert cost(network) == expected
