"""Runge–Kutta convolutional networks: build, train and compare them with the networks of the paper's tables.

>>> import rkcnn
>>> network = rkcnn.create_model("RKCNN-R-2@k=32", classes=10, channels=1)
>>> result = rkcnn.train("RKCNN-R-2@k=32", data="mnist-mini")  # doctest: +SKIP
>>> rkcnn.evaluate(result).error  # doctest: +SKIP
0.013
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's; this file imports nothing, so that Ctrl-C can't interrupt it (see interrupt.py)
if TYPE_CHECKING:  # what editors and type checkers read; `_HOMES` says the same to Python
    from typing import Any

    from rkcnn.data.images import Images as Images
    from rkcnn.error import InputError as InputError
    from rkcnn.fit.recipe import Recipe as Recipe
    from rkcnn.model.cost import cost as cost
    from rkcnn.model.register import register as register
    from rkcnn.record.tables import list_models as list_models
    from rkcnn.run.observer import Observer as Observer
    from rkcnn.solvers.solve import solve as solve
    from rkcnn.use.compare import RunComparison as RunComparison
    from rkcnn.use.compare import compare as compare
    from rkcnn.use.create import create_model as create_model
    from rkcnn.use.draw import Drawing as Drawing
    from rkcnn.use.draw import draw as draw
    from rkcnn.use.evaluate import evaluate as evaluate
    from rkcnn.use.export import Exported as Exported
    from rkcnn.use.export import export as export
    from rkcnn.use.images import load_images as load_images
    from rkcnn.use.load import Classifier as Classifier
    from rkcnn.use.load import load as load
    from rkcnn.use.predict import Prediction as Prediction
    from rkcnn.use.pretrained.catalogue import list_pretrained as list_pretrained
    from rkcnn.use.train import TrainingResult as TrainingResult
    from rkcnn.use.train import train as train

__version__ = "0.1.0"
__all__ = [
    "Classifier",
    "Drawing",
    "Exported",
    "Images",
    "InputError",
    "Observer",
    "Prediction",
    "Recipe",
    "RunComparison",
    "TrainingResult",
    "compare",
    "cost",
    "create_model",
    "draw",
    "evaluate",
    "export",
    "list_models",
    "list_pretrained",
    "load",
    "load_images",
    "register",
    "solve",
    "train",
]

_HOMES = {
    "create_model": "rkcnn.use.create",
    "list_models": "rkcnn.record.tables",
    "list_pretrained": "rkcnn.use.pretrained.catalogue",
    "cost": "rkcnn.model.cost",
    "train": "rkcnn.use.train",
    "evaluate": "rkcnn.use.evaluate",
    "compare": "rkcnn.use.compare",
    "load": "rkcnn.use.load",
    "draw": "rkcnn.use.draw",
    "Drawing": "rkcnn.use.draw",
    "export": "rkcnn.use.export",
    "load_images": "rkcnn.use.images",
    "solve": "rkcnn.solvers.solve",
    "register": "rkcnn.model.register",
    "TrainingResult": "rkcnn.use.train",
    "RunComparison": "rkcnn.use.compare",
    "Observer": "rkcnn.run.observer",
    "Classifier": "rkcnn.use.load",
    "Prediction": "rkcnn.use.predict",
    "Exported": "rkcnn.use.export",
    "Images": "rkcnn.data.images",
    "Recipe": "rkcnn.fit.recipe",
    "InputError": "rkcnn.error",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import rkcnn` and `rkcnn --help` don't wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rkcnn' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    """What completion offers: the names above, and the parts of the package that are imported."""
    from types import ModuleType

    own = (name for name, value in globals().items() if name.startswith("__") or isinstance(value, ModuleType))
    return sorted({*_HOMES, *own})
