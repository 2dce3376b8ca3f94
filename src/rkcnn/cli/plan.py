"""A table in words: what would run, about how long, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rkcnn.error import InputError
    from rkcnn.record.result import Result
    from rkcnn.record.run import Run
    from rkcnn.record.tables import Table

MARKS = {
    "smoke": "SMOKE: forty steps on the bundled digits; shows that everything runs, and says nothing about accuracy",
    "fast": "FAST: a short recipe of our own; not the paper's, and not to be compared with its numbers",
}


def describe(table: Table, preset: str, runs: Sequence[Run], stand: str) -> Iterator[str]:
    """What will happen."""

    if preset in MARKS:
        yield MARKS[preset]
    networks, seeds = len({run.spec for run in runs}), len({run.seed for run in runs})
    recipe = str(runs[0].recipe)
    yield f"table     {table.name}: {table.about}"
    size = f"{networks} network{'s' * (networks > 1)} x {seeds} seed{'s' * (seeds > 1)}"
    yield f"runs      {size} on {runs[0].data}, by {recipe}; {stand}"


def show_plan(runs: Sequence[Run], waiting: Sequence[Run], device: str) -> Iterator[str]:
    """Row by row: how many runs are left, and about how long they take on this machine."""
    from rkcnn.cli.summary import clock
    from rkcnn.data.sets import find_set
    from rkcnn.reproduce.estimate import count_flops, measure_rate, training_flops
    from rkcnn.reproduce.local import places_for

    specs = list(dict.fromkeys(run.spec for run in runs))
    flops = {spec: count_flops(spec, find_set(runs[0].data)) for spec in specs}
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
