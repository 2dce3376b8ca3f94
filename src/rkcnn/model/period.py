"""The base class of every family of networks: a period, which is made of time-steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.families import FAMILIES
from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.solver_step import SolverStats, Time


@dataclass(frozen=True)
class TimeStep:
    """One time-step: the new state, the increments that made it, the guesses they came from, and the new time.

    Only an ODE has a time; a learned step absorbs its size into its weights.
    """

    y: Tensor
    e: tuple[Tensor, ...]
    x: tuple[Tensor, ...] = ()
    t: Time | None = None


class PaperSolveCost(NamedTuple):
    """What the paper's FLOP column counts for a solve: evaluations of f, and operations for each element of y."""

    evaluations: int
    operations: int


class Period(nn.Module):
    """What happens between two changes of resolution: y -> (what goes on to the transition, what the classifier reads).

    A subclass takes (spec, index of the period, layers) and implements `walk`. Its last state goes to the transition
    and to the classifier; override `outputs` to change that.
    """

    transition_channels: int  # of what goes on to the transition
    classifier_channels: int  # of what the classifier reads
    unit: str = "f"  # what `evaluations` counts: evaluations of f, or stage networks
    evaluations: int = 0  # for one image; the least where the number depends on the data
    exact: bool = True  # whether `evaluations` is the same for all data
    paper_solve_cost: PaperSolveCost | None = None
    has_paper_flops: bool = True  # whether the paper's FLOP convention covers this period
    solver_stats: SolverStats | None = None
    part_titles: ClassVar[Mapping[str, str]] = {}  # of submodules, where `outline.TITLES` has none or others

    def __init__(self, transition_channels: int, classifier_channels: int | None = None) -> None:
        super().__init__()
        self.transition_channels = transition_channels
        self.classifier_channels = transition_channels if classifier_channels is None else classifier_channels

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        """Yield the time-steps from y on."""
        raise NotImplementedError

    def outputs(self, last: Tensor, e: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return what goes on to the transition and what the classifier reads, given the last state and increments."""
        return last, last

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        e: tuple[Tensor, ...] = ()
        for step in self.walk(y):
            y, e = step.y, step.e
        return self.outputs(y, e)

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        """Add what one time-step of the first period computes to the diagram: here y_next = y + F(y)."""
        diagram.add("F", {"y": ""}, "e")
        diagram.add("+", {"y": "", "e": ""}, "y'")


def load_class(place: str | type[Any]) -> type[Any]:
    """Return a class by its place in this room, as families and originals name it: `steps.resnet:ResNet`.

    Families from outside the package (`rkcnn.register`) give the class itself.
    """
    if isinstance(place, type):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(f"rkcnn.model.{module}"), name)


def step_diagram(spec: ModelSpec) -> Diagram:
    """Return the diagram of one time-step of the first period; where the first step is a starter, of a later one."""
    diagram = Diagram(str(spec), ["y"])
    load_class(FAMILIES[spec.family].period).draw_step(spec, diagram)
    return diagram
