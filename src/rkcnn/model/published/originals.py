"""The published originals that the paper quotes, as data: what builds each, and its family. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Original:
    """A network as its own authors built it: either a class in this folder, or a name of the grammar."""

    name: str
    family: str  # whose title and look it has
    network: str = ""  # file:Class in rkcnn.model
    arguments: Mapping[str, int | bool] = field(default_factory=dict)  # of the class
    same_as: str = ""  # the name of the grammar that says the same


_DENSENET, _CLIQUENET = "published.densenet:DenseNetOriginal", "published.cliquenet:CliqueNetOriginal"

ORIGINALS: dict[str, Original] = {
    original.name: original
    for original in (
        Original("ResNet-1001", "ResNet", "published.resnet:ResNet1001"),
        Original("DenseNet-L100-k24", "DenseNet", _DENSENET, {"depth": 100, "k": 24, "bc": False}),
        Original("DenseNet-BC-L250-k24", "DenseNet", _DENSENET, {"depth": 250, "k": 24, "bc": True}),
        Original("DenseNet-BC-L190-k40", "DenseNet", _DENSENET, {"depth": 190, "k": 40, "bc": True}),
        Original("CliqueNet-k80-T18", "CliqueNet", _CLIQUENET, {"k": 80, "count": 6, "full": False}),
        Original("CliqueNet-k150-T30", "CliqueNet", _CLIQUENET, {"k": 150, "count": 5, "full": True}),
        Original("MomentumResNet-101", "Momentum", "published.momentum:MomentumResNet101"),
        Original("RKNet-64", "RKNet", same_as="RKNet-dopri5@k=64,tol=0.001"),
        Original("ODENet-64", "ODENet", same_as="ODENet-abm@k=64,tol=0.001,adjoint=on"),
        Original("SONODE-64", "SONODE", same_as="SONODE-dopri5@k=64,tol=0.001"),
    )
}


def find_original(name: str) -> Original | None:
    """Return the original of that name, written in any case; None where there is none."""
    return {known.lower(): original for known, original in ORIGINALS.items()}.get(name.strip().lower())
