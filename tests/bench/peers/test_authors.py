"""The authors' network with our weights, by a stand-in for their checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers.stand_ins import write_authors
from rkcnn.bench.contender import create_network, image_size
from rkcnn.bench.peers.same_outputs import TOLERANCE, build_peer
from rkcnn.bench.plan import CannotRun, PeerChoice


@pytest.mark.parametrize(
    "name",
    [
        "RKCNN-R-2@k=4",  # with our stem and readout
        "RKCNN-E-3@k=4,stem=conv,norm=bn",
        "RKCNN-I-3_2@k=4_6,r=2,sweeps=2",
        "RKCNN-R-2_2@k=4,attention=off,multiscale=off",
    ],
)
def test_outputs_are_ours(name: str, tmp_path: Path) -> None:
    network = create_network(name)
    theirs, difference = build_peer(PeerChoice("authors", write_authors(tmp_path)), network, image_size(network))
    assert difference <= TOLERANCE
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("name", ["ResNet@k=4", "RKCNN-R-2@k=4,y=off", "RKCNN-R-2_2@k=4,norm=gn"])
def test_a_network_that_they_have_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="the authors' code has no"):
        build_peer(PeerChoice("authors", write_authors(tmp_path)), create_network(name), 28)
