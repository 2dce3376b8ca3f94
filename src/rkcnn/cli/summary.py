"""Runs and tables in words: what would be trained and about how long that takes, and the results afterwards.

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from statistics import mean, stdev
from typing import TYPE_CHECKING

from rkcnn.error import InputError, with_flags
from rkcnn.record.result import Result
from rkcnn.run.advice import advise_after
from rkcnn.run_folder import CONFIG, CURVES, METRICS, PREDICTIONS, RESULT, WEIGHTS, find_checkpoints, tensors_of
from rkcnn.use.progress import clock, percent, say_other_code

if TYPE_CHECKING:
    from rkcnn.record.run import Run
    from rkcnn.record.tables import Table


FILES = {
    WEIGHTS: "the trained network",
    RESULT: "every number of the run",
    METRICS: "loss and errors of each epoch, a row each",
    CONFIG: "the settings: rkcnn train --config FILE{init_from} repeats the run",
    PREDICTIONS: "the predicted class of each {held_out} image",
    f"{CURVES}.svg": "errors and loss by epoch (curves.png too)",
}


def roughly(seconds: float) -> str:
    """Return an estimated time with one significant digit: "seconds", "20 minutes", "1 hour", "3 days"."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 0.75 * size:
            number = max(1.0, float(f"{seconds / size:.1g}"))
            return f"{number:,.0f} {unit}{'s' * (number > 1)}"
    return "seconds"


def describe_finished(folder: Path, result: Result) -> Iterator[str]:
    """Yield that a run is finished already and how to repeat it, and if the code has changed since."""
    state = "is finished" if result.finished else "diverged"
    yield f"seed {result.run.seed} {state} already, in {folder}; --again repeats it"
    if result.finished and not (folder / WEIGHTS).exists():
        yield f"  its {WEIGHTS} is not there, so it can't be evaluated or used; --again trains it anew"
    yield from (f"  {sentence}" for sentence in say_other_code(result))


def save_curves(folder: Path, result: Result) -> Iterator[str]:
    """Draw a run's curves into its folder; yield a note if that can't be done, which does not fail the run."""
    if not result.epochs:
        return
    try:
        from rkcnn.report.figures.curves import draw_curves
        from rkcnn.report.figures.style import save_figure

        save_figure(draw_curves(result), folder / CURVES)
    except ImportError:
        yield "note      no curves: matplotlib is not installed here (pip install matplotlib)"
    except InputError as error:
        yield f"note      no curves: {with_flags(str(error))}"


def summarise_runs(results: Sequence[Result], folders: Sequence[Path]) -> Iterator[str]:
    """Yield the errors of the last and the best epoch, the time, the files, and what to try next."""
    yield ""
    for result, folder in zip(results, folders, strict=True):
        seed = f"seed {result.run.seed}: " if len(results) > 1 else ""
        if result.finished:
            images = f"the {result.run.held_out} set"
            yield (
                f"error     {seed}{percent(result.error)} on {images} after the last epoch; "
                f"best {percent(result.error_best)} after epoch {result.best_epoch} (chosen on {images})"
            )
            for advice in advise_after(result):
                yield f"note      {with_flags(advice)}"
        else:
            yield f"DIVERGED  {seed}{result.status.removeprefix('diverged: ')}"
            yield f"          last good checkpoint: {_last_checkpoint(folder)}; a lower lr may help: --lr ..."
    errors = [result.error for result in results if result.error is not None]
    if len(errors) > 1:
        yield f"          mean of {len(errors)} seeds {percent(mean(errors))} ± {percent(stdev(errors))}"
    seconds = mean(result.seconds for result in results)
    rate = mean(result.images_per_second for result in results)
    peak = max(result.peak_bytes for result in results)
    each = " a run" * (len(results) > 1)
    yield f"time      {clock(seconds)} of training{each}, {rate:,.0f} images/s{each}, {peak / 1e6:,.0f} MB of memory"
    for folder in folders:
        yield f"folder    {folder}"
    init_from = _repeat_start(results[0])
    for name, content in FILES.items():
        if (folders[0] / name).exists():
            yield f"          {name:21} {content.format(held_out=results[0].run.held_out, init_from=init_from)}"
    if all(result.finished for result in results):
        yield from suggest_next(results[0], folders[0])


def suggest_next(result: Result, folder: Path) -> Iterator[str]:
    """Yield commands to try next, each with what it is for."""
    other = "ResNet@k=32" if result.run.network != "ResNet@k=32" else "RKCNN-R-2@k=32"
    run = quote(str(folder))
    ideas = [
        (f"rkcnn evaluate {run}", "what it gets wrong, and how sure it is"),
        (f"rkcnn predict {run} picture.png", "what it says about a picture of yours"),
    ]
    out = folder.parents[3]  # a run's name is four folders deep
    if (result.run.data, str(result.run.recipe), out) == ("mnist-mini", "mini", Path("runs")):
        ideas.append((f"rkcnn train {other}", "another network, trained in the same way"))
    ideas.append((f"rkcnn runs --from {quote(str(out))}" if out != Path("runs") else "rkcnn runs", "all results"))
    for i, (command, purpose) in enumerate(ideas):
        yield f"{'' if i else 'next':9} {command}  # {purpose}"


def _repeat_start(result: Result) -> str:
    """Return the option that names the trained weights that a run started from; empty where they were new."""
    if not result.run.recipe.initial_weights:
        return ""
    from rkcnn.run.settings import INIT_FROM  # imports torch, which has trained the run

    return f" --init-from {quote(result.data.get(INIT_FROM, '...'))}"


def _last_checkpoint(folder: Path) -> str:
    checkpoints = find_checkpoints(folder)
    return str(tensors_of(checkpoints[-1])) if checkpoints else "none"


WARNINGS = {
    "smoke": "SMOKE: forty steps on the bundled digits; shows that everything runs, and says nothing about accuracy",
    "fast": "FAST: a short recipe of our own; not the paper's, and not to be compared with its numbers",
}
"""What is said before and after a table that is not trained as in the paper, by preset."""


def describe_table(table: Table, preset: str, runs: Sequence[Run], progress: str) -> Iterator[str]:
    """Yield what will be trained; `progress` says how many runs are finished."""
    if preset in WARNINGS:
        yield WARNINGS[preset]
    networks, seeds = len({run.network for run in runs}), len({run.seed for run in runs})
    size = f"{networks} network{'s' * (networks > 1)} x {seeds} seed{'s' * (seeds > 1)}"
    yield f"table     {table.name}: {table.about}"
    yield f"runs      {size} on {runs[0].data}, recipe {runs[0].recipe.describe_precision()}; {progress}"


def describe_plan(runs: Sequence[Run], unfinished: Sequence[Run], device: str) -> Iterator[str]:
    """Yield, for each network, how many runs are left and about how long they take on this machine."""
    from rkcnn.data.sets import find_set
    from rkcnn.reproduce.estimate import count_cost, measure_speed, training_flops
    from rkcnn.reproduce.local import slots_for

    specs = list(dict.fromkeys(run.network for run in runs))
    costs = {spec: count_cost(spec, find_set(runs[0].data)) for spec in specs}
    flops = {spec: each.flops for spec, each in costs.items()}
    slots = slots_for(device, len(unfinished))
    speed = measure_speed(unfinished, flops, slots[0]) * len(slots) if unfinished else 1.0
    width = max(map(len, specs))
    total = 0.0
    yield f"{'network':{width}}  {'MFLOPs':>9}  {'left':>4}  {'about':>10}"
    for spec in specs:
        left = [run for run in unfinished if run.network == spec]
        seconds = sum(training_flops(run, flops[spec]) for run in left) / speed
        total += seconds
        least = "" if costs[spec].exact else ">"
        time = f"{least}{roughly(seconds)}" if left else "-"
        yield f"{spec:{width}}  {f'{least}{flops[spec] / 1e6:.1f}':>9}  {len(left):4}  {time:>10}"
    where = slots[0].device if len(slots) == 1 else f"{len(slots)} x {slots[0].device}"
    least = ">" * any(not costs[run.network].exact for run in unfinished)
    time = f"{least}{roughly(total)}" if unfinished else "-"
    yield f"{'all':{width}}  {'':9}  {len(unfinished):4}  {time:>10}  on {where}"
    yield (
        f"The times are FLOPs over the {float(f'{speed / 1e9:.1g}'):,g} GFLOP/s of a few steps just timed here: right "
        "within a factor of two or three. > marks the least, where the data decides how long a solver takes."
    )


def summarise_table(states: Mapping[Run, Result | str | InputError]) -> Iterator[str]:
    """Yield the errors of each network: mean and standard deviation over its seeds.

    `states` gives the result of each run, or how far it is, or why its result can't be used.
    """
    width = max(len(run.network) for run in states)
    yield ""
    yield f"{'network':{width}}  {'error, last epoch':>21}  {'best epoch*':>11}  runs"
    for spec in dict.fromkeys(run.network for run in states):
        own = [state for run, state in states.items() if run.network == spec]
        results = [state for state in own if isinstance(state, Result)]
        last = [result.error for result in results if result.error is not None]
        best = [result.error_best for result in results if result.finished and result.error_best is not None]
        spread = f" ± {100 * stdev(last):.2f}" if len(last) > 1 else ""
        counts = [f"{len(last)} of {len(own)}"]
        if diverged := len(results) - len(last):
            counts.append(f"{diverged} diverged")
        error = f"{100 * mean(last):.2f}{spread} %" if last else "-"
        yield f"{spec:{width}}  {error:>21}  {percent(mean(best)) if best else '-':>11}  {', '.join(counts)}"
    yield "* the lowest error of any epoch, chosen on the test set"
