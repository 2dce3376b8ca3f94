"""The notes to a table: how errors were counted, where numbers come from, how far they can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from rkcnn.evaluation.binomial import sampling_error, wilson
from rkcnn.evaluation.memory import MIB
from rkcnn.report.compare import Comparison
from rkcnn.report.costs import NAMES, CostCheck, is_measured, is_printed
from rkcnn.report.machines import note_machines, note_versions
from rkcnn.report.results import ResultTable
from rkcnn.report.sentences import join, percent, say_paper_counts

NORMS = (
    "In this table the blocks of RKCNN, DenseNet and CliqueNet use batch norm and the others group norm "
    "(docs/spec.md, 3.5), so a difference between the two groups may come from the norm. The table `norms` gives all "
    "of them the same norm."
)

TIME = (
    "There is no figure of error against training time: runs of this table were trained side by side on one device, "
    "or their records don't say, and such runs share one wall time, which says more about how they were scheduled "
    "than about the networks."
)


def list_footnotes(
    results: ResultTable, checks: Sequence[tuple[CostCheck, CostCheck]], comparisons: Sequence[Comparison]
) -> Iterator[str]:
    """Yield the notes to one table, one to three sentences each; `checks` are the costs of its rows."""
    yield from _note_errors(results)
    yield from note_images(results)
    yield from note_records(results)
    yield from note_machines(results)
    yield from note_versions(results)
    if results.others:
        listed = ", ".join(f"{number} by {name}" for name, number in results.others.items())
        yield f"Results of these networks by other recipes are left out: {listed}."
    yield from _note_costs(results, checks)
    yield from _note_memory(results)
    sampling = note_sampling(results, comparisons)
    if sampling:
        yield sampling
    yield from note_single_runs(results)
    if not results.trained_alone:
        yield TIME
    yield from note_norms(results)
    yield from note_shared_norms(results)
    yield from note_control(results)
    for row in results.rows:
        if row.diverged:
            seeds = ", ".join(str(result.run.seed) for result in row.diverged)
            yield f"{row.label} diverged with seed {seeds}: {row.diverged[0].status.removeprefix('diverged: ')}."


def note_images(results: ResultTable) -> Iterator[str]:
    """Say that the images of a published set were not verified to be those, if they were not."""
    if results.unverified:
        yield (
            f"The images of {results.data} were not verified to be the published ones: errors on those may differ a "
            "little."
        )


def note_records(results: ResultTable) -> Iterator[str]:
    """Give the notes that stand in the records themselves, each with the rows that have it."""
    notes: dict[str, list[str]] = {}
    for row in results.rows:
        for note in row.notes:
            notes.setdefault(note, []).append(row.label)
    for note, labels in notes.items():
        yield f"{', '.join(labels)}: {note.rstrip('.')}."


def list_limits(results: ResultTable, comparisons: Sequence[Comparison]) -> list[str]:
    """Return what the runs can't show, in sentences that are footnotes as well."""
    if not comparisons:
        return list(note_single_runs(results))
    return [*filter(None, [note_sampling(results, comparisons)]), *note_norms(results)]


def note_sampling(results: ResultTable, comparisons: Sequence[Comparison]) -> str:
    """Say how much the draw of the images alone changes errors and differences; empty where there are no errors."""
    means = {row.network: row.last.mean for row in results.rows if row.last}
    if not means or results.images is None or results.preset == "smoke":
        return ""
    with_steps = [mean for network, mean in means.items() if not network.startswith("Identity@")]
    error = fmean(with_steps or means.values())
    spread = sampling_error(error, results.images)
    return (
        f"Intervals are over seeds, on the same {results.images:,} {results.held_out} images. Those images are a "
        f"sample too: the error of one trained network, {percent(error, 2)} % on average, has a standard error of "
        f"±{percent(spread.se, 3)} points from the draw of the images (95 %: ±{percent(spread.half, 3)}). "
        f"{_say_difference_error(comparisons)}Means over seeds have less of it, but with any number of seeds some. A "
        f"small difference may reverse on another {results.held_out} set."
    )


def _say_difference_error(comparisons: Sequence[Comparison]) -> str:
    with_steps = [each for each in comparisons if each.row.family != "Identity"]
    found = [each.sampling for each in with_steps or comparisons if each.sampling]
    paired = {each.se: each.disagreeing for each in found if each.disagreeing is not None}
    unpaired = [each.se for each in found if each.disagreeing is None]
    aside = " (Identity aside)" if 0 < len(with_steps) < len(comparisons) else ""
    sentences = []
    if paired:
        errors, images = _span([percent(se, 3) for se in paired], "±"), _span([str(d) for d in paired.values()])
        sentences.append(
            f"For a difference between two of them{aside} it is {errors} points: sqrt(d)/n for the d = {images} of n "
            "images that seed 0 of the two classifies differently. "
        )
    if unpaired:
        errors = _span([percent(se, 3) for se in unpaired], "±")
        which = "Where predictions were not kept" if paired else f"For a difference between two of them{aside}"
        sentences.append(
            f"{which} it is {errors} points if the two err independently, and less if they err on the same images. "
        )
    return "".join(sentences)


def _span(texts: Sequence[str], sign: str = "") -> str:
    """Write 0.05, or 0.05 to 0.07."""
    ordered = sorted(dict.fromkeys(texts), key=float)
    return sign + (ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {sign}{ordered[-1]}")


def note_control(results: ResultTable) -> Iterator[str]:
    """Explain Identity, where it is a row."""
    for row in results.rows:
        if row.family == "Identity":
            control = "" if results.of_any_runs else "The paper has no such control. "
            wider = [name for name in ("DenseNet", "CliqueNet") if name in {each.family for each in results.rows}]
            after = f" (after the blocks of {' and '.join(wider)} the next layer is wider, too)" if wider else ""
            yield (
                f"{row.label} is the network without any step: all its other layers are there. {control}What "
                f"the steps of another row add is its difference from this one{after}."
            )


def note_norms(results: ResultTable) -> Iterator[str]:
    """Warn that on MNIST the kind of norm and the kind of step go together."""
    table = results.table
    if table and table.data == "mnist" and table.name != "norms" and results.preset != "smoke":
        yield NORMS


def note_shared_norms(results: ResultTable) -> Iterator[str]:
    """Name the networks with evaluations of f that share running statistics, with their training and test errors."""
    shared = say_shared_norms(results)
    if shared:
        yield f"B{shared[1:]}; docs/batch-norm.md measures what that can cost."


def say_shared_norms(results: ResultTable) -> str:
    """Write the beginning of that sentence, in small letters; empty if there is no such network."""
    shared = [row for row in results.rows if row.all_finished and row.evaluations_of_a_norm > 1]
    if not shared or results.preset == "smoke":
        return ""
    digits = results.decimals
    named = []
    for row in shared:
        learned, tested = percent(row.training_error, digits), percent(fmean(row.errors), digits)
        measured = row.errors_with_a_set_each
        other = f", and {percent(fmean(measured), digits)} % with the same weights and a set each" if measured else ""
        named.append(
            f"{row.label} ({row.evaluations_of_a_norm} evaluations; training error {learned} %, {results.held_out} "
            f"error {tested} %{other})"
        )
    return (
        "batch norm in f, the small network that is evaluated several times in a period, has one set of running "
        f"statistics for all evaluations in {join(named)}"
    )


def note_single_runs(results: ResultTable) -> Iterator[str]:
    """Give the interval of each row that is one run: it has no deviation over seeds."""
    if results.preset == "smoke" or results.images is None:
        return
    for row in results.rows:
        if row.last and row.last.n == 1:
            low, high = (percent(end, 2) for end in wilson(round(row.last.mean * results.images), results.images))
            yield (
                f"{row.label} is a single run: {percent(row.last.mean, 2)} % of {results.images:,} images are wrong, "
                f"with {low} to {high} % as Wilson's 95 % interval for the draw of the images. It says nothing about "
                "other seeds."
            )


def _note_errors(results: ResultTable) -> Iterator[str]:
    held_out = results.held_out
    if not any(row.printed for row in results.rows):
        yield (
            "Errors are in percent. last: mean±std after the last epoch; best: lowest(mean±std) of each run's best "
            f"epoch, chosen on the {held_out} set."
        )
        return
    yield (
        "Errors are in percent. paper: lowest(mean±std) over the paper's runs, each counted at its best epoch on the "
        f"test set ({say_paper_counts(results)}). best: ours, counted in the same way, and so chosen on the test set. "
        "last: ours after the last epoch, mean±std; nothing was chosen on the test set, so it is the fairer number. "
        f"n: seeds. {_say_gaps(results)}".rstrip()
    )
    quoted = [row.printed.quoted for row in results.rows if row.printed and row.printed.quoted]
    if quoted:
        yield (
            f"* The paper quotes this number from {'; '.join(dict.fromkeys(quoted))}, where the network was trained "
            f"by another recipe. Ours beside it is trained by {results.recipe.name}, so a difference may come from the "
            "recipe."
        )
    notes: dict[str, list[str]] = {}
    for row in results.rows:
        if row.printed and row.printed.note:
            notes.setdefault(row.printed.note, []).append(f"{row.label} ({row.printed.printed})")
    for note, rows in notes.items():
        yield f"The paper's number of {', '.join(rows)}: {note}."


def _say_gaps(results: ResultTable) -> str:
    """Say what Δ is, or why there is none."""
    if results.way != "paper":
        return "The paper's errors are for orientation: ours are by another recipe, so no difference is given."
    if not any(row.all_finished and row.printed for row in results.rows):
        return ""
    return (
        "Δ: our mean minus the paper's. Δ best compares like with like; Δ last compares our last epoch with the "
        "paper's best one, and so is higher by what choosing gains."
    )


def note_disagreements(results: ResultTable) -> Iterator[str]:
    """Name the rows whose records count different numbers of parameters, which one network can't have."""
    for row in results.rows:
        counts = sorted({result.params for result in (*row.results, *row.diverged)})
        if len(counts) > 1:
            listed = " and ".join(f"{number:,}" for number in counts)
            yield f"{row.label}: its runs have {listed} parameters, so they are not of one network."


def _note_costs(results: ResultTable, checks: Sequence[tuple[CostCheck, CostCheck]]) -> Iterator[str]:
    yield from note_disagreements(results)
    for row, found in zip(results.rows, checks, strict=True):
        for check in found:
            if check.state == "misprint":
                yield f"{row.label}, {NAMES[check.column]}: {check.why}."
            elif check.state == "differs":
                cell = f"{row.label}, {NAMES[check.column]}"
                yield f"{cell}: the paper has {check.printed}, the records {check.counted:,}."


def _note_memory(results: ResultTable) -> Iterator[str]:
    if not is_measured(results):
        return
    gpus = ", ".join(sorted({row.memory.gpu for row in results.rows if row.memory}))
    control = "not measured yet"
    if results.control:
        control = f"{results.control.network}, {results.control.driver_bytes // MIB} MiB"
    yield (
        f"Memory is in MiB, of a fresh process that infers one image on {gpus}. driver: what the driver counts for the "
        "process, with the CUDA context; reserved: the most that torch held; allocated: the most that its tensors "
        f"took; − Identity: the driver's number minus that of the network without any step ({control}), which includes "
        "libraries that a network loads and torch doesn't count."
    )
    if is_printed(results):
        yield (
            "The paper's memory includes the CUDA context of its machine, and the driver's number includes that of "
            "ours, so only differences between rows can be compared."
        )
