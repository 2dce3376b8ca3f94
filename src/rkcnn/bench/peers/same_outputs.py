"""Builds a peer's network with our weights, and compares its outputs with ours before anything is timed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from rkcnn.bench.peers.authors import build_authors
from rkcnn.bench.peers.checkout import PLACES, find_file
from rkcnn.bench.peers.in_frame import build_cliquenet, build_dense, build_torchdiffeq
from rkcnn.bench.peers.naive import build_naive
from rkcnn.bench.plan import PACKAGES, CannotRun, PeerChoice
from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.network import Network, Published

TOLERANCE = 1e-9  # of the largest output, in float64: two orders of summation differ by some 1e-14

_BUILDERS: dict[str, Callable[[PeerChoice, Network], nn.Module]] = {
    "authors": build_authors,
    "cliquenet": build_cliquenet,
    "torchdiffeq": build_torchdiffeq,
    "torchvision": build_dense,
    "timm": build_dense,
    "naive": build_naive,
}


def choose_peers(family: str) -> tuple[PeerChoice, ...]:
    """Return the peers of a family where none were named: what is installed of them, or the naive writing."""
    wanted = {
        "RKCNN": (),
        "DenseNet": ("torchvision", "timm"),
        **dict.fromkeys(("RKNN", "RKNet", "ODENet"), ("torchdiffeq",)),
    }.get(family)
    if wanted is None:
        return ()
    installed = tuple(PeerChoice(name) for name in wanted if find_spec(name) is not None)
    return installed or (() if "torchdiffeq" in wanted else (PeerChoice("naive"),))


def check_peer(peer: PeerChoice) -> None:
    """Raise InputError if a peer is not installed, or if its folder is not its checkout."""
    if peer.name in PLACES:
        find_file(peer, PLACES[peer.name])
    if peer.name in PACKAGES and find_spec(peer.name) is None:
        raise InputError(f"`peer={peer.name}` given, and {peer.name} is not installed here; install it or leave it out")


def build_uncompared(peer: PeerChoice, network: Network | Published) -> nn.Module:
    """Return the peer's network with our weights; CannotRun if it has no such network."""
    if not isinstance(network, Network):
        raise CannotRun("peers are compared on networks of our frame alone, such as RKCNN-I-2_2_2@k=120")
    return _BUILDERS[peer.name](peer, network)


def build_peer(peer: PeerChoice, network: Network | Published, size: int) -> tuple[nn.Module, float]:
    """Return the peer's network with our weights, and the largest difference of its outputs from ours.

    It is relative to the largest output, for images of that size, in training and in evaluation, in float64, and with
    random norms, since those of new networks would hide a mistake. Raises CannotRun if the peer has no such network,
    and InputError if the peer is not there, or if the difference is more than rounding.
    """
    check_peer(peer)
    theirs = build_uncompared(peer, network)  # what can't be built is said before the slower comparison
    difference = _compare_once(peer, network.name, network.channels, size)
    if not difference <= TOLERANCE:
        raise InputError(
            f"{peer.name} was not timed: with the weights of {network.name} its outputs differ from ours by "
            f"{difference:.2g} of the largest one, and up to {TOLERANCE:g} is rounding"
        )
    return theirs, difference


@cache
def _compare_once(peer: PeerChoice, name: str, channels: int, size: int) -> float:
    network = create_model(name, 10, channels)
    assert isinstance(network, Network)
    return compare_outputs(network, partial(_BUILDERS[peer.name], peer), size)


def compare_outputs(network: Network, build: Callable[[Network], nn.Module], size: int) -> float:
    """Return the largest difference between a network's outputs and those of what `build` makes of its weights."""
    ours = copy.deepcopy(network).cpu().double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in ours.state_dict().items():
            if tensor.is_floating_point() and "norm" in name:
                drawn = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
                tensor.copy_(drawn + 0.5 if name.endswith(("weight", "running_var")) else drawn - 0.5)
    theirs = build(ours)
    images = torch.randn(2, network.channels, size, size, generator=generator, dtype=torch.float64)
    found = 0.0
    for training in (False, True):
        with torch.no_grad():
            a: Tensor = ours.train(training)(images)
            b: Tensor = theirs.train(training)(images)
        if a.shape != b.shape or not b.isfinite().all():
            return float("inf")
        found = max(found, float((a - b).abs().max() / a.abs().max()))
    return found
