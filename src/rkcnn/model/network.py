"""The one frame: image -> preprocessor -> periods with transitions between them -> postprocessor -> logits.

Published originals are not made of periods; they share a class of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.families import FAMILIES
from rkcnn.model.frame import ConvStem, OdeNetStem, Readout, Transition
from rkcnn.model.layers import Layers, frozen_norms, has_autocast
from rkcnn.model.limits import EVALUATIONS, check_evaluations, check_limit, limited_parameters, may_be_large
from rkcnn.model.period import Period, load_class
from rkcnn.model.spec import ModelSpec, norms_of
from rkcnn.solvers.solver_step import Time

if TYPE_CHECKING:
    from rkcnn.model.fused import FusedNetwork


@dataclass(frozen=True)
class Trajectory:
    """The inside of one period: its states y_0 .. y_r with their times, and each step's increments e_i and guesses x_i.

    A time is that of the ODE, from 0 to 1; where learned steps have none, it is the number of steps taken. ANODE's
    y_0 is what the period is given, and has fewer channels than the other states, which are augmented.
    """

    y: list[Tensor]
    e: list[tuple[Tensor, ...]]
    x: list[tuple[Tensor, ...]]
    t: list[Time]


class Inferring(nn.Module):
    """A network that can be copied for inference."""

    def fused(
        self,
        precision: str = "fp32",
        *,
        engine: str = "auto",
        images: int | None = None,
        size: tuple[int, int] | None = None,
    ) -> FusedNetwork:
        """Return a copy for inference alone: batch norms folded into convolutions, in the fastest layout.

        `precision` is fp32, tf32 or bf16. `engine` is eager, compile or graph (compiled, as one CUDA graph for each
        size of batch), or auto: the fastest for so many `images` if their number is given, otherwise graph on a GPU
        and eager on a CPU. `size` is their height and width, if not that of the paper's data.
        """
        from rkcnn.model.fused import FusedNetwork

        return FusedNetwork(self, precision, engine, images, size)


class Network(Inferring):
    """A network with the preprocessor, transitions and postprocessor that all share; families differ in `periods`.

    With multiscale the classifier reads every period, each through a norm of its own; without it, the last alone.
    """

    def __init__(self, spec: ModelSpec, classes: int = 10, channels: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.name, self.spec, self.channels = str(spec), spec, channels
        check_evaluations(spec)
        if may_be_large(spec):
            with torch.device("meta"), limited_parameters(self.name):  # where parameters take no memory
                self._build(spec, classes, channels, dropout)
        with limited_parameters(self.name):
            self._build(spec, classes, channels, dropout)
        check_limit(self.name, EVALUATIONS, sum(self.evaluations))

    def _build(self, spec: ModelSpec, classes: int, channels: int, dropout: float) -> None:
        frame, block = norms_of(spec)
        around, inside = Layers(frame, dropout), Layers(block, dropout)
        k = spec.k
        self.preprocessor = OdeNetStem(channels, k[0], around) if spec.stem == "odenet" else ConvStem(channels, k[0])
        build = load_class(FAMILIES[spec.family].period)
        periods: list[Period] = [build(spec, i, inside) for i in range(spec.periods)]
        self.periods = nn.ModuleList(periods)
        self.transitions = nn.ModuleList(
            Transition(period.transition_channels, width, around, bool(spec.attention))
            for period, width in zip(periods, k[1:], strict=False)
        )
        read = periods if spec.multiscale else periods[-1:]
        self.readouts = nn.ModuleList(Readout(around.norm(period.classifier_channels)) for period in read)
        self.classifier = nn.Linear(sum(period.classifier_channels for period in read), classes)

    @property
    def evaluations(self) -> list[int]:
        """How often each period evaluates its f or its stage networks for one image, at least."""
        return [period.evaluations for period in self.periods if isinstance(period, Period)]

    @property
    def smallest(self) -> int:
        """The smallest height and width of an image that work: norms need 2 x 2 pixels in the last period."""
        last = 2 * 2 ** (self.spec.periods - 1)
        return 4 * last + 2 if self.spec.stem == "odenet" else last

    def forward(self, images: Tensor) -> Tensor:
        last = self.read_periods(images)[-len(self.readouts) :]
        return self.classifier(torch.cat([readout(out) for readout, out in zip(self.readouts, last, strict=True)], 1))

    def read_periods(self, images: Tensor, count: int | None = None) -> list[Tensor]:
        """Return what a classifier can read of each period, or of the first `count` alone; the rest is not computed."""
        y = self._preprocess(images)
        found: list[Tensor] = []
        for i, period in enumerate(self.periods[:count]):
            onward, out = period(y)
            found.append(out)
            if i < len(self.transitions):
                y = self.transitions[i](onward)
        return found

    @torch.no_grad()
    def trajectory(self, images: Tensor) -> list[Trajectory]:
        """Return the states and increments of every period, for pictures and analysis.

        The network stays as it was: in training mode too, no batch norm updates its running statistics.
        """
        with frozen_norms(self):
            return self._trajectory(self._preprocess(images))

    def _trajectory(self, y: Tensor) -> list[Trajectory]:
        found = []
        for i, period in enumerate(self.periods):
            assert isinstance(period, Period)
            steps = list(period.walk(y))
            times = [float(n) if step.t is None else step.t for n, step in enumerate(steps, 1)]
            found.append(
                Trajectory([y, *(s.y for s in steps)], [s.e for s in steps], [s.x for s in steps], [0.0, *times])
            )
            if i < len(self.transitions):
                onward, _ = period.outputs(found[-1].y[-1], steps[-1].e if steps else ())
                y = self.transitions[i](onward)
        return found

    def _preprocess(self, images: Tensor) -> Tensor:
        _check(self, images)
        return self.preprocessor(images)


def _check(network: Network | Published, images: Tensor) -> None:
    """Raise InputError for what the network can't take."""
    check_images(network.name, network.channels, network.smallest, images)
    weight = next(network.parameters(), None)  # None in a copy that torch.nn.DataParallel made
    if weight is not None and images.dtype != weight.dtype:
        check_precision(network.name, images, weight.dtype, rounds=has_autocast(images))


def check_images(name: str, channels: int, smallest: int, images: Tensor) -> None:
    """Raise InputError for a batch of images that a network can't take."""
    if not isinstance(images, Tensor):
        raise InputError(
            f"{name}: images of type {type(images).__name__} given; it takes a tensor (batch, {channels}, height, "
            "width)"
        )
    if images.dim() != 4 or images.shape[1] != channels:
        raise InputError(
            f"{name}: images of shape {tuple(images.shape)} given; it takes (batch, {channels}, height, width)"
        )
    if not images.is_floating_point():
        raise InputError(f"{name}: images of {images.dtype} given; it takes floats, normalised as it was trained with")
    if min(images.shape[2:]) < smallest:
        raise InputError(
            f"{name}: images of {images.shape[2]}x{images.shape[3]} given; the smallest it can take is "
            f"{smallest}x{smallest}"
        )


def check_precision(name: str, images: Tensor, weights: torch.dtype, rounds: bool) -> None:
    """Raise InputError for images of another precision than the weights.

    With `rounds` autocast converts both to its own precision, unless one of them is float64.
    """
    if images.dtype != weights and not (rounds and torch.float64 not in (images.dtype, weights)):
        raise InputError(
            f"{name}: images of {images.dtype} given, and its weights are {weights}; give images.to({weights}), or "
            f"convert the weights by network.to({images.dtype})"
        )


class Published(Inferring):
    """images -> `features` -> one linear classifier; a subclass writes `features` as its authors did."""

    name: str
    smallest: int = 8  # height and width of an image: after two halvings 2 x 2 pixels are left for the norms

    def __init__(self, classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.classifier = nn.Linear(width, classes)

    def features(self, images: Tensor) -> Tensor:
        """Return vectors of shape (batch, width) for the classifier."""
        raise NotImplementedError

    def trajectory(self, images: Tensor) -> NoReturn:
        """Raise InputError: published originals are not divided into periods and time-steps."""
        raise InputError(
            f"{self.name} is a published original and has no time-steps; networks with @ in their name have"
        )

    def forward(self, images: Tensor) -> Tensor:
        _check(self, images)
        return self.classifier(self.features(images))


def period_features(network: nn.Module, images: Tensor) -> list[Tensor]:
    """Return the state (N, channels, height, width) that each period ends with, for normalised images.

    Gradients flow to the images and the weights. The network stays as it was: in training mode too, no batch norm
    updates its running statistics. A published original has no periods: it gives one tensor (N, width), which its
    classifier reads.
    """
    with frozen_norms(network):
        if isinstance(network, Published):
            _check(network, images)
            return [network.features(images)]
        assert isinstance(network, Network)
        return network.read_periods(images)
