"""How good a trained network is on test images."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

from rkcnn.data.images import Images
from rkcnn.data.load import load as load_named
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.evaluation.metrics import Metrics, measure
from rkcnn.evaluation.predictor import Predictor
from rkcnn.record.result import Result
from rkcnn.run.device import pick_device, set_precision
from rkcnn.use.images import Labelled, label_images, load_images
from rkcnn.use.load import Classifier, load
from rkcnn.use.result import TrainingResult


def evaluate(
    model: Classifier | TrainingResult | str | Path,
    data: str | Labelled | Images | None = None,
    *,
    size: int | None = None,
    split: float | None = None,
    skip_bad: bool = False,
    device: str = "auto",
) -> Metrics:
    """Measure a trained network on test images: its error with a 95 % interval, what it confuses, how sure it is.

    model      what `rkcnn.load` or `rkcnn.train` returned, a run's folder, or a weights file
    data       the images to test with: a name as in `rkcnn.load_images` (its test images are used), arrays (x, y), or
               `Images`; without it, the images that the run was tested with
    size, split, skip_bad
               as in `rkcnn.load_images`
    device     cpu, cuda, cuda:N, or auto: a GPU if there is one

    The images must have the size, channels and classes that the network was trained on. They are normalised as the
    training images were.
    """
    if isinstance(model, TrainingResult):
        model = model.folder
    classifier = model if isinstance(model, Classifier) else load(model)
    images = _find_images(classifier, data, OwnOptions(size, split, skip_bad))
    return measure_on(classifier, images, device)


def measure_on(classifier: Classifier, images: Images, device: str) -> Metrics:
    """Measure a trained network on these images, normalised as those it was trained on."""
    images = classifier.description.prepare(images)
    precision = classifier.result.run.recipe.precision if classifier.result else "fp32"
    set_precision(precision)
    where = pick_device(device)
    network = copy.deepcopy(classifier.network).to(where)  # the caller's network stays on its device
    logits = Predictor(images, where, precision).logits(network)
    return measure(logits, images.labels, len(images.classes))


def load_tested_images(
    result: Result, sources: Sources | None = None, own: OwnOptions | None = None, progress: Progress | None = None
) -> Images:
    """Load the images that a run was tested with, by the name and options in its record.

    `own` replaces the recorded options of a user's own images. Raises InputError if what is loaded has another
    checksum.
    """
    name, held_out = result.run.data_set, result.run.validation
    if name.startswith("arrays-"):
        raise InputError(
            "the run was tested with arrays, and its record doesn't hold them; evaluate it from Python with "
            "data=(x, y), or name a data set"
        )
    training, images = load_named(name, sources, own or OwnOptions(**result.data.get("own", {})), progress)
    if held_out:
        _, images = training.split(held_out)
    if not was_tested_with(result, images):
        raise InputError(
            f"{name} is no longer what the run was tested with; give the `size=...`, `split=...` and `skip_bad=...` of "
            "its training or, if its files have changed, name the images to test with, as in `data=...`"
        )
    return images


def was_tested_with(result: Result, images: Images) -> bool:
    """Return whether a run was tested with these images, by the checksums in its record; True if it has none."""
    found = {"test_sha256": images.pixels_sha256, "test_labels_sha256": images.labels_sha256}
    return all(result.data.get(name, value) == value for name, value in found.items())


def _find_images(classifier: Classifier, data: str | Labelled | Images | None, own: OwnOptions) -> Images:
    result = classifier.result
    match data:
        case None if result is not None:
            return load_tested_images(result, own=None if own == OwnOptions() else own, progress=Progress(sys.stderr))
        case None:
            raise InputError(
                f"the weights of {classifier.name} have no result beside them that names their data; say which images "
                "to test with, as in `data='mnist'`"
            )
        case str():
            return load_images(data, size=own.size, split=own.split, skip_bad=own.skip_bad)[1]
        case Images():
            return data
        case (pixels, labels):
            return label_images((pixels, labels), classifier.classes)
    raise InputError(f"data of type {type(data).__name__} given; give a name such as 'mnist', arrays (x, y) or Images")
