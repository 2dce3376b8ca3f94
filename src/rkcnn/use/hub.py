"""Trained networks on Hugging Face: the files of a repository, how they get there and back."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rkcnn import __version__
from rkcnn.disk import write_atomically, writing_to
from rkcnn.error import InputError, how_to_install
from rkcnn.evaluation.weights import pack_weights
from rkcnn.model.network import Network
from rkcnn.model.spec import ModelSpec
from rkcnn.record.result import Result, read_result
from rkcnn.run.settings import TRAINED
from rkcnn.run_folder import HUB_CONFIG, HUB_WEIGHTS, MODEL_CARD, RESULT
from rkcnn.use.load import Classifier, find_weights, load
from rkcnn.use.model_card import without_folders, write_card
from rkcnn.use.pretrained.catalogue import find_pretrained

FILES = (HUB_WEIGHTS, HUB_CONFIG, MODEL_CARD, RESULT)
INSTALL = f"huggingface_hub is not installed; install it with: {how_to_install('hub')}"


def save_pretrained(
    model: Classifier, folder: Path, name: str = "OWNER/NAME", licence: str = "mit", seeds: Sequence[Result] = ()
) -> list[Path]:
    """Write a trained network as a repository of Hugging Face has it, and return the paths.

    These are its weights, a description of it, a model card and, where there is one, the record of its run. The folder
    is made; it may hold what was saved there before, and nothing else.
    """
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - set(FILES)):
        raise InputError(f"{folder} holds other files already; name an empty folder, or one that doesn't exist")
    content = {
        HUB_WEIGHTS: pack_weights(model.network.state_dict(), {"format": "pt", **model.description.as_metadata()}),
        HUB_CONFIG: (json.dumps(describe(model), indent=1) + "\n").encode(),
        MODEL_CARD: write_card(model.description, model.result, name, licence, seeds).encode(),
    }
    if model.result is not None:
        content[RESULT] = without_folders(model.result).to_json()
    with writing_to(folder, "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    for file, text in content.items():
        write_atomically(folder / file, text)
    return [folder / file for file in content]


def describe(model: Classifier) -> dict[str, Any]:
    """Return what config.json says: what is needed to build and feed the network, also for timm (`rkcnn.timm`)."""
    facts: dict[str, Any] = {"library": "rkcnn", "version": __version__, **model.description.as_dict()}
    if not isinstance(model.network, Network):
        return facts
    return {
        **facts,
        "architecture": "rkcnn",
        "model_args": {"network": model.name},
        "num_classes": len(model.classes),
        "num_features": model.network.classifier.in_features,
        "pretrained_cfg": configure_timm(model.network.spec, model.description.as_dict()),
    }


def configure_timm(spec: ModelSpec, description: Mapping[str, Any]) -> dict[str, Any]:
    """Return timm's configuration of a trained network; `description` has the fields of a `NetworkDescription`."""
    return {
        "input_size": (description["channels"], *description["size"]),
        "num_classes": len(description["classes"]),
        "mean": tuple(description["mean"]),
        "std": tuple(description["std"]),
        "interpolation": "bilinear",
        "crop_pct": 1.0,
        "first_conv": "preprocessor.conv1" if spec.stem == "odenet" else "preprocessor",
        "classifier": "classifier",
        "label_names": tuple(description["classes"]),
    }


def from_pretrained(name: str | Path, revision: str | None = None) -> Classifier:
    """Return the trained network of a repository on Hugging Face, OWNER/NAME, of a folder that was saved, or ours."""
    if not isinstance(name, str | Path):
        raise InputError(f"a {type(name).__name__} given for a trained network; give OWNER/NAME, or {TRAINED}")
    if os.path.isdir(name) or not str(name) or find_pretrained(name) is not None:
        return load(name)
    check_name(str(name))
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(INSTALL) from None
    try:
        folder = snapshot_download(str(name), revision=revision, allow_patterns=list(FILES))
    except _site_errors() as error:
        raise InputError(f"can't fetch {name} from Hugging Face: {_first_line(error)}") from None
    return load(folder)


def push(run: str | Path, name: str, *, private: bool = False, licence: str = "mit") -> str:
    """Upload the trained network of a run to OWNER/NAME on Hugging Face, with a card from its record.

    The repository is made if it doesn't exist, and private if you ask for it. Returns its address.
    """
    check_name(name)
    try:
        from huggingface_hub import HfApi, get_token
    except ImportError:
        raise InputError(INSTALL) from None
    if get_token() is None:
        raise InputError(
            "no token of Hugging Face is stored here; make one at https://huggingface.co/settings/tokens and store it "
            "with: hf auth login"
        )
    with tempfile.TemporaryDirectory(prefix="rkcnn-") as folder:
        model = save_run(run, Path(folder), name, licence)
        api = HfApi(library_name="rkcnn", library_version=__version__)
        try:
            api.create_repo(name, private=private, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=folder, commit_message=f"{model.name} by rkcnn {__version__}")
        except _site_errors() as error:
            raise InputError(f"can't push to {name} on Hugging Face: {_first_line(error)}") from None
    return f"https://huggingface.co/{name}"


def save_run(run: str | Path, folder: Path, name: str, licence: str = "mit") -> Classifier:
    """Write what `push` uploads of a run to a folder, and return the network. Raises InputError without a record."""
    check_name(name)
    weights, result = find_weights(Path(run))
    if result is None:
        raise InputError(f"{run} has no {RESULT} beside it, from which the model card is written; give a run's folder")
    model = load(run)
    save_pretrained(model, folder, name, licence, find_seeds(weights.parent, result))
    return model


def find_seeds(folder: Path, result: Result) -> list[Result]:
    """Return the finished runs beside a run's folder that differ from it by the seed alone, and the run itself."""
    found = [each for each in _read_beside(folder) if isinstance(each, Result)]
    return [each for each in found if each.finished and replace(each.run, seed=result.run.seed) == result.run]


def find_damaged_seeds(run: Path) -> list[InputError]:
    """Return an error for each record beside a run's folder that can't be read, and so is missing from its card."""
    return [each for each in _read_beside(find_weights(run)[0].parent) if isinstance(each, InputError)]


def _read_beside(folder: Path) -> Iterator[Result | InputError]:
    for path in sorted(folder.parent.glob(f"seed-*/{RESULT}")):
        try:
            yield read_result(path)
        except InputError as error:
            yield error


def check_name(name: str) -> None:
    """Raise InputError unless this can be the name of a repository on Hugging Face."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name) or len(name) > 96 or "--" in name:
        raise InputError(
            f"{name!r} given; a repository on Hugging Face is named OWNER/NAME, of letters, digits, -, _ and ."
        )


def _site_errors() -> tuple[type[Exception], ...]:
    """Return what huggingface_hub raises if the site refuses or can't be reached: also errors of its HTTP client."""
    from huggingface_hub.errors import HfHubHTTPError

    return (OSError, *(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception)))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
