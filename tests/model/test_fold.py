"""Batch norms folded into convolutions: the same outputs, by fewer layers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from model.after_training import build, distance, images, trained
from rkcnn.model.fold import ChannelAffine, fold_norms
from rkcnn.model.layers import Layers
from rkcnn.model.published.cliquenet import CompressedReadout
from rkcnn.model.published.densenet import DenseLayer
from rkcnn.model.published.momentum import bottleneck
from rkcnn.model.published.resnet import Bottleneck
from zoo import STATIC, ZOO


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(STATIC),
    channels=st.sampled_from((1, 3)),
    count=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@torch.no_grad()
def test_a_folded_network_computes_the_same(name: str, channels: int, count: int, seed: int) -> None:
    network = build(name, channels, seed)
    x = images(network, count)
    plain = network(x)
    assert distance(fold_norms(network)(x), plain) < 1e-5
    network.double()
    assert distance(fold_norms(network)(x.double()), network(x.double())) < 1e-12


@torch.no_grad()
@pytest.mark.parametrize("name", ZOO)
def test_every_family_can_be_folded(name: str) -> None:
    network = build(name).double()
    x = images(network).double()
    # where the data decides on the steps, rounding may decide too, and then the answers agree as far as the tolerance
    bound = 1e-11 if name in STATIC else 1e-6
    assert distance(fold_norms(network)(x), network(x)) < bound


def test_the_network_and_its_gradients_stay_as_they_were() -> None:
    network = build("RKCNN-R-2@k=8").train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    folded = fold_norms(network)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert not folded.training
    assert not any(parameter.requires_grad for parameter in folded.parameters())


@pytest.mark.parametrize(
    ("name", "norms", "left"),
    [
        ("RKCNN-R-2@k=8", 8, 4),  # of each of four stages norm2 is folded; the frame has group norm
        ("ResNet@k=8,norm=bn", 5, 2),
        ("RKNet-rk4_38@k=8,norm=bn", 6, 2),
        ("RKNet-rk4_38@k=8,norm=bn,statistics=each", 6, 4),  # of f none, as it has other numbers in each evaluation
        ("CliqueNet-3@k=8", 12, 12),  # both phases read the same 1x1 convolution, each by its own norm
        ("Identity@k=8_8_8", 5, 5),  # nothing to fold
    ],
)
def test_how_many_norms_are_left(name: str, norms: int, left: int) -> None:
    network = build(name)
    assert sum(isinstance(module, nn.BatchNorm2d) for module in network.modules()) == norms
    folded = fold_norms(network)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert sum(isinstance(module, ChannelAffine) for module in folded.modules()) == left


def test_group_norms_stay() -> None:
    network = build("RKNN-rk4_38@k=8_8,norm=gn")
    counts = [sum(isinstance(m, nn.GroupNorm) for m in each.modules()) for each in (network, fold_norms(network))]
    assert counts[0] == counts[1] > 0


LAYERS = Layers("torch")


@pytest.mark.parametrize(
    ("block", "left"),
    [
        (Bottleneck(8, 4, 2, LAYERS), 1),
        (DenseLayer(8, 3, True, LAYERS), 1),
        (DenseLayer(8, 3, False, LAYERS), 1),
        (CompressedReadout(8, LAYERS), 1),
        (bottleneck(8, 4, 1, LAYERS), 0),
    ],
)
@torch.no_grad()
def test_blocks_of_the_published_originals(block: nn.Module, left: int) -> None:
    block = trained(block).double().eval()
    x = torch.randn(3, 8, 7, 6, dtype=torch.float64)
    folded = fold_norms(block)
    assert distance(folded(x), block(x)) < 1e-13
    assert sum(isinstance(module, ChannelAffine) for module in folded.modules()) == left


@torch.no_grad()
def test_an_affine_map_of_channels_rounds_once() -> None:
    scale, shift = torch.tensor([2.0, -0.3]), torch.tensor([0.1, 5.0])
    layer = ChannelAffine(scale, shift)
    x = torch.randn(3, 2, 4, 4)
    assert torch.allclose(layer(x), x * scale[:, None, None] + shift[:, None, None], atol=1e-6)
    low = x.bfloat16()
    expected = (low.float() * scale[:, None, None] + shift[:, None, None]).bfloat16()
    assert layer(low).dtype == torch.bfloat16
    assert torch.allclose(layer(low).float(), expected.float(), rtol=2**-7)
