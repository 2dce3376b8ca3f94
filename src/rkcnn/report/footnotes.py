"""How a table is to be read: how theirs was counted, where it came from, how far a test set can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from rkcnn.data.sets import SETS
from rkcnn.evaluation.binomial import sampling_error, wilson
from rkcnn.evaluation.nvidia_smi import MIB
from rkcnn.report.cost_check import NAMES, check_costs
from rkcnn.report.entry import percent
from rkcnn.report.footprint import is_measured, is_printed
from rkcnn.report.frontier import is_timed
from rkcnn.report.view import View

NORMS = (
    "The blocks of RKCNN, DenseNet and CliqueNet have batch norm here, the others group norm (docs/spec.md, 3.5): a "
    "difference between the two groups may be the norm's. The table `norms` is there to tell them apart."
)

TIME = (
    "There is no figure of error against training time: runs of this table were trained side by side, or their records "
    "don't say whether, and runs that share a device share one time, which says more of how they were packed."
)


def footnotes(view: View) -> Iterator[str]:
    """One sentence or two each; about this table alone."""
    yield from _note_theirs(view)
    yield from _note_others(view)
    yield from _note_costs(view)
    yield from _note_memory(view)
    sampling = note_sampling(view)
    if sampling:
        yield sampling
    yield from note_single(view)
    if not is_timed(view):
        yield TIME
    yield from note_norms(view)
    yield from note_control(view)
    for row in view.rows:
        if row.diverged:
            seeds = ", ".join(str(result.run.seed) for result in row.diverged)
            yield f"{row.label} diverged with seed {seeds}: {row.diverged[0].status.removeprefix('diverged: ')}."


def note_sampling(view: View) -> str:
    """The test set is a sample itself, which more seeds don't mend; empty where there is nothing to say it of."""
    means = [row.last.mean for row in view.rows if row.last]
    if not means or view.preset == "smoke":
        return ""
    images = SETS[view.table.data_at(view.preset)].test.images
    error = fmean(means)
    spread = sampling_error(error, images)
    return (
        f"Intervals are over seeds, on these {images:,} test images. The images are a sample too: an error of "
        f"{percent(error, 2)} % of them is known to ±{percent(spread.se, 3)} points (one standard error; "
        f"95 %: ±{percent(spread.half, 3)}), however many seeds, and a difference of two networks hardly better: a "
        "small one may turn round on other images."
    )


def note_control(view: View) -> Iterator[str]:
    """What Identity is, where it is a row."""
    for row in view.rows:
        if row.family == "Identity":
            yield (
                f"{row.label} is the frame with nothing in it: every layer but the steps. The paper has no such "
                "control; what a row's steps add is its difference from it (behind the blocks of DenseNet and "
                "CliqueNet the next layer is wider, too)."
            )


def note_norms(view: View) -> Iterator[str]:
    """On MNIST the norm is mixed up with the kind of step."""
    if view.table.data == "mnist" and view.table.name != "norms" and view.preset != "smoke":
        yield NORMS


def note_single(view: View) -> Iterator[str]:
    """One run has no deviation; what its test set allows is known all the same."""
    if view.preset == "smoke":
        return
    images = SETS[view.table.data_at(view.preset)].test.images
    for row in view.rows:
        if row.last and row.last.n == 1:
            low, high = (percent(end, 2) for end in wilson(round(row.last.mean * images), images))
            yield (
                f"{row.label} is one run: {percent(row.last.mean, 2)} % of {images:,} images, {low} to {high} % by "
                "Wilson's 95 % interval for the draw of the images; of other seeds it says nothing."
            )


def _note_theirs(view: View) -> Iterator[str]:
    if any(row.printed for row in view.rows):
        yield (
            "Errors in percent. theirs: lowest(mean±std) over the paper's runs, each counted at its best epoch on the "
            "test set, as its public code does; best: ours, counted so; last: ours after the last epoch, mean±std, the "
            "fairer number, since nothing was chosen by the test set; n: seeds" + _say_gaps(view)
        )
    else:
        yield "Errors in percent; last: mean±std after the last epoch, best: lowest(mean±std) of the best epochs."
    quoted = [row.printed.quoted for row in view.rows if row.printed and row.printed.quoted]
    if quoted:
        yield (
            f"* quoted by the paper from {'; '.join(dict.fromkeys(quoted))}: trained by their own recipes. Ours "
            f"beside them is trained by this table's ({view.table.recipe_at(view.preset)}), so a difference may be the "
            "recipe's."
        )
    notes: dict[str, list[str]] = {}
    for row in view.rows:
        if row.printed and row.printed.note:
            notes.setdefault(row.printed.note, []).append(f"{row.label} ({row.printed.printed})")
    for note, rows in notes.items():
        yield f"Theirs of {', '.join(rows)}: {note}."


def _say_gaps(view: View) -> str:
    """What Δ is, or why there is none."""
    if view.preset != "paper":
        return ". theirs is for orientation alone: ours is not by the paper's recipe, so no difference is given."
    if not any(row.whole and row.printed for row in view.rows):
        return "."
    return (
        "; Δ: our mean minus theirs. Δ best compares like with like; Δ last sets our last epoch against their best "
        "one, and so comes out higher by what choosing gains."
    )


def _note_others(view: View) -> Iterator[str]:
    if view.others:
        listed = ", ".join(f"{number} by {name}" for name, number in view.others.items())
        yield f"Results of these networks by other recipes are left out: {listed}."


def _note_costs(view: View) -> Iterator[str]:
    for row in view.rows:
        for check in check_costs(view, row):
            if check.state == "slip":
                yield f"{row.label}, {NAMES[check.column]}: {check.why}."
            elif check.state == "differs":
                cell = f"{row.label}, {NAMES[check.column]}"
                yield f"{cell}: the paper has {check.printed}, the records {check.counted:,}."


def _note_memory(view: View) -> Iterator[str]:
    if not is_measured(view):
        return
    gpus = ", ".join(sorted({row.memory.gpu for row in view.rows if row.memory}))
    control = f"{view.control.spec}, {view.control.driver_bytes // MIB} MiB" if view.control else "not measured yet"
    yield (
        f"Memory in MiB, of a fresh process that infers one image on {gpus}. driver: what the driver counts for it, "
        "with the CUDA context; reserved: the most that torch held of it; allocated: the most that its tensors took; "
        f"− Identity: the driver's minus that of the frame without any step ({control}), which includes libraries that "
        "a network loads and torch doesn't count."
    )
    if is_printed(view):
        yield (
            "The paper's memory includes the CUDA context of its own machine, as the driver's includes that of ours: "
            "only differences between rows can be compared."
        )
