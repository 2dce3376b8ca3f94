"""Compares each row of a table with its reference: differences with intervals, and tests corrected for their number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.data.cache import read_test_labels
from rkcnn.data.options import Sources
from rkcnn.data.read.npy import read_npy
from rkcnn.data.sets import SETS, DataSet
from rkcnn.disk import MissingFile
from rkcnn.error import InputError
from rkcnn.evaluation.binomial import McNemar, mcnemar
from rkcnn.report.results import Records, ResultTable
from rkcnn.report.row import Row
from rkcnn.report.statistics import (
    MOST_SPLITS,
    Difference,
    Permutation,
    correct_by_holm,
    independent_standard_error,
    is_significant,
    paired_standard_error,
    permutation_test,
    welch,
)
from rkcnn.run_folder import LABELS, PREDICTIONS

_MOST_CLASSES = 1 << 15  # that the files tell apart, which hold 16 bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rkcnn.record.result import Result


def read_predictions(row: Row) -> NDArray[np.integer] | None:
    """Return the class that seed 0 predicts for each test image; None without a file of them that fits its result."""
    for folder, result in zip(row.folders, row.results, strict=False):
        if not result.run.seed and any(find_damaged_predictions([(folder, result)])):
            return None
    return _read_first(row, PREDICTIONS)


def find_mistakes(row: Row, data: DataSet | None) -> NDArray[np.bool_] | None:
    """Return, image by image, whether seed 0 is wrong. `data` is None for a user's own images.

    The true classes are those in the run's folder or, for a published set, in its copy on this machine. None without
    them or the predictions, or where the share of mistakes is not the recorded error.
    """
    predictions = read_predictions(row)
    labels: NDArray[np.integer] | None = None
    if predictions is not None:
        labels = _read_first(row, LABELS)
        if labels is None and data is not None:
            labels = read_labels(data)
    if predictions is None or labels is None or predictions.shape != labels.shape:
        return None
    wrong: NDArray[np.bool_] = predictions != labels
    error = next(result.error for result in row.results if not result.run.seed)
    return wrong if error is not None and _agree(wrong, error) else None


def read_labels(data: DataSet) -> NDArray[np.int64] | None:
    """Return the labels of the test set if a verified copy is on this machine; nothing is fetched."""
    return read_test_labels(data, Sources().folders())


def _read_first(row: Row, name: str) -> NDArray[np.integer] | None:
    """Return an array of the folder of seed 0; None where there is no such file, or it can't be read."""
    for folder, result in zip(row.folders, row.results, strict=False):
        if not result.run.seed:
            with suppress(MissingFile):
                return read_classes(folder / name)
    return None


def read_classes(path: Path) -> NDArray[np.integer] | None:
    """Return the class of each image in predictions.npy or labels.npy; None where it can't be read.

    Raises `MissingFile` where there is no such file.
    """
    try:
        values: NDArray[np.integer] = read_npy(path)
    except MissingFile:
        raise
    except (InputError, OSError):
        return None
    return values if values.ndim == 1 and values.size else None


def find_damaged_predictions(records: Records) -> Iterator[InputError]:
    """Yield an error for each file of seed 0 that is needed to compare image by image and can't be used.

    It can't be read, has another number of images than the result, something else than its classes, or mistakes that
    are not the result's error.
    """
    for folder, result in records:
        if not result.run.seed:
            for path, fault in _find_faults(folder, result):
                yield InputError(
                    f"{path} {fault}, and tests image by image are left out; train the run again or copy the file again"
                )


def _find_faults(folder: Path, result: Result) -> Iterator[tuple[Path, str]]:
    found: dict[str, NDArray[np.integer]] = {}
    complete = True
    for name in (PREDICTIONS, LABELS):
        with suppress(MissingFile):
            classes = read_classes(folder / name)
            fault = _find_fault(classes, result)
            if classes is not None and not fault:
                found[name] = classes
            else:
                complete = False
                yield folder / name, fault
    published = SETS.get(result.run.data)
    if not complete or PREDICTIONS not in found or result.error is None:
        return
    said, labels = found[PREDICTIONS], found.get(LABELS)
    if labels is None and published:
        labels = read_labels(published)
    if labels is not None and said.shape != labels.shape:
        yield folder / PREDICTIONS, f"has {len(said):,} classes, and there are {len(labels):,} labels"
    elif labels is not None and not _agree(wrong := said != labels, result.error):
        yield (
            folder / PREDICTIONS,
            f"has {wrong.sum():,} mistakes in {len(wrong):,} images, and the result an error of {result.error:.4%}",
        )


def _find_fault(classes: NDArray[np.integer] | None, result: Result) -> str:
    """Return what is wrong with the class of each image, by what the result says; empty if nothing is."""
    if classes is None:
        return "can't be read as the class of each image"
    published = SETS.get(result.run.data)
    images = result.data.get("held_out_images") or result.run.validation or (published and published.test.images)
    if images and len(classes) != images:
        return f"has {len(classes):,} classes, and the result is of {images:,} images"
    names = result.data.get("classes") or (published.classes if published else ())
    low, high = int(classes.min()), int(classes.max())
    if 0 < len(names) <= _MOST_CLASSES and not 0 <= low <= high < len(names):
        return f"has classes from {low} to {high}, and those of the result are 0 to {len(names) - 1}"
    return ""


def _agree(wrong: NDArray[np.bool_], error: float) -> bool:
    """Whether the share of mistakes is the recorded error."""
    return bool(abs(wrong.mean() - error) < 0.5 / len(wrong))


class ImageSampling(NamedTuple):
    """The standard error of a difference between two trained networks that comes from the draw of the held-out images.

    A difference of means over seeds has less: what differs from seed to seed on an image is averaged there. How much
    less takes the labels and the predictions of every seed, which published results lack.

    `disagreeing` counts the images to which seed 0 of the two networks gives different classes, where both kept their
    predictions. Those on which both are wrong change nothing, so sqrt(disagreeing)/n is at least sqrt(b + c)/n. Without
    predictions `disagreeing` is None and `se` assumes that the two err independently, which makes it larger.
    """

    se: float
    disagreeing: int | None


class Comparison(NamedTuple):
    """One row against its reference; differences are row minus reference, of last-epoch errors.

    `p` is Welch's p corrected by Holm's method for `among` comparisons, those of the table that were tested or that
    lost runs to divergence; it decides. The permutation test's p is given uncorrected: its smallest value times their
    number may exceed any level. Rows of a single run have a difference and no test.
    """

    row: Row
    reference: Row
    difference: Difference
    p: float | None
    among: int
    permutation: Permutation | None  # None where there are more seeds than the exact test takes
    mcnemar: McNemar | None  # seed 0 against seed 0, where both have predictions and the labels are known
    sampling: ImageSampling | None  # None where the number of held-out images is not known

    @property
    def tested(self) -> bool:
        """Whether both sides have two runs or more."""
        return min(len(self.row.results), len(self.reference.results)) > 1

    @property
    def separable(self) -> bool:
        """Whether the corrected p tells the two apart."""
        return is_significant(self.p)


def compare(results: ResultTable) -> list[Comparison]:
    """Compare every row that has runs with its reference, if that has runs, in the table's order.

    A row of which runs diverged takes no part on either side, since its surviving runs are a biased sample. Runs of
    the smoke preset are compared with nothing, however many seeds they have.
    """
    if results.preset == "smoke":
        return []
    rows = {row.network: row for row in results.rows}
    against = [
        (row, rows[results.references[row.network]]) for row in results.rows if row.network in results.references
    ]
    against = [(row, other) for row, other in against if other is not row]
    pairs = [(row, other) for row, other in against if row.all_finished and other.all_finished]
    differences = [welch(row.errors, other.errors) for row, other in pairs]
    p_values = [difference.p for difference in differences if difference.p is not None]
    lost = sum(bool(row.diverged or other.diverged) for row, other in against)
    corrected = iter(correct_by_holm(p_values, lost))
    first_seeds = _FirstSeeds(results)
    return [
        Comparison(
            row,
            other,
            difference,
            None if difference.p is None else next(corrected),
            len(p_values) + lost,
            _permute(row, other),
            first_seeds.test(row, other),
            first_seeds.find_sampling(row, other),
        )
        for (row, other), difference in zip(pairs, differences, strict=True)
    ]


class _FirstSeeds:
    """Compares rows by what their seed 0 says of each image; reads each row's predictions once."""

    def __init__(self, results: ResultTable) -> None:
        self.images = results.images
        self.data = SETS.get(results.data)
        self.single_runs = results.of_any_runs  # whether two single runs are tested too: more may not be planned
        self._predictions: dict[str, NDArray[np.integer] | None] = {}
        self._mistakes: dict[str, NDArray[np.bool_] | None] = {}

    def test(self, row: Row, other: Row) -> McNemar | None:
        if not self.single_runs and min(len(row.results), len(other.results)) < 2:
            return None
        for each in (row, other):
            if each.network not in self._mistakes:
                self._mistakes[each.network] = find_mistakes(each, self.data)
        one, two = self._mistakes[row.network], self._mistakes[other.network]
        return mcnemar(one.tolist(), two.tolist()) if one is not None and two is not None else None

    def find_sampling(self, row: Row, other: Row) -> ImageSampling | None:
        if self.images is None or row.last is None or other.last is None:
            return None
        for each in (row, other):
            if each.network not in self._predictions:
                self._predictions[each.network] = read_predictions(each)
        one, two = self._predictions[row.network], self._predictions[other.network]
        if one is None or two is None or not one.shape == two.shape == (self.images,):
            return ImageSampling(independent_standard_error(row.last.mean, other.last.mean, self.images), None)
        disagreeing = int((one != two).sum())
        return ImageSampling(paired_standard_error(disagreeing, self.images), disagreeing)


def _permute(row: Row, other: Row) -> Permutation | None:
    n, m = len(row.results), len(other.results)
    return permutation_test(row.errors, other.errors) if min(n, m) > 1 and comb(n + m, n) <= MOST_SPLITS else None
