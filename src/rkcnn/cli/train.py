"""rkcnn train: a network on a data set by a recipe."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli import PIPE
from rkcnn.cli.data import FromSources, OwnImages
from rkcnn.data.own import OwnOptions
from rkcnn.data.sources import Sources
from rkcnn.error import InputError

MOST_SEEDS = 1000
CODES = {"SIGINT": 130, "SIGTERM": 143}  # 128 + the signal's number, as shells have it


def train(
    name: str = "RKCNN-R-2@k=32",
    /,
    *,
    data: str = "mnist-mini",
    recipe: str = "mini",
    seed: int = 0,
    seeds: int = 1,
    device: str = "auto",
    engine: str = "auto",
    out: Path = Path("runs"),
    validation: int = 0,
    again: Annotated[bool, Parameter(negative=())] = False,
    set_: Annotated[list[str] | None, Parameter(negative=())] = None,
    json_: Annotated[bool, Parameter(negative=())] = False,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> int:
    """Train a network and show how well it does. Broken off at any moment, the same command continues it.

    Parameters
    ----------
    name
        A network, as in RKCNN-I-2_2_2@k=120 or ResNet-1001.
    data
        A name of `rkcnn data list`, folder:PATH or npz:PATH.
    recipe
        How it is trained: mini, paper-mnist, paper-cifar, paper-svhn, fast-mnist, fast-cifar, fast-svhn or smoke.
    seed
        Of the first weights, the order of images and the augmentation.
    seeds
        Train so many seeds from --seed on; together where there is a GPU.
    device
        A device: cpu, cuda, cuda:N, or auto: a GPU where there is one.
    engine
        How steps are run: eager, compile, graph, or auto: the fastest that can run this network here.
    out
        The folder that runs are kept in.
    validation
        Set so many training images apart and measure errors on them; the test set is not looked at.
    again
        Repeat a run that is finished already.
    set_
        Change a field of the recipe, as in --set epochs=5 --set lr=0.05.
    json_
        Print a JSON list of results on standard output, and progress on standard error.
    """
    from rkcnn.fit.recipe import recipe_of

    chosen = recipe_of(recipe, changes_of(set_ or []))
    if not 0 <= seed < 1 << 63:
        raise InputError(f"--seed {seed} given; a seed is a whole number from 0 to 2^63 - 1")
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"--seeds {seeds} given; train 1 to {MOST_SEEDS} of them")

    from rkcnn.cli.run_progress import Screen, Watch, position
    from rkcnn.cli.summary import summarise
    from rkcnn.data.progress import Progress
    from rkcnn.run.device import keep_freed_memory
    from rkcnn.run.signals import Stopped
    from rkcnn.run.train import train as go

    first = os.environ.get("RANK", "0") == "0"  # of several ranks one speaks
    keep_freed_memory()
    console = Screen(stderr=json_, quiet=not first)
    watch = Watch(console, several=seeds > 1)
    try:
        with watch:
            results = go(
                name,
                data,
                chosen,
                range(seed, seed + seeds),
                device=device,
                engine=engine,
                out=out,
                validation=validation,
                again=again,
                sources=sources,
                own=own,
                progress=Progress(sys.stderr if first else None),
                observer=watch,
            )
    except (Stopped, KeyboardInterrupt) as stop:
        if console.closed:
            return PIPE
        signal = str(stop) or "SIGINT"
        going = [job for job in watch.jobs if not job.trainer.finished]
        where = "".join(f" seed {job.run.seed} at {position(job)}," for job in going)
        if first:
            print(f"rkcnn: stopped by {signal};{where} the same command continues", file=sys.stderr)
        return CODES.get(signal, CODES["SIGTERM"])  # another rank was stopped
    if console.closed:
        return PIPE
    if first:
        folders = [watch.folders[result.run.seed] for result in results]
        if json_:
            found = [{"folder": str(f), **r.as_dict()} for f, r in zip(folders, results, strict=True)]
            print(json.dumps(found, indent=1))
        else:
            for line in summarise(results, folders):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0 if all(result.finished for result in results) else 1


def changes_of(pairs: list[str]) -> dict[str, str]:
    """FIELD=VALUE, each field once."""
    changes: dict[str, str] = {}
    for pair in pairs:
        field, equals, value = pair.partition("=")
        if not (field and equals and value):
            raise InputError(f"--set {pair} given; it takes FIELD=VALUE, as in --set epochs=5")
        if field in changes:
            raise InputError(f"--set {field} given twice, as {changes[field]} and {value}; give it once")
        changes[field] = value
    return changes
