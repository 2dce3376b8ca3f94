"""The naive writing."""

from __future__ import annotations

import pytest

from rkcnn.bench.contender import create_network, image_size
from rkcnn.bench.peers.same_outputs import TOLERANCE, build_peer
from rkcnn.bench.plan import CannotRun, PeerChoice

NAIVE = PeerChoice("naive")


@pytest.mark.parametrize(
    "name", ["RKCNN-E-3@k=4", "RKCNN-I-3@k=4,sweeps=2", "RKCNN-R-3_2@k=4_6,r=2", "DenseNet-2_2@k=4"]
)
def test_it_is_the_same_network(name: str) -> None:
    network = create_network(name)
    assert build_peer(NAIVE, network, image_size(network))[1] <= TOLERANCE


@pytest.mark.parametrize("name", ["ResNet@k=4", "RKCNN-I-2_2@k=4,merge=concat"])
def test_others_have_no_naive_writing(name: str) -> None:
    with pytest.raises(CannotRun, match="no naive writing of"):
        build_peer(NAIVE, create_network(name), 28)
