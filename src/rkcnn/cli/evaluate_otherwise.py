"""rkcnn evaluate --with and --corrupt: the network solved by other methods, and on corrupted images."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rkcnn.cli.count_progress import CountProgress
from rkcnn.cli.evaluate import Evaluation
from rkcnn.cli.output import print_line

if TYPE_CHECKING:
    from rkcnn.model.other_solver import SolverChoice


def report_solvers(task: Evaluation, choices: Sequence[SolverChoice]) -> None:
    """Print the error by each solver beside that of the training's, with what the solves took."""
    from rkcnn.use.compare_solvers import compare_solvers

    found = compare_solvers(task.classifier, task.images, choices, task.device)
    if task.json:
        task.print_json({"solvers": [{**asdict(each), "metrics": each.metrics.as_dict()} for each in found]})
        return
    task.print_head()
    width = max(len("solver"), *(len(each.solver) for each in found))
    print_line(
        f"{'solver':{width}}  {'error':>9}  {'95 % interval':>17}  changed answers  evaluations of f  not converged"
    )
    for number, each in enumerate(found):
        low, high = (100 * bound for bound in each.metrics.interval)
        interval = f"{low:.2f} to {high:.2f} %"
        changed = "as trained" if number == 0 else f"{100 * each.changed:.2f} %"
        print_line(
            f"{each.solver:{width}}  {100 * each.metrics.error:7.2f} %  {interval:>17}  {changed:>15}  "
            f"{each.evaluations:16.1f}  {100 * each.unconverged:11.2f} %"
        )


def report_corrupted(task: Evaluation) -> None:
    """Print and draw the error under each corruption by its grade."""
    from rkcnn.disk import writing_to
    from rkcnn.evaluation.corruption import GRADES
    from rkcnn.report.figures.corruptions import draw_corruptions
    from rkcnn.report.figures.style import save_figure
    from rkcnn.use.measure_corrupted import measure_corrupted

    with writing_to(task.folder, "name another folder with -o"):
        task.folder.mkdir(parents=True, exist_ok=True)
    progress = CountProgress(sys.stderr, "evaluations")
    clean, errors = measure_corrupted(task.classifier, task.images, task.device, progress.show)
    progress.clear()
    title = f"{task.classifier.name} on {task.images.name}"
    pictures = save_figure(draw_corruptions(clean, errors, title), task.folder / "corruptions")
    if task.json:
        task.print_json({"clean": clean, "corrupted": errors, "pictures": [str(path) for path in pictures]})
        return
    task.print_head()
    print_line(f"error        {100 * clean:.2f} % of the clean images")
    grades = "".join(f"{f'grade {grade}':>9}" for grade in GRADES)
    print_line(f"{'error, %':12}{grades}{'mean':>9}")
    for kind, values in errors.items():
        shown = "".join(f"{100 * value:9.2f}" for value in (*values, sum(values) / len(values)))
        print_line(f"  {kind:10}{shown}")
    for path in pictures:
        print_line(f"wrote        {path}")
