"""Nothing is timed that does not compute what ours does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bench.peers.stand_ins import write_authors
from rkcnn.bench.contender import create_network
from rkcnn.bench.peers import same_outputs
from rkcnn.bench.peers.same_outputs import build_peer, choose_peers, compare_outputs
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.error import InputError
from rkcnn.model.network import Network


def test_another_function_is_refused_with_the_largest_difference(tmp_path: Path) -> None:
    peer = PeerChoice("authors", write_authors(tmp_path, factor=1.001))
    with pytest.raises(InputError, match=r"authors was not timed: .* differ from ours by \S+ of the largest one"):
        build_peer(peer, create_network("RKCNN-R-2@k=4"), 28)


class Slower(nn.Module):
    """The same in evaluation, and something else in training."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x) * (2 if self.training else 1)


def test_training_is_compared_too() -> None:
    network = create_network("RKCNN-R-2@k=4")
    assert isinstance(network, Network)
    assert compare_outputs(network, Slower, 28) == pytest.approx(1)
    assert compare_outputs(network, lambda ours: ours, 28) == 0
    assert compare_outputs(network, lambda ours: nn.Flatten(), 28) == float("inf")


def test_peers_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_outputs, "find_spec", lambda name: name in ("torchdiffeq", "timm") or None)
    names = {
        family: [peer.name for peer in choose_peers(family)] for family in ("RKCNN", "DenseNet", "RKNet", "ResNet")
    }
    assert names == {"RKCNN": ["naive"], "DenseNet": ["timm"], "RKNet": ["torchdiffeq"], "ResNet": []}
    monkeypatch.setattr(same_outputs, "find_spec", lambda name: None)
    assert [peer.name for peer in choose_peers("DenseNet")] == ["naive"]
    assert choose_peers("ODENet") == ()
    with pytest.raises(InputError, match="timm is not installed here"):
        build_peer(PeerChoice("timm"), create_network("DenseNet-2@k=4"), 28)


def test_the_published_originals_have_no_peers() -> None:
    with torch.device("meta"):
        network = create_network("ResNet-1001")
    with pytest.raises(CannotRun, match="our frame alone"):
        build_peer(PeerChoice("naive"), network, 32)
