"""Blocks and solvers of others in our frame."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from bench.peers.stand_ins import write_clique
from rkcnn.bench.contender import create_network, image_size
from rkcnn.bench.peers.same_outputs import TOLERANCE, build_peer
from rkcnn.bench.plan import CannotRun, PeerChoice


def difference(peer: PeerChoice, name: str) -> float:
    network = create_network(name)
    return build_peer(peer, network, image_size(network))[1]


@pytest.mark.parametrize("name", ["CliqueNet-2@k=4", "CliqueNet-4_3@k=4"])
def test_cliquenets_block_is_ours(name: str, tmp_path: Path) -> None:
    assert difference(PeerChoice("cliquenet", write_clique(tmp_path)), name) <= TOLERANCE


@pytest.mark.parametrize(
    "name",
    [
        *("RKNet-rk4_38@k=4", "ODENet-ab@k=4", "RKNN-midpoint@k=4,r=3", "RKNN-euler@k=4_4,norm=gn"),
        *("RKNet-rk4_38@k=4_4,statistics=each", "ODENet-ab@k=4_4,statistics=each"),
    ],
)
def test_torchdiffeq_takes_the_same_steps(name: str) -> None:
    assert difference(PeerChoice("torchdiffeq"), name) <= TOLERANCE


@pytest.mark.parametrize("name", ["RKNet-radau3@k=4", "RKNet-dopri5@k=4,tol=0.01", "ResNet@k=4"])
def test_what_torchdiffeq_can_not_solve(name: str) -> None:
    with pytest.raises(CannotRun, match="can't be solved by torchdiffeq"):
        difference(PeerChoice("torchdiffeq"), name)


class DenseLayer(nn.Module):
    def __init__(self, inputs: int, k: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, k, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(k), nn.Conv2d(k, k, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.norm2(self.conv1(self.norm1(x).relu())).relu())


class DenseBlock(nn.Module):
    """As torchvision's and timm's are called."""

    def __init__(
        self, num_layers: int, num_input_features: int, bn_size: int, growth_rate: int, drop_rate: float = 0.0
    ) -> None:
        super().__init__()
        for i in range(num_layers):
            self.add_module(f"denselayer{i + 1}", DenseLayer(num_input_features + i * growth_rate, growth_rate))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = torch.cat([x, layer(x)], 1)
        return x


@pytest.mark.parametrize(("package", "block"), [("torchvision", "_DenseBlock"), ("timm", "DenseBlock")])
def test_a_dense_block_of_an_installed_package(package: str, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (package, f"{package}.models", f"{package}.models.densenet"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    setattr(module, block, DenseBlock)
    assert difference(PeerChoice(package), "DenseNet-3_2@k=4_6") <= TOLERANCE
    with pytest.raises(CannotRun, match="has no ResNet@k=4"):
        difference(PeerChoice(package), "ResNet@k=4")


def test_a_package_without_a_dense_block_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("timm")
    module.__spec__ = ModuleSpec("timm", None)
    monkeypatch.setitem(sys.modules, "timm", module)
    with pytest.raises(CannotRun, match="timm's DenseNet can't be imported"):
        difference(PeerChoice("timm"), "DenseNet-2@k=6")
