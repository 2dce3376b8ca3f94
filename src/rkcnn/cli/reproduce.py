"""rkcnn reproduce: trains the runs of a whole table."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.data import FromSources, WholeNumber
from rkcnn.cli.output import print_error, print_line, print_on
from rkcnn.data.options import Sources
from rkcnn.error import InputError, with_flags
from rkcnn.interrupt import exit_if_importing

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

    from rkcnn.record.result import Result
    from rkcnn.record.run import Run
    from rkcnn.reproduce.events import Event
    from rkcnn.run.side_by_side import Execution


def reproduce(
    table: str,
    /,
    *,
    rows: str = "*",
    seeds: WholeNumber | None = None,
    preset: str = "paper",
    precision: str | None = None,
    out: Path = Path("runs"),
    plan: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    device: str = "auto",
    engine: str = "auto",
    on: str = "local",
    address: str | None = None,
    store: Path | None = None,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
) -> int:
    """Train the runs of a table that are not finished, and print the errors. Returns the exit code.

    Parameters
    ----------
    table
        One of the paper's: mnist, cifar10, cifar100, svhn, sota-mnist, sota-cifar10, sota-cifar100, sota-svhn;
        or one of ours: ablation, scaling, norms, statistics.
    rows
        Only the networks that match a pattern, for example 'RKCNN-*@k=32'; several patterns with commas between them.
    seeds
        How many runs of each network; by default as in the paper, 5 on MNIST and 3 elsewhere.
    preset
        paper: as in the paper; fast: a short recipe of ours; smoke: forty steps on bundled digits.
    precision
        fp32, tf32 or bf16 for all runs, instead of that of the preset's recipe; their names and tables say it.
    out
        The folder in which runs are kept.
    plan
        Only print what would be trained and about how long it would take.
    device
        cpu, cuda, cuda:N, or auto: all GPUs, or the CPU cores if there is none. With --on ray: cpu, cuda or auto.
    engine
        How steps are executed: eager, compile, graph, fused (kernels of our own, in bf16 or tf32), or auto:
        the fastest that can run each network.
    on
        local: this machine; ray: a Ray cluster.
    address
        With --on ray: HOST:PORT of the cluster; without it a cluster is started on this machine for the purpose.
    store
        With --on ray: a folder for checkpoints that all machines share; without it they are sent to this machine.
    """
    from rkcnn.cli.summary import WARNINGS, describe_plan, describe_table, summarise_table
    from rkcnn.fit.engine_names import check_engine
    from rkcnn.record.result import Result
    from rkcnn.record.run_state import BEGUN, NEW
    from rkcnn.record.tables import find_table

    check_engine(engine)
    if on not in ("local", "ray"):
        raise InputError(f"--on {on} given; a table is trained on local or on ray")
    if on == "local" and (address or store):
        raise InputError(f"--{'address' if address else 'store'} given with --on local; it goes with --on ray")
    folders = [(flag, folder) for flag, folder in (("--out", out), ("--store", store)) if folder is not None]
    for flag, folder in folders:
        _existing_part(flag, folder)
    chosen = find_table(table)
    runs = chosen.runs(preset, rows, seeds, precision)
    console = make_console()

    states = states_of(runs, out, store)
    unfinished = [run for run, state in states.items() if state in (NEW, BEGUN)]
    failed = {run: with_flags(str(state)) for run, state in states.items() if isinstance(state, InputError)}
    finished = sum(isinstance(state, Result) for state in states.values())
    begun, new = (list(states.values()).count(state) for state in (BEGUN, NEW))
    for line in describe_table(chosen, preset, runs, f"{finished} finished, {begun} begun, {new} new"):
        print_on(console, line)
    for run, why in failed.items():
        print_on(console, f"FAILS     {run.network}  seed {run.seed}  {why}")
    if plan:
        for line in describe_plan(runs, unfinished, device):
            print_on(console, line)
        return 1 if failed else 0
    if unfinished:
        for flag, folder in folders:
            _check_writable(flag, folder)
        try:
            with _stop_on_signals():
                failed |= _train(console, unfinished, out, device, engine, on, address, store, sources)
        except (KeyboardInterrupt, SystemExit) as stop:
            done = sum(isinstance(state, Result) for state in states_of(runs, out, store).values())
            print_error(f"stopped with {done} of {len(runs)} runs finished; the same command continues")
            return stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
    states = states_of(runs, out, store)
    for line in summarise_table(states):
        print_on(console, line)
    if preset in WARNINGS:
        print_line(WARNINGS[preset])
    if any(isinstance(state, Result) for state in states.values()):
        other = f" --precision {precision}" if runs[0].recipe != chosen.recipe_at(preset) else ""
        print_line(f"next      rkcnn report {table} --from {out}{f' --preset {preset}' * (preset != 'paper')}{other}")
    return 1 if failed else 0


def _existing_part(flag: str, folder: Path) -> Path:
    """Return that folder, or the closest folder above it that exists; InputError if that is a file."""
    try:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists() or path.is_symlink())
    except OSError as error:
        raise InputError(f"{flag} {folder} given: {error.strerror}; name another folder") from None
    if not there.is_dir():
        what = "that" if there == folder else "a part of it"
        raise InputError(f"{flag} {folder} given, and {what} is not a folder; name another")
    return there


def _check_writable(flag: str, folder: Path) -> None:
    """Raise InputError if runs can't be kept there, before anything is written."""
    if not os.access(_existing_part(flag, folder), os.W_OK):
        raise InputError(f"{flag} {folder} given, and nothing can be written there; name another folder")


def make_console() -> Console:
    """Return a console that stops the table, with exit code 141, when its reader leaves, as `head` does."""
    from rich.console import Console

    from rkcnn.cli import CLOSED_PIPE

    class ExitingConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise SystemExit(CLOSED_PIPE)

    return ExitingConsole()


def states_of(runs: Sequence[Run], out: Path, store: Path | None) -> dict[Run, Result | str | InputError]:
    """Return the result of each run, or how far it is, or why its result can't be used."""
    from rkcnn.record.run_state import find_state

    states: dict[Run, Result | str | InputError] = {}
    for run in runs:
        try:
            states[run] = find_state(run, out, store)
        except InputError as error:
            states[run] = error
    return states


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into exceptions, with a message at once, because keeping checkpoints takes a while."""
    received = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal received
        exit_if_importing(number, frame)  # workers, if there are any, keep their checkpoints when this process ends
        received += 1
        how = "at once" if received > 1 else "every run that has begun keeps a checkpoint"
        with suppress(OSError):  # nobody may read it any more; the runs must stop all the same
            print_error(f"stopping; {how}")
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # as in a shell's background job
    before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM) if n == signal.SIGTERM or not ignored}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _train(
    console: Console,
    runs: Sequence[Run],
    out: Path,
    device: str,
    engine: str,
    on: str,
    address: str | None,
    store: Path | None,
    sources: Sources,
) -> dict[Run, str]:
    """Train the runs and show their progress; return those that failed, and why."""
    from rkcnn.cli.table_progress import TableProgress
    from rkcnn.data.load import load_data_set
    from rkcnn.data.progress import Progress
    from rkcnn.data.sets import find_set
    from rkcnn.reproduce.estimate import count_cost
    from rkcnn.run.settings import check_network
    from rkcnn.run.side_by_side import Execution

    training, _ = load_data_set(runs[0].data, sources, progress=Progress(sys.stderr))
    for spec in dict.fromkeys(run.network for run in runs):
        check_network(spec, training)
    flops = {spec: count_cost(spec, find_set(runs[0].data)).flops for spec in {run.network for run in runs}}
    events = _start(runs, Execution(out, device, engine), sources, on, address, store)
    with closing(events), TableProgress(console, runs, [float(flops[run.network]) for run in runs]) as shown:
        for event in events:
            shown.show(event)
    return {runs[index]: why for index, why in shown.failed.items()}


def _start(
    runs: Sequence[Run], execution: Execution, sources: Sources, on: str, address: str | None, store: Path | None
) -> Generator[Event, None, None]:
    if on == "ray":
        from rkcnn.reproduce.ray.driver import reproduce_on_ray

        return reproduce_on_ray(runs, execution, sources, address, store)
    from rkcnn.reproduce.local import reproduce_here

    return reproduce_here(runs, execution, sources)
