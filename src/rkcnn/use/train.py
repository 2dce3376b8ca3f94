"""Training from Python: `rkcnn.train`, and its result with ways to its network and its curves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import torch
from torch import nn

from rkcnn.error import InputError
from rkcnn.fit.recipe import Recipe, convert_value, find_recipe
from rkcnn.fit.recipe_changes import FIELDS, suggest_field
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.run.advice import advise_labels
from rkcnn.run.observer import Observer
from rkcnn.run.settings import Settings, choose, name_of, size_of
from rkcnn.run.side_by_side import Execution, Stopped, train_side_by_side
from rkcnn.use.images import Data, check_flags, load_images
from rkcnn.use.load import load
from rkcnn.use.pretrained.catalogue import locate_weights
from rkcnn.use.progress import PrintedProgress, clock, count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrainingResult(Result):
    """The result of a run, as its record has it, with the folder that its files are in.

    `error` is the test error after the last epoch, a fraction from 0 to 1, and None if the run diverged. `error_best`
    is the lowest of all epochs; picking that epoch is a choice made on the test images. Where training images were held
    out for validation, both are errors on those.
    """

    folder: Path  # where weights.safetensors, result.json and the other files of the run are

    def __init__(self, result: Result, folder: Path) -> None:
        super().__init__(**{field.name: getattr(result, field.name) for field in fields(Result)})
        object.__setattr__(self, "folder", folder)  # the class is frozen

    def network(self) -> nn.Module:
        """Return the trained network in evaluation mode, on the CPU. It takes normalised images; see `rkcnn.load`."""
        return load(self.folder).network

    def plot(self) -> Figure:
        """Return the errors and the loss of each epoch as a matplotlib figure, which a notebook shows.

        Elsewhere, write it to a file with `figure.savefig("curves.png")`.
        """
        from rkcnn.report.figures.curves import draw_curves

        if not self.epochs:
            raise InputError(f"the run {self.status}, before its first epoch ended; there is nothing to plot")
        figure = draw_curves(self)
        figure._repr_svg_ = partial(_as_svg, figure)  # type: ignore[attr-defined]  # notebooks show a bare Figure so
        return figure

    def __repr__(self) -> str:
        run = self.run
        held_out = run.held_out
        end = f"{held_out} error {percent(self.error)}" if self.finished else self.status
        return (
            f"<TrainingResult: {run.network} on {run.data}, recipe {run.recipe}, seed {run.seed}: {end} after "
            f"{count(len(self.epochs), 'epoch')} in {clock(self.seconds)}, in {self.folder}>"
        )


def _as_svg(figure: Figure) -> str:
    from rkcnn.report.figures.style import render

    return render(figure, "svg").decode()


class RecipeFields(TypedDict, total=False):
    """The fields of a `Recipe` beside those that have an argument of `train` of their own, as keywords of it."""

    schedule: str
    milestones: tuple[int, ...]
    peak: float
    momentum: float
    nesterov: bool
    weight_decay: float
    dropout: float
    label_smoothing: float
    padding: int
    flip: bool
    cutout: int
    drop_last: bool
    init: str
    ema_decay: float
    precision: str
    sync_norm: bool
    max_steps_per_epoch: int
    recompute_norms: bool
    cutmix: float
    decay_norms: bool


class TrainingOptions(RecipeFields, total=False):
    """The other keywords of `train`, but `seed`, on which it depends whether one result is returned or a list."""

    recipe: str | Recipe | None
    epochs: int | None
    batch: int | None
    lr: float | None
    init_from: str | Path | None
    head_only: bool
    weigh_classes: bool
    size: int | Literal["auto"] | None
    split: float | None
    skip_bad: bool
    keys: str | None
    channels: Literal[1, 3] | None
    validation: int
    out: str | Path
    device: str
    engine: str
    again: bool
    progress: bool
    observer: Observer | None


@overload
def train(
    network: str | None = None, data: Data = "mnist-mini", *, seed: int = 0, **options: Unpack[TrainingOptions]
) -> TrainingResult: ...


@overload
def train(
    network: str | None = None, data: Data = "mnist-mini", *, seed: Iterable[int], **options: Unpack[TrainingOptions]
) -> list[TrainingResult]: ...


def train(
    network: str | None = None,
    data: Data = "mnist-mini",
    *,
    recipe: str | Recipe | None = None,
    seed: int | Iterable[int] = 0,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
    init_from: str | Path | None = None,
    head_only: bool = False,
    weigh_classes: bool = False,
    size: int | Literal["auto"] | None = None,
    split: float | None = None,
    skip_bad: bool = False,
    keys: str | None = None,
    channels: Literal[1, 3] | None = None,
    validation: int = 0,
    out: str | Path = "runs",
    device: str = "auto",
    engine: str = "auto",
    again: bool = False,
    progress: bool = True,
    observer: Observer | None = None,
    **recipe_fields: Unpack[RecipeFields],
) -> TrainingResult | list[TrainingResult]:
    """Train a network on images, keep everything in a folder below `out`, and return the result.

    network    a name such as RKCNN-I-2_2_2@k=120 (docs/names.md, `rkcnn.list_models()`); without it RKCNN-R-2@k=32, and
               for your own images one that is chosen by their size and number (docs/own-images.md)
    data       a name, "folder:PATH", "npz:PATH", arrays ((x_train, y_train), (x_test, y_test)), or (x, y) with `split`,
               or two `Images`; see `rkcnn.load_images`
    recipe     how it is trained: mini, paper-mnist, paper-cifar, paper-svhn, fast-mnist, fast-cifar, fast-svhn,
               best-cifar, own, smoke, or a `Recipe`; without it, a short recipe for the data set, and own for your
               own images
    seed       of the first weights, the order of the images and their augmentation; or several, as in range(5), for a
               run with each, on a GPU side by side: then a list of results is returned
    epochs, batch, lr, ...
               replace that field of the recipe; `rkcnn.Recipe` lists the fields. Milestones move along with the
               number of epochs unless they are given
    init_from  a finished run's folder, its weights.safetensors, or a name in `list_pretrained()`: start from these
               weights instead of new ones. The classifier is new where the classes are others
    head_only, weigh_classes
               train the classifier alone, and leave all other weights as `init_from` has them; weigh each image by
               1 / (images of its class), for classes of unequal size
    size, split, skip_bad, keys, channels
               how your own images are read; see `rkcnn.load_images`
    validation hold out so many training images and measure errors on them; the test images are then not used
    device     cpu, cuda, cuda:N, or auto: a GPU if there is one
    engine     how steps are run: eager, compile, graph, fused (kernels of our own, in bf16 or tf32), or auto: on a
               GPU fused for RKCNN and ODE networks with fixed steps in bf16, else a graph; elsewhere eager, and on a
               CPU compile for long runs of networks with group norms
    again      repeat a run that is finished already
    progress   print a line for each epoch
    observer   is called while the run goes on, instead of printing

    A run that is finished already is not run again: its result is returned. One that was interrupted continues where
    it stopped, and ends with the same weights.
    """
    if not isinstance(network, str | None):
        raise InputError(
            f"a network of type {type(network).__name__} given; train builds the network itself from a name, as in "
            "'RKCNN-R-2@k=32'"
        )
    seeds = check_seeds(seed)
    if isinstance(validation, bool) or not isinstance(validation, Integral) or validation < 0:
        raise InputError(f"`validation={validation!r}` given; it is a number of images, as in `validation=2000`")
    if recipe is not None and not isinstance(recipe, str | Recipe):
        raise InputError(f"a recipe of type {type(recipe).__name__} given; give the name of one, or a Recipe")
    for option, path in (("init_from", init_from), ("out", out)):
        if not isinstance(path, str | Path) and (option, path) != ("init_from", None):
            raise InputError(f"`{option}={path!r}` given; it is the path of a folder, as in `{option}='runs'`")
        if path == "":
            raise InputError(f"`{option}=''` given; it is the path of a folder, as in `{option}='runs'`")
    if not isinstance(observer, Observer | None):
        raise InputError(f"an observer of type {type(observer).__name__} given; give a rkcnn.Observer")
    check_flags(head_only=head_only, weigh_classes=weigh_classes, skip_bad=skip_bad, again=again, progress=progress)
    if isinstance(recipe, str):
        find_recipe(recipe)  # a name that is not one is said before data are read
    flags = {"head_only": head_only or None, "weigh_classes": weigh_classes or None}
    changes = {"epochs": epochs, "batch": batch, "lr": lr, **flags, **recipe_fields}
    given = check_changes({name: value for name, value in changes.items() if value is not None})
    start = locate_weights(init_from) if init_from is not None else None
    size = size if size is not None else size_of(start, data)
    training, test = load_images(
        data, size=size, split=split, skip_bad=skip_bad, keys=keys, channels=channels, progress=progress
    )
    if validation:
        training, test = training.split(validation)
    chosen = choose(Settings(network, recipe, given, start), training, test)
    runs = [Run(name_of(training, test), chosen.network, chosen.recipe, each) for each in seeds]
    if observer is None and not progress:  # otherwise they are told of it with the run's other notes
        for note in advise_labels(chosen.training):
            warnings.warn(f"{chosen.training.name}: {note}", stacklevel=2)
    execution = Execution(Path(out), device, engine, again, init_from=start)
    watching = observer or (PrintedProgress(several=len(runs) > 1) if progress else Observer())
    try:
        with unchanged_random_numbers(device):
            found = train_side_by_side(runs, chosen.training, chosen.test, execution, watching)
    except Stopped as stopped:
        if str(stopped) == "SIGINT":  # Python's own sign for Ctrl-C; a checkpoint is kept
            raise KeyboardInterrupt from None
        raise
    results = [TrainingResult(found[run], execution.out / run.folder) for run in runs]
    return results[0] if isinstance(seed, Integral) else results


@contextmanager
def unchanged_random_numbers(device: str) -> Iterator[None]:
    """Restore torch's random numbers afterwards, which belong to the caller."""
    on_gpu = torch.cuda.is_initialized() or (device != "cpu" and torch.cuda.is_available())
    with torch.random.fork_rng(range(torch.cuda.device_count()) if on_gpu else []):
        yield


def check_seeds(seed: int | Iterable[int]) -> list[int]:
    """Return the seeds that were given as one number or as several; raises InputError for what is no seed."""
    seeds: list[Any]
    try:
        seeds = list(seed)  # type: ignore[arg-type]
    except TypeError:  # it is one
        seeds = [seed]
    for each in seeds:
        if isinstance(each, bool) or not isinstance(each, Integral) or not 0 <= int(each) < 1 << 63:
            raise InputError(f"`seed={each!r}` given; a seed is a whole number from 0 to 2^63 - 1")
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(
            f"{len(seeds)} seeds given, {len(set(seeds))} of them different; give each once, as in range(5)"
        )
    return [int(each) for each in seeds]


def check_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of fields of a recipe as Python's own types; raises InputError if a field or value is wrong."""
    for name in changes:
        if name not in FIELDS:
            raise InputError(
                f"train has no argument and a recipe no field {name!r}{suggest_field(name)}; a recipe's fields are "
                f"{', '.join(FIELDS)}"
            )
    return {name: convert_value(name, value) for name, value in changes.items()}
