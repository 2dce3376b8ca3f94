"""rkcnn train: trains a network on a data set by a recipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli import CLOSED_PIPE
from rkcnn.cli.data import FromSources, OwnImages, WholeNumber
from rkcnn.cli.output import print_error, print_on
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.error import InputError

if TYPE_CHECKING:
    from rkcnn.fit.recipe import Recipe

MOST_SEEDS = 1000
EXIT_CODES = {"SIGINT": 130, "SIGTERM": 143}  # 128 + the number of the signal, as in shells


def train(
    name: str | None = None,
    /,
    *,
    data: str = "mnist-mini",
    recipe: str | None = None,
    epochs: WholeNumber | None = None,
    batch: WholeNumber | None = None,
    lr: float | None = None,
    precision: str | None = None,
    set_: Annotated[list[str] | None, Parameter(negative=())] = None,
    init_from: Path | None = None,
    head_only: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    weigh_classes: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    seed: WholeNumber | None = None,
    seeds: WholeNumber = 1,
    validation: WholeNumber = 0,
    config: Path | None = None,
    device: str = "auto",
    engine: str = "auto",
    out: Path = Path("runs"),
    again: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    json_: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> int:
    """Train a network and show how well it does; an interrupted run continues. Returns the exit code.

    Parameters
    ----------
    name
        The network, for example RKCNN-I-2_2_2@k=120 or ResNet-1001; `rkcnn models` lists those of the paper. By default
        RKCNN-R-2@k=32, and for your own images one that is chosen by their size and number.
    data
        A name of `rkcnn data list`, or your own images: folder:PATH or npz:PATH.
    recipe
        How to train: mini, paper-mnist, paper-cifar, paper-svhn, fast-mnist, fast-cifar, fast-svhn, best-cifar, own
        or smoke. By default the fast recipe of the data set, mini for mnist-mini, and own for your own images.
    epochs
        How often every training image is used, instead of the recipe's number; its milestones move along.
    batch
        Images in a step, instead of the recipe's number.
    lr
        The largest learning rate, instead of the recipe's.
    precision
        fp32, tf32 or bf16, instead of the recipe's: on a GPU the latter two are faster and round more. It is part of
        the run's name.
    set_
        Change another field of the recipe, for example --set momentum=0.8 --set flip=off.
    init_from
        A finished run's folder, its weights.safetensors, or a name of `rkcnn models --pretrained`: start from these
        weights. The classifier is new where the classes are others.
    head_only
        Train the classifier alone, and leave all other weights as --init-from has them.
    weigh_classes
        Weigh each image by 1 / (images of its class), for classes of unequal size.
    seed
        Determines the initial weights, the order of the images and the augmentation; 0 if not given.
    seeds
        Number of runs, with consecutive seeds from --seed on; on a GPU they train side by side.
    validation
        Hold out so many training images and measure errors on them; the test set is not used.
    config
        Repeat a run by the config.json of its folder, which has its network, data, recipe, seed and --validation.
    device
        cpu, cuda, cuda:N, or auto: a GPU if there is one.
    engine
        How steps are executed: eager, compile, graph, fused (kernels of our own, in bf16 or tf32), or auto:
        the fastest that can run this network here.
    out
        The folder in which runs are kept.
    again
        Repeat a run that is already finished.
    json_
        Print the results as a JSON list on standard output, and progress on standard error.
    """
    from rkcnn.fit.recipe import find_recipe
    from rkcnn.fit.recipe_changes import read_changes

    check_precision(precision)
    plain = {"epochs": epochs, "batch": batch, "lr": lr, "precision": precision, "head_only": head_only or None}
    changes = combine_changes(parse_changes(set_ or []), {**plain, "weigh_classes": weigh_classes or None})
    values = read_changes(changes)
    if recipe is not None:
        find_recipe(recipe)  # a name that is not one is said before torch is imported and data are read
    chosen: str | Recipe | None = recipe
    if config is not None:
        from rkcnn.record.run import read_config

        given = {"NAME": name is not None, "--data": data != "mnist-mini", "--recipe": recipe is not None}
        given |= {_name_option(field, field in (*plain, "weigh_classes")): True for field in changes}
        given |= {"--validation": validation != 0}
        given |= {_name_option(each.name): getattr(own, each.name) != each.default for each in fields(OwnOptions)}
        if others := ", ".join(option for option, is_given in given.items() if is_given):
            raise InputError(
                f"--config given with other settings of the run ({others}); leave them out, or change them in the file"
            )
        kept = read_config(config)
        name, data, chosen, validation, own = kept.network, kept.data, kept.recipe, kept.validation, kept.own
        seed = kept.seed if seed is None else seed
    seed = seed or 0
    if not 0 <= seed < 1 << 63:
        raise InputError(f"--seed {seed} given; a seed is a whole number from 0 to 2^63 - 1")
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"--seeds {seeds} given; train 1 to {MOST_SEEDS} of them")

    from rkcnn.cli.progress import RunProgress, StoppingConsole
    from rkcnn.cli.summary import summarise_runs
    from rkcnn.data.progress import Progress
    from rkcnn.run.device import keep_freed_memory
    from rkcnn.run.side_by_side import Stopped
    from rkcnn.run.train import train as train_seeds
    from rkcnn.use.pretrained.catalogue import locate_weights
    from rkcnn.use.progress import next_step

    first = os.environ.get("RANK", "0") == "0"  # with torchrun only the first rank prints
    keep_freed_memory()
    console = StoppingConsole(stderr=json_, quiet=not first)
    shown = RunProgress(console, several=seeds > 1)
    try:
        with shown:
            results = train_seeds(
                name,
                data,
                chosen,
                range(seed, seed + seeds),
                changes=values,
                init_from=None if init_from is None else locate_weights(init_from),
                device=device,
                engine=engine,
                out=out,
                validation=validation,
                again=again,
                sources=sources,
                own=own,
                progress=Progress(sys.stderr if first else None),
                observer=shown,
            )
    except (Stopped, KeyboardInterrupt) as stop:
        if console.closed:
            return CLOSED_PIPE
        signal = str(stop) or "SIGINT"
        unfinished = [job for job in shown.jobs if not job.trainer.finished and job.run.seed not in shown.ended]
        where = "".join(f" seed {job.run.seed} at {next_step(job)};" for job in unfinished)
        if first:
            print_error(f"stopped by {signal};{where} the same command continues")
        return EXIT_CODES.get(signal, EXIT_CODES["SIGTERM"])  # another text: another rank was stopped
    if console.closed:
        return CLOSED_PIPE
    if first:
        folders = [shown.folders[result.run.seed] for result in results]
        if json_:
            found = [{"folder": str(f), **r.as_dict()} for f, r in zip(folders, results, strict=True)]
            print(json.dumps(found, indent=1))
        else:
            for line in summarise_runs(results, folders):
                print_on(console, line)
    return 0 if all(result.finished for result in results) else 1


def check_precision(precision: str | None) -> None:
    """Raise InputError unless it is one that a recipe can have, or none is given."""
    from rkcnn.fit.recipe import CHOICES

    if precision is not None and precision not in CHOICES["precision"]:
        raise InputError(f"--precision {precision} given; it is one of {', '.join(CHOICES['precision'])}")


def combine_changes(changes: dict[str, str], plain: Mapping[str, float | str | None]) -> dict[str, str]:
    """Add the fields that have options of their own to those of --set; raises InputError if one is given twice."""
    for field, value in plain.items():
        if value is None:
            continue
        if field in changes:
            option = field.replace("_", "-")
            raise InputError(f"--{option} and --set {field}={changes[field]} given; give one of them")
        changes[field] = str(value)
    return changes


def _name_option(field: str, plain: bool = True) -> str:
    """Return the option that gives a field: one of its own, or --set."""
    return f"--{field.replace('_', '-')}" if plain else f"--set {field}"


def parse_changes(pairs: list[str]) -> dict[str, str]:
    """Return the values of FIELD=VALUE pairs by field; raises InputError if a field is given twice."""
    changes: dict[str, str] = {}
    for pair in pairs:
        field, equals, value = pair.partition("=")
        if not (field and equals and value):
            raise InputError(f"--set {pair} given; it takes FIELD=VALUE, as in --set epochs=5")
        if field in changes:
            raise InputError(f"--set {field} given twice, as {changes[field]} and {value}; give it once")
        changes[field] = value
    return changes
