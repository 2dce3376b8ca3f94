"""The published originals by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rkcnn.model.catalogue import FIXED
from rkcnn.model.published.cliquenet import CliqueNetOriginal
from rkcnn.model.published.densenet import DenseNetOriginal
from rkcnn.model.published.momentum import MomentumResNet101
from rkcnn.model.published.network import Published
from rkcnn.model.published.resnet import ResNet1001

Builder = Callable[[int, int, float], Published]  # classes, channels, dropout

PUBLISHED: dict[str, Builder | str] = {
    "ResNet-1001": ResNet1001,
    "DenseNet-L100-k24": partial(DenseNetOriginal, depth=100, k=24, bc=False),
    "DenseNet-BC-L250-k24": partial(DenseNetOriginal, depth=250, k=24, bc=True),
    "DenseNet-BC-L190-k40": partial(DenseNetOriginal, depth=190, k=40, bc=True),
    "CliqueNet-k80-T18": partial(CliqueNetOriginal, k=80, count=6, full=False),
    "CliqueNet-k150-T30": partial(CliqueNetOriginal, k=150, count=5, full=True),
    "MomentumResNet-101": MomentumResNet101,
    **FIXED,
}
