"""The one frame: image -> preprocessor -> periods with transitions between them -> postprocessor -> logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.frame import OdeNetStem, Readout, Transition
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period
from rkcnn.model.spec import ModelSpec, norms_of
from rkcnn.model.steps.anode import Anode
from rkcnn.model.steps.clique import CliqueNet
from rkcnn.model.steps.dense import DenseNet
from rkcnn.model.steps.hamiltonian import Hamiltonian
from rkcnn.model.steps.identity import Identity
from rkcnn.model.steps.leapfrog import Leapfrog
from rkcnn.model.steps.lm import LinearMultistep
from rkcnn.model.steps.midpoint import Midpoint
from rkcnn.model.steps.momentum import Momentum
from rkcnn.model.steps.ode import OdeNet
from rkcnn.model.steps.resnet import ResNet
from rkcnn.model.steps.rkcnn import RKCNN
from rkcnn.model.steps.sonode import Sonode

PERIODS: dict[str, Callable[[ModelSpec, int, Layers], Period]] = {
    "RKCNN": RKCNN,
    "ResNet": ResNet,
    "RKNN": OdeNet,
    "RKNet": OdeNet,
    "ODENet": OdeNet,
    "SONODE": Sonode,
    "ANODE": Anode,
    "DenseNet": DenseNet,
    "CliqueNet": CliqueNet,
    "Momentum": Momentum,
    "LM": LinearMultistep,
    "Leapfrog": Leapfrog,
    "Midpoint": Midpoint,
    "Hamiltonian": Hamiltonian,
    "Identity": Identity,
}


@dataclass(frozen=True)
class Trajectory:
    """One period seen from inside: y_0 .. y_r, and for each step its increments e_i and guesses x_i."""

    y: list[Tensor]
    e: list[tuple[Tensor, ...]]
    x: list[tuple[Tensor, ...]]


class Network(nn.Module):
    """Any network of the paper: what differs between rivals is inside `periods`.

    Multiscale: the classifier reads every period, each through its own norm; without it, the last alone.
    """

    def __init__(self, spec: ModelSpec, classes: int = 10, channels: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.name, self.spec, self.channels = str(spec), spec, channels
        frame, block = norms_of(spec)
        around, inside = Layers(frame, dropout), Layers(block, dropout)
        k = spec.k
        self.preprocessor = (
            OdeNetStem(channels, k[0], around)
            if spec.stem == "odenet"
            else nn.Conv2d(channels, k[0], 3, padding=1, bias=False)
        )
        periods = [PERIODS[spec.family](spec, i, inside) for i in range(spec.periods)]
        self.periods = nn.ModuleList(periods)
        self.transitions = nn.ModuleList(
            Transition(period.onward, width, around, bool(spec.attention))
            for period, width in zip(periods, k[1:], strict=False)
        )
        read = periods if spec.multiscale else periods[-1:]
        self.readouts = nn.ModuleList(Readout(around.norm(period.readout)) for period in read)
        self.classifier = nn.Linear(sum(period.readout for period in read), classes)

    @property
    def smallest(self) -> int:
        """The smallest image side that works: norms need 2 x 2 pixels in the last period."""
        last = 2 * 2 ** (self.spec.periods - 1)
        return 4 * last + 2 if self.spec.stem == "odenet" else last

    def forward(self, images: Tensor) -> Tensor:
        y = self._enter(images)
        read = []
        for i, period in enumerate(self.periods):
            onward, out = period(y)
            read.append(out)
            if i < len(self.transitions):
                y = self.transitions[i](onward)
        last = read[-len(self.readouts) :]
        return self.classifier(torch.cat([see(out) for see, out in zip(self.readouts, last, strict=True)], 1))

    @torch.no_grad()
    def trajectory(self, images: Tensor) -> list[Trajectory]:
        """The states and increments of every period, for pictures and analysis."""
        y = self._enter(images)
        seen = []
        for i, period in enumerate(self.periods):
            assert isinstance(period, Period)
            moves = list(period.walk(y))
            seen.append(Trajectory([y, *(m.y for m in moves)], [m.e for m in moves], [m.x for m in moves]))
            if i < len(self.transitions):
                onward, _ = period.ends(seen[-1].y[-1], moves[-1].e if moves else ())
                y = self.transitions[i](onward)
        return seen

    def _enter(self, images: Tensor) -> Tensor:
        check_images(self.name, self.channels, self.smallest, images)
        return self.preprocessor(images)


def check_images(name: str, channels: int, smallest: int, images: Tensor) -> None:
    """Refuse a batch that a network can't take, in one sentence."""
    if images.dim() != 4 or images.shape[1] != channels:
        raise InputError(
            f"{name}: images of shape {tuple(images.shape)} given; it takes (batch, {channels}, height, width)"
        )
    if min(images.shape[2:]) < smallest:
        raise InputError(
            f"{name}: images of {images.shape[2]}x{images.shape[3]} given; the smallest it can take is "
            f"{smallest}x{smallest}"
        )
