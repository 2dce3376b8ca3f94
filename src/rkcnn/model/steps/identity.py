"""A network without any step: it shows what the frame alone can do."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec


class Identity(Period):
    """Passes y on unchanged: the control that the paper's tables lack."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        super().__init__(spec.k[index])

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        yield from ()

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.add("=", {"y": ""}, "y'")
