"""The networks for torch.hub: one function for each of the paper's, and `rkcnn` for any other name.

>>> torch.hub.load("OWNER/rkcnn", "rkcnn_i_2_2_2_k120", classes=100)  # doctest: +SKIP
>>> torch.hub.load("path/to/checkout", "rkcnn", "RKCNN-R-2@k=32", channels=1, source="local")  # doctest: +SKIP
>>> torch.hub.load("path/to/checkout", "rkcnn_r_2_k32", pretrained="mnist", source="local")  # doctest: +SKIP
>>> torch.hub.load("path/to/checkout", "trained", "runs/mnist-mini/...", source="local")  # doctest: +SKIP
"""

import sys  # names that start with _ are those that torch.hub doesn't list
from pathlib import Path as _Path
from typing import Any as _Any

dependencies = ["torch", "numpy", "safetensors"]

_SOURCE = str(_Path(__file__).parent / "src")
sys.path.insert(0, _SOURCE)  # the package of this checkout, also where another one is installed
try:
    from rkcnn.record.tables import list_identifiers as _list_identifiers
    from rkcnn.use.create import create_model as _create_model
    from rkcnn.use.load import load as _load
finally:
    sys.path.remove(_SOURCE)


def rkcnn(
    name: str,
    classes: int | None = None,
    channels: int | None = None,
    dropout: float = 0.0,
    init: str = "paper",
    pretrained: str | None = None,
) -> _Any:
    """Build a network by its name, as in RKCNN-I-2_2_2@k=120: see `rkcnn.create_model`."""
    return _create_model(name, classes, channels, dropout, init, pretrained=pretrained)


def trained(path: str) -> _Any:
    """Return the trained network of a run's folder, a weights file or NETWORK.SET, with its classes (`rkcnn.load`)."""
    return _load(path)


def _builder(name: str) -> _Any:
    def build(
        classes: int | None = None,
        channels: int | None = None,
        dropout: float = 0.0,
        init: str = "paper",
        pretrained: str | None = None,
    ) -> _Any:
        return _create_model(name, classes, channels, dropout, init, pretrained=pretrained)

    build.__doc__ = f"Build {name}: see `rkcnn.create_model`."
    return build


for _identifier, _name in _list_identifiers().items():
    globals()[_identifier] = _builder(_name)
