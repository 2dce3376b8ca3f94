"""rkcnn reproduce: a whole table."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.data import FromSources
from rkcnn.cli.plan import MARKS, describe, show_plan, summarise
from rkcnn.data.sources import Sources
from rkcnn.error import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from rkcnn.record.result import Result
    from rkcnn.record.run import Run
    from rkcnn.reproduce.event import Event


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
    from rkcnn.record.run_state import BEGUN, NEW
    from rkcnn.record.tables import find_table

    if on not in ("local", "ray"):
        raise InputError(f"--on {on} given; a table runs on local or on ray")
    if on == "local" and (address or store):
        raise InputError(f"--{'address' if address else 'store'} given with --on local; it goes with --on ray")
    folders = [(name, folder) for name, folder in (("--out", out), ("--store", store)) if folder is not None]
    for name, folder in folders:
        _find_folder(name, folder)
    chosen = find_table(table)
    runs = chosen.runs(recipe, rows, seeds)
    console = make_console()
    stand = stand_of(runs, out, store)
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
        for name, folder in folders:
            _check_writable(name, folder)
        try:
            with _answering():
                failed |= _go(console, waiting, out, on, device, engine, address, store, sources)
        except (KeyboardInterrupt, SystemExit) as stop:
            done = sum(isinstance(state, Result) for state in stand_of(runs, out, store).values())
            print(f"rkcnn: stopped with {done} of {len(runs)} runs done; the same command continues", file=sys.stderr)
            return stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
    stand = stand_of(runs, out, store)
    for line in summarise(stand):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if recipe in MARKS:
        print(MARKS[recipe])
    if any(isinstance(state, Result) for state in stand.values()):
        print(f"next      rkcnn report {table} --from {out}" + f" --recipe {recipe}" * (recipe != "paper"))
    return 1 if failed else 0


def _find_folder(name: str, folder: Path) -> Path:
    """That folder, or the one in which it would be made."""
    try:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists() or path.is_symlink())
    except OSError as error:
        raise InputError(f"{name} {folder} given: {error.strerror}; name another folder") from None
    if not there.is_dir():
        what = "that" if there == folder else "a part of it"
        raise InputError(f"{name} {folder} given, and {what} is no folder; name another")
    return there


def _check_writable(name: str, folder: Path) -> None:
    """Whether runs can be kept there is found out before anything is made; a plan and a finished table only read."""
    if not os.access(_find_folder(name, folder), os.W_OK):
        raise InputError(f"{name} {folder} given, and nothing can be written there; name another folder")


def make_console() -> Console:
    """One whose reader may leave, as `head` does: then the table stops, and 141 says why."""
    from rich.console import Console

    from rkcnn.cli import PIPE

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise SystemExit(PIPE)

    return Screen()


def stand_of(runs: Sequence[Run], out: Path, store: Path | None) -> dict[Run, Result | str | InputError]:
    """How far each run has come; where a result can't be taken, why not."""
    from rkcnn.record.run_state import find_state

    found: dict[Run, Result | str | InputError] = {}
    for run in runs:
        try:
            found[run] = find_state(run, out, store)
        except InputError as error:
            found[run] = error
    return found


@contextmanager
def _answering() -> Iterator[None]:
    """Ctrl-C and SIGTERM are answered at once, since keeping what there is may take a while."""
    asked = 0

    def stop(number: int, frame: object) -> None:
        nonlocal asked
        asked += 1
        now = "at once" if asked > 1 else "every run keeps where it stands"
        with suppress(OSError):  # its reader may be gone; the stop must come all the same
            print(f"rkcnn: stopping; {now}", file=sys.stderr, flush=True)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # as a shell's background job has it
    before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM) if n == signal.SIGTERM or not ignored}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    from rkcnn.cli.table_progress import Board
    from rkcnn.data.load import find, load
    from rkcnn.data.progress import Progress
    from rkcnn.fit.engine import check_engine
    from rkcnn.reproduce.estimate import count_flops
    from rkcnn.run.side_by_side import Execution
    from rkcnn.run.train import check_fit

    check_engine(engine)
    training, _ = load(runs[0].data, sources, progress=Progress(sys.stderr))
    for spec in dict.fromkeys(run.spec for run in runs):
        check_fit(spec, training)
    flops = {spec: count_flops(spec, find(runs[0].data)) for spec in {run.spec for run in runs}}
    way = Execution(out, device, engine)
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
