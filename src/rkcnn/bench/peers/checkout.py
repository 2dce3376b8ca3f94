"""Imports single files of somebody's checkout, without a change to sys.path and under names that nothing else has."""

from __future__ import annotations

import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from rkcnn.bench.plan import CHECKOUTS, PeerChoice
from rkcnn.error import InputError

PLACES = {"authors": "pytorch_models/RKCNN.py", "cliquenet": "imagenet_pytorch/utils.py"}  # what is imported of each


def find_file(peer: PeerChoice, place: str) -> Path:
    """Return the path of a file of the peer's checkout; raises InputError if there is none."""
    assert peer.path is not None
    path = peer.path / place
    if not path.is_file():
        raise InputError(
            f"`peer={peer}` given; {peer.path} is no checkout of {CHECKOUTS[peer.name]}: it has no {place}; "
            f"clone github.com/{CHECKOUTS[peer.name]} and give its folder"
        )
    return path


def import_file(peer: PeerChoice, place: str) -> ModuleType:
    """Return the module at `place`, PACKAGE/FILE.py of the peer's checkout; this runs its code.

    The package is imported under a name of its own, so that `from .utils import ...` works in the file, and nothing
    that is installed is hidden. Raises InputError if there is no such file, or if its import fails.
    """
    path = find_file(peer, place)
    package = f"_rkcnn_peer_{peer.name}"
    _forget(package)  # files of the same names may come from another checkout
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of somebody's older code
            _load(package, path.parent / "__init__.py", folder=path.parent)
            return _load(f"{package}.{path.stem}", path)
    except Exception as error:
        _forget(package)
        raise InputError(
            f"{path} can't be imported ({type(error).__name__}: {str(error).partition(chr(10))[0]}); give a checkout "
            f"of {CHECKOUTS[peer.name]} as its authors published it"
        ) from error


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _load(name: str, path: Path, folder: Path | None = None) -> ModuleType:
    """Import a file under a name; with `folder` as a package, whose __init__.py need not exist."""
    if folder is not None and not path.exists():
        module = ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module
        return module
    spec = spec_from_file_location(name, path, submodule_search_locations=None if folder is None else [str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
