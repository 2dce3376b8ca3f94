"""The files in a run's folder. Only this module knows their names; it imports nothing but the standard library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

RESULT = "result.json"
REPLACED_RESULT = "result.before.json"  # the result that `again` repeats, until the repetition has one of its own
WEIGHTS = "weights.safetensors"
PREDICTIONS = "predictions.npy"
LABELS = "labels.npy"  # the true classes of the images that were predicted
METRICS = "metrics.csv"
CONFIG = "config.json"
CURVES = "curves"  # the stem of curves.svg and curves.png
LOCK = ".lock"
MEMORY = "memory.json"  # lies one level above the recipes: a network's memory does not depend on how it is trained
ERRORS_BY_STATISTICS = "errors-by-statistics.json"  # what benchmarks/norms_of_evaluations.py measured of the run
HUB_WEIGHTS, HUB_CONFIG, MODEL_CARD = "model.safetensors", "config.json", "README.md"  # in a folder of Hugging Face
_CHECKPOINT = "checkpoint-"
_WRITTEN = (RESULT, WEIGHTS, PREDICTIONS, LABELS, METRICS, CONFIG)


def checkpoint_path(folder: Path, epoch: int, step: int) -> Path:
    """Return the JSON file of the checkpoint at that position; `tensors_of` gives the file beside it."""
    return folder / f"{_CHECKPOINT}{epoch:05d}-{step:06d}.json"


def tensors_of(checkpoint: Path) -> Path:
    """Return the file of the tensors that belong to a checkpoint's JSON file."""
    return checkpoint.with_suffix(".safetensors")


def find_checkpoints(folder: Path) -> list[Path]:
    """Return the JSON files of a run's checkpoints, the oldest first. Their content is not checked."""
    return sorted(filter(_is_file, folder.glob(f"{_CHECKPOINT}*.json")))


def find_checkpoint_files(folder: Path) -> Iterator[Path]:
    """Yield every file of every checkpoint, also incomplete ones that a killed process left behind."""
    yield from filter(_is_file, folder.glob(f"{_CHECKPOINT}*"))
    yield from filter(_is_file, folder.glob(f".{_CHECKPOINT}*"))


def find_incomplete_files(folder: Path) -> list[Path]:
    """Return what a killed process left of a run's files while it wrote them, other than checkpoints."""
    return [path for name in _WRITTEN for path in folder.glob(f".{name}*.part") if _is_file(path)]


def list_written_files(folder: Path) -> list[Path]:
    """Return where a run's files will be written, other than checkpoints."""
    return [folder / name for name in (*_WRITTEN, REPLACED_RESULT, f"{CURVES}.svg", f"{CURVES}.png")]


def find_begun_folders(top: Path) -> list[Path]:
    """Return every folder below `top` that holds a checkpoint and no result, sorted by name."""
    folders = sorted({path.parent for path in top.rglob(f"{_CHECKPOINT}*.json")})
    # a link to nothing in the result's place is a damaged result
    return [folder for folder in folders if not os.path.lexists(folder / RESULT)]


def find_named(top: Path, name: str) -> list[Path]:
    """Return everything of that name below `top`, sorted: also a folder, and a link that leads nowhere.

    `Path.rglob` leaves out such links, so that a record would be missing without a word.
    """
    return sorted(Path(folder, name) for folder, folders, files in os.walk(top) if name in files or name in folders)


def is_checkpoint(name: str) -> bool:
    """Whether a file of that name belongs to a checkpoint."""
    return name.removeprefix(".").startswith(_CHECKPOINT)


def _is_file(path: Path) -> bool:
    """Whether a name can be that of a file, since it is no folder; a link counts as a file, also one to a folder."""
    return path.is_symlink() or not path.is_dir()
