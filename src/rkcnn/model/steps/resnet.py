"""Pre-activation residual blocks (He et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec


def residual(k: int, layers: Layers) -> nn.Sequential:
    """Return norm, ReLU, 3x3, norm, ReLU, 3x3: 18k^2 + 4k parameters."""
    return _preactivated(layers, (k, k, 3), (k, k, 3))


def bottleneck(k: int, layers: Layers) -> nn.Sequential:
    """Return 1x1 to k/4, 3x3, 1x1 to k, each after norm and ReLU: 17k^2/16 + 3k parameters."""
    return _preactivated(layers, (k, k // 4, 1), (k // 4, k // 4, 3), (k // 4, k, 1))


def _preactivated(layers: Layers, *convs: tuple[int, int, int]) -> nn.Sequential:
    return nn.Sequential(
        *(
            module
            for inputs, outputs, size in convs
            for module in (layers.norm(inputs), nn.ReLU(), layers.conv(inputs, outputs, size))
        )
    )


class ResNet(Period):
    """y_next = y + F(y), r times, each time with weights of its own."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        block = bottleneck if spec.variant == "bottleneck" else residual
        self.steps = nn.ModuleList(block(k, layers) for _ in range(r))
        self.evaluations = r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        for step in self.steps:
            e = step(y)
            y = y + e
            yield TimeStep(y, (e,))
