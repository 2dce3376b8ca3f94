"""The results of runs in words: errors, time, where the files are, and what to try next. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from statistics import mean, stdev

from rkcnn.error import InputError, with_flags
from rkcnn.record.result import Result, find_other_code
from rkcnn.run.advice import advise_after
from rkcnn.run_folder import CONFIG, CURVES, METRICS, PREDICTIONS, RESULT, WEIGHTS, find_checkpoints, tensors_of
from rkcnn.use.progress import clock, percent

FILES = {
    WEIGHTS: "the trained network",
    RESULT: "every number of the run",
    METRICS: "loss and errors of each epoch, a row each",
    CONFIG: "the settings: rkcnn train --config FILE repeats the run",
    PREDICTIONS: "the predicted class of each {} image",
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
    for other in find_other_code(result.stretches, result.run.spec):
        made = f"commit {other.commit or 'unknown'}, source {other.source}"
        yield f"  {other.epochs} of its epochs were computed by a different version of the code ({made})"


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
        yield f"          mean of {len(errors)} seeds {percent(mean(errors))} +- {percent(stdev(errors))}"
    seconds = mean(result.seconds for result in results)
    rate = mean(result.images_per_second for result in results)
    peak = max(result.peak_bytes for result in results)
    each = " a run" * (len(results) > 1)
    yield f"time      {clock(seconds)} of training{each}, {rate:,.0f} images/s{each}, {peak / 1e6:,.0f} MB of memory"
    for folder in folders:
        yield f"folder    {folder}"
    for name, content in FILES.items():
        if (folders[0] / name).exists():
            yield f"          {name:21} {content.format(results[0].run.held_out)}"
    if all(result.finished for result in results):
        yield from suggest_next(results[0], folders[0])


def suggest_next(result: Result, folder: Path) -> Iterator[str]:
    """Yield commands to try next, each with what it is for."""
    other = "ResNet@k=32" if result.run.spec != "ResNet@k=32" else "RKCNN-R-2@k=32"
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


def _last_checkpoint(folder: Path) -> str:
    checkpoints = find_checkpoints(folder)
    return str(tensors_of(checkpoints[-1])) if checkpoints else "none"
