"""Results in words: what came of runs, where everything is, what to try next. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from statistics import mean, stdev

from rkcnn.error import InputError
from rkcnn.record.result import Result, find_other_code
from rkcnn.run_folder import CURVES, PREDICTIONS, RESULT, WEIGHTS, find_checkpoints, tensors_of

FILES = {
    WEIGHTS: "the trained network",
    RESULT: "every number of the run",
    PREDICTIONS: "what it says of each test image",
    f"{CURVES}.svg": "errors and loss by epoch (curves.png too)",
}


def percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:.2f} %"


def clock(seconds: float) -> str:
    """1:05, or 2:03:04 from an hour on, or 4 d 2 h from three days on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 72:
        return f"{hours // 24:,} d {hours % 24} h"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def recall(folder: Path, result: Result) -> Iterator[str]:
    """A run that is finished already: how to repeat it, and which epochs a different version of the code computed."""
    what = "is finished" if result.finished else "diverged"
    yield f"seed {result.run.seed} {what} already, in {folder}; --again repeats it"
    for other in find_other_code(result.stretches, result.run.spec):
        made = f"commit {other.commit or 'unknown'}, source {other.source}"
        yield f"  {other.epochs} of its epochs were computed by a different version of the code ({made})"


def draw_course(folder: Path, result: Result) -> Iterator[str]:
    """Draw a run's curves into its folder; a line if that can't be done, which costs the run nothing."""
    if not result.epochs:
        return
    try:
        from rkcnn.report.curves import draw_curves
        from rkcnn.report.picture import save_figure

        save_figure(draw_curves(result), folder / CURVES)
    except ImportError:
        yield "note      no curves: matplotlib is not installed here (pip install matplotlib)"
    except InputError as error:
        yield f"note      no curves: {error}"


def summarise(results: Sequence[Result], folders: Sequence[Path]) -> Iterator[str]:
    """Errors of the last and the best epoch, time, where everything is, what to try next."""
    yield ""
    for result, folder in zip(results, folders, strict=True):
        seed = f"seed {result.run.seed}: " if len(results) > 1 else ""
        if result.finished:
            yield (
                f"error     {seed}{percent(result.error)} in the last epoch, best {percent(result.error_best)} "
                f"in epoch {result.best_epoch}"
            )
        else:
            yield f"DIVERGED  {seed}{result.status.removeprefix('diverged: ')}"
            yield f"          last good checkpoint: {_last_checkpoint(folder)}; a lower lr may help: --set lr=..."
    errors = [result.error for result in results if result.error is not None]
    if len(errors) > 1:
        yield f"          mean of {len(errors)} seeds {percent(mean(errors))} +- {percent(stdev(errors))}"
    seconds = mean(result.seconds for result in results)
    rate = mean(result.images_per_second for result in results)
    peak = max(result.peak_bytes for result in results)
    each = " a run" * (len(results) > 1)
    yield f"time      {clock(seconds)}{each}, {rate:,.0f} images/s{each}, {peak / 1e6:,.0f} MB of memory at most"
    for folder in folders:
        yield f"folder    {folder}"
    there = [(name, about) for name, about in FILES.items() if (folders[0] / name).exists()]
    for name, about in there:
        yield f"          {name:21} {about}"
    if all(result.finished for result in results):
        yield from suggest(results[0], folders[0])


def suggest(result: Result, folder: Path) -> Iterator[str]:
    """What to try next, each as a command with what it is for."""
    other = "ResNet@k=32" if result.run.spec != "ResNet@k=32" else "RKCNN-R-2@k=32"
    ideas = [(f"rkcnn evaluate {quote(str(folder))}", "what it gets wrong, and how sure it is")]
    if result.run.data == "mnist-mini":
        ideas.append((f"rkcnn train {other}", "a rival, in the same way"))
    out = folder.parents[3]  # a run's name is four folders deep
    ideas.append((f"rkcnn runs --from {quote(str(out))}" if out != Path("runs") else "rkcnn runs", "all results"))
    for i, (command, about) in enumerate(ideas):
        yield f"{'' if i else 'next':9} {command}  # {about}"


def _last_checkpoint(folder: Path) -> str:
    kept = find_checkpoints(folder)
    return str(tensors_of(kept[-1])) if kept else "none"
