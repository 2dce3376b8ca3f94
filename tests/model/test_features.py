"""The features of each period."""

from __future__ import annotations

import copy

import pytest
import torch

from rkcnn.model.create import create_model
from rkcnn.model.features import period_features
from rkcnn.model.network import Network
from zoo import ZOO


@pytest.mark.parametrize("name", ZOO)
def test_the_classifier_reads_them(name: str) -> None:
    torch.manual_seed(0)
    network = create_model(name).eval()
    assert isinstance(network, Network)
    images = torch.randn(2, 3, network.smallest, network.smallest)
    with torch.no_grad():
        features = period_features(network, images)
        assert len(features) == network.spec.periods
        read = [see(each) for see, each in zip(network.readouts, features[-len(network.readouts) :], strict=True)]
        torch.testing.assert_close(network.classifier(torch.cat(read, 1)), network(images), rtol=1e-4, atol=1e-4)


def test_gradients_flow_and_nothing_moves_in_training_mode() -> None:
    network = create_model("RKCNN-R-2_2@k=8").train()
    before = copy.deepcopy(network.state_dict())
    images = torch.randn(2, 3, 12, 12, requires_grad=True)
    first, last = period_features(network, images)
    assert (first.shape, last.shape) == ((2, 8, 12, 12), (2, 8, 6, 6))
    last.square().sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not any(module._forward_hooks for module in network.modules()), "hooks are removed"


def test_a_published_original_gives_what_its_classifier_reads() -> None:
    with torch.device("meta"):
        network = create_model("CliqueNet-k80-T18")
        (features,) = period_features(network, torch.empty(2, 3, 32, 32))
    assert features.shape == (2, network.classifier.in_features)
