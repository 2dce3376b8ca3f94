"""Peers that have a block or a solver, and no network like ours: their blocks stand in a copy of our frame."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from rkcnn.bench.peers.checkout import PLACES, import_file
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.error import InputError
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.network import Network
from rkcnn.model.solver import NumberedEvaluations
from rkcnn.model.spec import norms_of

TORCHDIFFEQ = {  # our method -> theirs, and its options
    "euler": ("euler", {}),
    "midpoint": ("midpoint", {}),
    "rk4_38": ("rk4", {}),
    "ab": ("explicit_adams", {"max_order": 5}),
}
FAMILIES_WITH_F = ("RKNN", "RKNet", "ODENet")


class TheirBlock(nn.Module):
    """A block of somebody's code as a period of our frame: `outputs` makes the pair of what it returns."""

    def __init__(self, block: nn.Module, outputs: Callable[[Any], tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.block, self.outputs = block, outputs

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs(self.block(y))


class TheirSolve(nn.Module):
    """A period whose f is ours, solved by torchdiffeq's odeint with as many equal steps.

    With `numbered` f takes the number of the evaluation as well.
    """

    def __init__(self, f: nn.Module, method: str, steps: int, numbered: bool = False) -> None:
        super().__init__()
        self.f, self.numbered = f, numbered
        name, options = TORCHDIFFEQ[method]
        self.settings = {"method": name, "options": {**options, "step_size": 1 / steps}}
        self.odeint = import_module("torchdiffeq").odeint

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        ends = torch.tensor([0.0, 1.0], dtype=y.dtype, device=y.device)
        f = NumberedEvaluations(self.f) if self.numbered else self.f
        end = self.odeint(f, y, ends, **self.settings)[1]
        return end, end


def build_torchdiffeq(peer: PeerChoice, network: Network) -> nn.Module:
    """Return our network with every period solved by torchdiffeq; CannotRun for a method that it has not."""
    spec = network.spec
    if spec.solver not in TORCHDIFFEQ or spec.tol is not None or spec.adjoint or spec.family not in FAMILIES_WITH_F:
        raise CannotRun(
            f"{network.name} can't be solved by torchdiffeq in the same steps; networks are "
            f"{', '.join(FAMILIES_WITH_F)} with {', '.join(TORCHDIFFEQ)}"
        )
    numbered = spec.statistics == "each"
    return _replace_periods(
        network, lambda period, i: TheirSolve(period.get_submodule("f"), spec.solver or "", spec.r[i], numbered)
    )


def build_cliquenet(peer: PeerChoice, network: Network) -> nn.Module:
    """Return our network with CliqueNet's own blocks (iboing/CliqueNet, its PyTorch code for ImageNet)."""
    if network.spec.family != "CliqueNet" or norms_of(network.spec)[1] != "bn" or (network.spec.sweeps or 1) != 1:
        raise CannotRun(f"CliqueNet's code has no {network.name}: it has CliqueNet with batch norm and one sweep")
    make = getattr(import_file(peer, PLACES["cliquenet"]), "clique_block", None)
    if make is None:
        raise InputError(
            f"`peer={peer}` given; its {PLACES['cliquenet']} has no clique_block; give a checkout of iboing/CliqueNet"
        )

    def build(period: nn.Module, i: int) -> nn.Module:
        s, k = network.spec.stages[i], network.spec.k[i]
        block = make(input_channels=k, channels_per_layer=k, layer_num=s, loop_num=1, keep_prob=1)
        _load(block, _clique_weights(period.state_dict(), s, k))
        return TheirBlock(block, lambda features: (features[1], features[0]))

    return _replace_periods(network, build)


def _clique_weights(ours: dict[str, Tensor], s: int, k: int) -> dict[str, Tensor]:
    """Return our weights by their names: theirs are one matrix for each pair of source and layer, 0 being y."""
    found: dict[str, Tensor] = {}
    for j in range(1, s + 1):
        stage = f"step.both.{j - 1}."
        sources = [i for i in range(s + 1) if i != j]
        for i, matrix in zip(sources, ours[f"{stage}narrow.weight"].split(k, 1), strict=True):
            found[f"conv_param.{i * (s + 1) + j}.weight"] = matrix
        found[f"conv_param_bottle.{j - 1}.weight"] = ours[f"{stage}conv.weight"]
        for norm, theirs in (("norm1_1", "forward_bn"), ("norm2_1", "forward_bn_b")):
            found |= _under(ours, f"{stage}{norm}.", f"{theirs}.{j - 1}.")
        for norm, theirs in (("norm1_2", "loop_bn"), ("norm2_2", "loop_bn_b")):
            found |= _under(ours, f"{stage}{norm}.", f"{theirs}.{j - 1}.")
    return found


def build_dense(peer: PeerChoice, network: Network) -> nn.Module:
    """Return our network with the dense blocks of torchvision or timm, whichever the peer is."""
    if network.spec.family != "DenseNet" or norms_of(network.spec)[1] != "bn":
        raise CannotRun(f"{peer.name} has no {network.name}: it has DenseNet with batch norm")
    try:
        module = import_module(f"{peer.name}.models.densenet")
        make = getattr(module, "DenseBlock", None) or module._DenseBlock  # timm's name, and torchvision's
    except (ImportError, RuntimeError, AttributeError) as error:  # an installed torchvision may not fit torch
        raise CannotRun(f"{peer.name}'s DenseNet can't be imported: {str(error).partition(chr(10))[0]}") from error
    extra = {"drop_rate": 0.0} if peer.name == "torchvision" else {}

    def build(period: nn.Module, i: int) -> nn.Module:
        s, k = network.spec.stages[i], network.spec.k[i]
        block = make(num_layers=s, num_input_features=k, bn_size=1, growth_rate=k, **extra)
        ours = period.state_dict()
        found: dict[str, Tensor] = {}
        for j in range(s):
            for layer, theirs in (("norm1", "norm1"), ("narrow", "conv1"), ("norm2", "norm2"), ("conv", "conv2")):
                found |= _under(ours, f"step.guess.{j}.{layer}.", f"denselayer{j + 1}.{theirs}.")
        _load(block, found)
        return TheirBlock(block, lambda out: (out, out))

    return _replace_periods(network, build)


def _replace_periods(network: Network, build: Callable[[nn.Module, int], nn.Module]) -> nn.Module:
    """Return a copy of the network whose periods are what `build` makes of ours."""
    copied = copy.deepcopy(network)
    dtype = next(copied.parameters()).dtype
    copied.periods = nn.ModuleList(build(period, i).to(dtype) for i, period in enumerate(copied.periods))
    return copied


def _under(weights: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    """Return the weights whose names begin with `ours`, with `theirs` in its place."""
    return {theirs + name.removeprefix(ours): value for name, value in weights.items() if name.startswith(ours)}


def _load(block: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load weights, and give the block's batch norms the constants of ours, which no weights hold."""
    ours = BatchNorm(1)
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps, module.momentum = ours.eps, ours.momentum
    block.to(next(iter(weights.values())).dtype).load_state_dict(weights)
