"""rkcnn reproduce: a whole table."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.data import FromSources
from rkcnn.data.sources import Sources
from rkcnn.error import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from rkcnn.record.result import Result
    from rkcnn.record.run import Run
    from rkcnn.record.table import Table
    from rkcnn.reproduce.event import Event

MARKS = {
    "smoke": "SMOKE: forty steps on the bundled digits; shows that everything runs, and says nothing about accuracy",
    "fast": "FAST: a short recipe of our own; not the paper's, and not to be compared with its numbers",
}


def reproduce(
    table: str,
    /,
    *,
    rows: str = "*",
    seeds: int | None = None,
    recipe: str = "paper",
    out: Path = Path("runs"),
    plan: Annotated[bool, Parameter(negative=())] = False,
    on: str = "local",
    device: str = "auto",
    engine: str = "auto",
    address: str | None = None,
    store: Path | None = None,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
) -> int:
    """Train a whole table. Broken off at any moment, the same command continues it; what is finished is not run again.

    Parameters
    ----------
    table
        mnist, cifar10, cifar100, svhn, sota-mnist, sota-cifar10, sota-cifar100, sota-svhn: the paper's;
        ablation, scaling, norms: our own.
    rows
        Only the networks that match a pattern, as in 'RKCNN-*@k=32'; several with commas between.
    seeds
        So many of each network; 5 on MNIST and 3 elsewhere are the paper's.
    recipe
        paper: as the paper trains; fast: a short one of ours; smoke: forty steps on bundled digits.
    out
        The folder that runs are kept in.
    plan
        Say what would run and about how long it would take, and stop.
    on
        local: this machine, all of its GPUs or cores; ray: a Ray cluster.
    device
        With --on local: cpu, cuda, cuda:N, or auto: every GPU there is, else the cores.
    engine
        How steps are run: eager, compile, graph, or auto: the fastest that can run each network.
    address
        With --on ray: the address of a cluster; without one a local cluster is started for the purpose.
    store
        With --on ray: a folder that all machines share, to keep checkpoints in; without one the driver keeps them.
    """
    from rkcnn.record.result import Result
    from rkcnn.record.standing import BEGUN, NEW
    from rkcnn.record.table import find_table

    if on not in ("local", "ray"):
        raise InputError(f"--on {on} given; a table runs on local or on ray")
    if on == "local" and (address or store):
        raise InputError(f"--{'address' if address else 'store'} given with --on local; it goes with --on ray")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} given, and that is a file; name a folder")
    chosen = find_table(table)
    runs = chosen.runs(recipe, rows, seeds)
    console = make_console()
    stand = stand_of(runs, out)
    waiting = [run for run, state in stand.items() if state in (NEW, BEGUN)]
    failed = {run: str(state) for run, state in stand.items() if isinstance(state, InputError)}
    finished = sum(isinstance(state, Result) for state in stand.values())
    begun, new = (list(stand.values()).count(state) for state in (BEGUN, NEW))
    for line in describe(chosen, recipe, runs, f"{finished} finished, {begun} begun, {new} new"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for run, why in failed.items():
        console.print(f"FAILS     {run.spec}  seed {run.seed}  {why}", highlight=False, markup=False, soft_wrap=True)
    if plan:
        for line in show_plan(runs, waiting, device):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        return 0
    if waiting:
        signal.signal(signal.SIGTERM, _leave)
        try:
            failed |= _go(console, waiting, out, on, device, engine, address, store, sources)
        except (KeyboardInterrupt, SystemExit) as stop:
            done = sum(isinstance(state, Result) for state in stand_of(runs, out).values())
            print(f"rkcnn: stopped with {done} of {len(runs)} runs done; the same command continues", file=sys.stderr)
            return stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
    for line in summarise(stand_of(runs, out)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if recipe in MARKS:
        print(MARKS[recipe])
    print(f"next      rkcnn report {table} --from {out}" + f" --recipe {recipe}" * (recipe != "paper"))
    return 1 if failed else 0


def make_console() -> Console:
    """One whose reader may leave, as `head` does: then the table stops, and 141 says why."""
    from rich.console import Console

    from rkcnn.cli import PIPE

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise SystemExit(PIPE)

    return Screen()


def stand_of(runs: Sequence[Run], out: Path) -> dict[Run, Result | str | InputError]:
    """How far each run has come; where a result can't be taken, why not."""
    from rkcnn.record.standing import standing

    found: dict[Run, Result | str | InputError] = {}
    for run in runs:
        try:
            found[run] = standing(run, out)
        except InputError as error:
            found[run] = error
    return found


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _go(
    console: Console,
    runs: Sequence[Run],
    out: Path,
    on: str,
    device: str,
    engine: str,
    address: str | None,
    store: Path | None,
    sources: Sources,
) -> dict[Run, str]:
    """Train the runs with a board to watch; those that failed, and why."""
    from rkcnn.cli.board import Board
    from rkcnn.data.load import find, load
    from rkcnn.data.progress import Progress
    from rkcnn.reproduce.estimate import count_flops
    from rkcnn.run.together import Way
    from rkcnn.run.train import check_fit

    training, _ = load(runs[0].data, sources, progress=Progress(sys.stderr))
    for spec in dict.fromkeys(run.spec for run in runs):
        check_fit(spec, training)
    flops = {spec: count_flops(spec, find(runs[0].data)) for spec in {run.spec for run in runs}}
    way = Way(out, device, engine)
    if on == "ray":
        from rkcnn.reproduce.on_ray import reproduce_on_ray

        events: Generator[Event, None, None] = reproduce_on_ray(runs, way, sources, address, store)
    else:
        from rkcnn.reproduce.local import reproduce_here

        events = reproduce_here(runs, way, sources)
    with closing(events), Board(console, runs, [float(flops[run.spec]) for run in runs]) as board:
        for event in events:
            board.hear(event)
    return {runs[number]: why for number, why in board.failed.items()}


def describe(table: Table, pace: str, runs: Sequence[Run], stand: str) -> Iterator[str]:
    """What will happen."""
    from rkcnn.record.run import recipe_text

    if pace in MARKS:
        yield MARKS[pace]
    networks, seeds = len({run.spec for run in runs}), len({run.seed for run in runs})
    recipe = recipe_text(runs[0].recipe.as_dict())
    yield f"table     {table.name}: {table.about}"
    yield f"runs      {networks} networks x {seeds} seed{'s' * (seeds > 1)} on {runs[0].data}, by {recipe}; {stand}"


def show_plan(runs: Sequence[Run], waiting: Sequence[Run], device: str) -> Iterator[str]:
    """Row by row: how many runs are left, and about how long they take on this machine."""
    from rkcnn.cli.summary import clock
    from rkcnn.data.load import find
    from rkcnn.reproduce.estimate import count_flops, measure_rate, training_flops
    from rkcnn.reproduce.local import places_for

    specs = list(dict.fromkeys(run.spec for run in runs))
    flops = {spec: count_flops(spec, find(runs[0].data)) for spec in specs}
    places = places_for(device, len(waiting))
    rate = measure_rate(waiting, flops, places[0]) * len(places) if waiting else 1.0
    width = max(map(len, specs))
    total = 0.0
    yield f"{'network':{width}}  {'MFLOPs':>9}  {'left':>4}  {'about':>9}"
    for spec in specs:
        left = [run for run in waiting if run.spec == spec]
        seconds = sum(training_flops(run, flops[spec]) for run in left) / rate
        total += seconds
        yield f"{spec:{width}}  {flops[spec] / 1e6:9.1f}  {len(left):4}  {clock(seconds):>9}"
    where = places[0].device if len(places) == 1 else f"{len(places)} x {places[0].device}"
    yield f"{'all':{width}}  {'':9}  {len(waiting):4}  {clock(total):>9}  on {where}"
    yield (
        f"The times are FLOPs over the {rate / 1e9:,.0f} GFLOP/s of a few steps just timed here: a guess within a "
        "factor of two or three, and too short where the data decides how long a solver takes."
    )


def summarise(stand: dict[Run, Result | str | InputError]) -> Iterator[str]:
    """Each network's errors: last epoch, mean and deviation over its seeds."""
    from rkcnn.cli.summary import percent
    from rkcnn.record.result import Result

    width = max(len(run.spec) for run in stand)
    yield ""
    yield f"{'network':{width}}  {'error, last epoch':>21}  {'best epoch':>10}  runs"
    for spec in dict.fromkeys(run.spec for run in stand):
        found = [state for run, state in stand.items() if run.spec == spec]
        results = [state for state in found if isinstance(state, Result)]
        last = [result.error for result in results if result.error is not None]
        best = [result.error_best for result in results if result.finished and result.error_best is not None]
        spread = f" +- {100 * stdev(last):.2f}" if len(last) > 1 else ""
        words = [f"{len(last)} of {len(found)}"]
        if diverged := len(results) - len(last):
            words.append(f"{diverged} diverged")
        error = f"{100 * mean(last):.2f}{spread} %" if last else "-"
        yield f"{spec:{width}}  {error:>21}  {percent(mean(best)) if best else '-':>10}  {', '.join(words)}"
