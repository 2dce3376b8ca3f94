"""A table in words: what would be trained and about how long that takes, and the results afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING

from rkcnn.cli.run_summary import roughly
from rkcnn.record.result import Result
from rkcnn.use.progress import percent

if TYPE_CHECKING:
    from rkcnn.error import InputError
    from rkcnn.record.run import Run
    from rkcnn.record.tables import Table

WARNINGS = {
    "smoke": "SMOKE: forty steps on the bundled digits; shows that everything runs, and says nothing about accuracy",
    "fast": "FAST: a short recipe of our own; not the paper's, and not to be compared with its numbers",
}
"""What is said before and after a table that is not trained as in the paper, by preset."""


def describe_table(table: Table, preset: str, runs: Sequence[Run], progress: str) -> Iterator[str]:
    """Yield what will be trained; `progress` says how many runs are finished."""
    if preset in WARNINGS:
        yield WARNINGS[preset]
    networks, seeds = len({run.spec for run in runs}), len({run.seed for run in runs})
    size = f"{networks} network{'s' * (networks > 1)} x {seeds} seed{'s' * (seeds > 1)}"
    yield f"table     {table.name}: {table.about}"
    yield f"runs      {size} on {runs[0].data}, recipe {runs[0].recipe.describe_precision()}; {progress}"


def describe_plan(runs: Sequence[Run], unfinished: Sequence[Run], device: str) -> Iterator[str]:
    """Yield, for each network, how many runs are left and about how long they take on this machine."""
    from rkcnn.data.sets import find_set
    from rkcnn.reproduce.estimate import count_flops, measure_speed, training_flops
    from rkcnn.reproduce.local import slots_for

    specs = list(dict.fromkeys(run.spec for run in runs))
    flops = {spec: count_flops(spec, find_set(runs[0].data)) for spec in specs}
    slots = slots_for(device, len(unfinished))
    speed = measure_speed(unfinished, flops, slots[0]) * len(slots) if unfinished else 1.0
    width = max(map(len, specs))
    total = 0.0
    yield f"{'network':{width}}  {'MFLOPs':>9}  {'left':>4}  {'about':>10}"
    for spec in specs:
        left = [run for run in unfinished if run.spec == spec]
        seconds = sum(training_flops(run, flops[spec]) for run in left) / speed
        total += seconds
        yield f"{spec:{width}}  {flops[spec] / 1e6:9.1f}  {len(left):4}  {roughly(seconds) if left else '-':>10}"
    where = slots[0].device if len(slots) == 1 else f"{len(slots)} x {slots[0].device}"
    yield f"{'all':{width}}  {'':9}  {len(unfinished):4}  {roughly(total) if unfinished else '-':>10}  on {where}"
    yield (
        f"The times are FLOPs over the {float(f'{speed / 1e9:.1g}'):,g} GFLOP/s of a few steps just timed here: right "
        "within a factor of two or three, and too short where the data decides how long a solver takes."
    )


def summarise_table(states: Mapping[Run, Result | str | InputError]) -> Iterator[str]:
    """Yield the errors of each network: mean and standard deviation over its seeds.

    `states` gives the result of each run, or how far it is, or why its result can't be used.
    """
    width = max(len(run.spec) for run in states)
    yield ""
    yield f"{'network':{width}}  {'error, last epoch':>21}  {'best epoch*':>11}  runs"
    for spec in dict.fromkeys(run.spec for run in states):
        own = [state for run, state in states.items() if run.spec == spec]
        results = [state for state in own if isinstance(state, Result)]
        last = [result.error for result in results if result.error is not None]
        best = [result.error_best for result in results if result.finished and result.error_best is not None]
        spread = f" +- {100 * stdev(last):.2f}" if len(last) > 1 else ""
        counts = [f"{len(last)} of {len(own)}"]
        if diverged := len(results) - len(last):
            counts.append(f"{diverged} diverged")
        error = f"{100 * mean(last):.2f}{spread} %" if last else "-"
        yield f"{spec:{width}}  {error:>21}  {percent(mean(best)) if best else '-':>11}  {', '.join(counts)}"
    yield "* the lowest error of any epoch, chosen on the test set"
