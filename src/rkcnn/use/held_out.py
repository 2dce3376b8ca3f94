"""Images that a trained network can be tested with: those of its run or others, but none that it was trained on."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set, load_test_images
from rkcnn.data.options import BELOW_SHARE, BY_CONTENT_ALONE, OwnOptions, Sources, read_own_options
from rkcnn.data.own_images import PREFIXES, is_same_place
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.record.result import Result
from rkcnn.use.images import Labelled, label_images, load_images, place_arrays
from rkcnn.use.load import Classifier

WOULD_TEST = "images that the network was trained on would be among the test images"
APART = "put new images into a folder or file of their own, and name that"


def load_tested_images(
    result: Result, sources: Sources | None = None, own: OwnOptions | None = None, progress: Progress | None = None
) -> Images:
    """Load the images that a run was tested with, by the name and options in its record.

    An option of a user's own images that `own` gives replaces the recorded one. Raises InputError if what is loaded has
    another checksum; a smaller split than that of the run is some of its images.
    """
    name, held_out = result.run.data_set, result.run.validation
    if name.startswith("arrays-"):
        raise InputError(
            "the run was tested with arrays, and its record doesn't hold them; evaluate it from Python with "
            "data=(x, y), or name a data set"
        )
    if not result.epochs and name.startswith(PREFIXES) and not is_same_place(name, name):  # the record of a file
        kind = name.partition(":")[0]
        raise InputError(f"the network was trained on {name}, which is not here; say where, as in `data={kind}:PATH`")
    known = _read_recorded(result)
    options = _override(known, own)
    if known.get("split") is not None and options.split != known["split"]:
        return _load_own_set(result, name, sources, options, progress or Progress())
    tried = [options]
    if name.startswith(PREFIXES) and "channels" not in known and options.channels is None:
        # before there was that option, grey images in files that can have colours were read with three channels
        tried.append(replace(options, channels=3))
    for each in tried:
        training, images = load_data_set(name, sources, each, progress)
        if held_out:
            _, images = training.split(held_out)
        if was_tested_with(result, images):
            break
    else:
        raise InputError(
            f"{name} is no longer what the run was tested with, because its files have changed or are read otherwise "
            f"than in training; give `data={name}` to test with those of its images that were not trained on"
        )
    return images


def was_tested_with(result: Result, images: Images) -> bool:
    """Return whether a run was tested with these images, by the checksums in its record; True if it has none."""
    return _has_checksums(result, "test", images)


def is_set_of(result: Result, name: str) -> bool:
    """Return whether a run was on the data set of that name; the run's may have options of its images behind a ~.

    A record in a weights file doesn't say in which folder the images were, so that their own name decides.
    """
    ours = result.run.data_set
    if not result.epochs and name.startswith(PREFIXES) and name.partition(":")[0] == ours.partition(":")[0]:
        return Path(name.partition(":")[2]).name == Path(ours.partition(":")[2]).name
    return f"{result.run.data}~".startswith(f"{name}~") or is_same_place(name, ours)


def load_other_images(
    classifier: Classifier,
    name: str,
    sources: Sources | None = None,
    own: OwnOptions | None = None,
    progress: Progress | None = None,
) -> Images:
    """Load the test images of a data set that is named, with the options that `evaluate` describes."""
    progress = progress or Progress()
    images = _load_named(classifier, name, sources, own, progress)
    if classifier.result is not None and name.startswith(PREFIXES) and not is_set_of(classifier.result, name):
        images = _leave_out_learned(classifier.result, images, name, sources, progress)
    # the classes of a folder have names, while those of an .npz may be numbers that mean something else
    return _match_classes(images, classifier.classes) if name.startswith("folder:") else images


def _load_named(
    classifier: Classifier, name: str, sources: Sources | None, own: OwnOptions | None, progress: Progress
) -> Images:
    result, (height, width) = classifier.result, classifier.size
    known: dict[str, Any] = {}
    if name.startswith(PREFIXES) and len(classifier.mean) in (1, 3):
        known["channels"] = len(classifier.mean)
    if result is not None and (is_set_of(result, name) or _has_moved_to(result, name, sources)):
        recorded = {option: value for option, value in _read_recorded(result).items() if value is not None}
        return _load_own_set(result, name, sources, _override(known | recorded, own), progress)
    if name.startswith("folder:") and height == width:
        known["size"] = height
    return load_test_images(name, sources, _override(known, own), progress)


def _leave_out_learned(
    result: Result, images: Images, name: str, sources: Sources | None, progress: Progress
) -> Images:
    """Return the images without those of the run's training set, by their pixels, if that is still where it was.

    So a copy of the folder that a run was trained on is tested with what was not trained on. Raises InputError if
    nothing is left.
    """
    ours = result.run.data_set
    if not is_same_place(ours, ours):
        return images
    try:
        training, _ = load_data_set(ours, sources, read_own_options(_read_recorded(result)))
    except InputError:  # it can't be read as it was
        return images
    is_the_runs = bool(result.epochs) or _has_checksums(result, "train", training)  # a weights file knows no folder
    if not is_the_runs or training.pixels.shape[1:] != images.pixels.shape[1:]:
        return images
    kept = torch.from_numpy(~np.isin(place_arrays(images.pixels), place_arrays(training.pixels)))
    left, total = int(kept.sum()), len(images)
    if left == total:
        return images
    if not left:
        raise InputError(f"all {total:,} images of {name} are in the training set of {ours}; {APART}")
    why = f"are left out, because they are in the training set of {ours}"
    progress.note(f"{total - left:,} of the {total:,} images of {name} {why}")
    return replace(images, pixels=images.pixels[kept], labels=images.labels[kept], part=f"{left} of {images.part}")


def _has_moved_to(result: Result, name: str, sources: Sources | None) -> bool:
    """Return whether the images of a run that was split are under this name now, and no longer where they were."""
    known, ours = _read_recorded(result), result.run.data_set
    if known.get("split") is None or name.partition(":")[0] != ours.partition(":")[0] or is_same_place(ours, ours):
        return False
    try:
        return _has_checksums(result, "train", load_data_set(name, sources, read_own_options(known))[0])
    except InputError:  # it can't be split as the run's images were
        return False


def _load_own_set(
    result: Result, name: str, sources: Sources | None, options: OwnOptions, progress: Progress
) -> Images:
    """Load test images of the set that a run was on; InputError where it could have been trained on one of them.

    A smaller share than the run's is a part of its test images. If images were added, removed or changed, those below
    the share are test images, because no image below it was trained on where the record says so.
    """
    known = _read_recorded(result)
    share = known.get("split")
    if share is None:
        _, test = load_data_set(name, sources, options, progress)
        if options.split is not None:
            raise InputError(f"{name} had a test set of its own when the run was trained, and {WOULD_TEST}; {APART}")
        return test
    asked = options.split or share
    if asked > share:
        raise InputError(
            f"`split={asked}` given, and the run was trained with `split={share}`, so that {WOULD_TEST}; give at most "
            f"{share}"
        )
    training, test = load_data_set(name, sources, replace(options, split=share), progress)
    if asked == share and was_tested_with(result, test):
        return test
    if _has_checksums(result, "train", training):
        return test if asked == share else load_test_images(name, sources, options, progress)
    if known.get("split_rule") != BY_CONTENT_ALONE:
        raise InputError(f"{name} has changed since the run was trained, and {WOULD_TEST}; {APART}")
    progress.note(f"{name} has changed since the run was trained; it is tested with images that it wasn't trained on")
    below = read_own_options({**asdict(options), "split_rule": BELOW_SHARE})
    return load_test_images(name, sources, below, progress)


def label_arrays(classifier: Classifier, data: Labelled, split: float | None) -> Images:
    """Return the test images of arrays (x, y): of the run's arrays those that it was tested with, of others all.

    With `split`, it is that share of them. Raises InputError if images of the training would be among them.
    """
    result, images = classifier.result, label_images(data, classifier.classes)
    chosen = images if split is None else load_images(data, split=split)[1]
    if result is not None and result.run.data_set.startswith("arrays-") and not was_tested_with(result, images):
        if _has_checksums(result, "train", images):
            raise InputError("data=(x, y) are the images that the network was trained on; give others to test it with")
        tested = _find_tested_part(result, images)
        if tested is not None and split is None:
            chosen = tested
        elif tested is not None and not set(place_arrays(chosen.pixels)) <= set(place_arrays(tested.pixels)):
            raise InputError(
                f"`split={split}` given, which is not the share that the run was trained with or less, so that "
                f"{WOULD_TEST}; leave it out"
            )
    return replace(chosen, classes=classifier.classes)


def _find_tested_part(result: Result, images: Images) -> Images | None:
    """Return the images of arrays (x, y) that the run was tested with, or None if the arrays are not the run's."""
    share = _read_recorded(result).get("split")
    if share is None:
        return None
    try:
        _, test = load_images((images.pixels, images.labels), split=share)
    except InputError:  # a class has one image alone, so that they can't be the run's
        return None
    return test if was_tested_with(result, test) else None


def _has_checksums(result: Result, part: str, images: Images) -> bool:
    """Return whether the record has the checksums of these images for train or test, or none at all."""
    found = {f"{part}_sha256": images.pixels_sha256, f"{part}_labels_sha256": images.labels_sha256}
    return all(result.data.get(name, value) == value for name, value in found.items())


def _read_recorded(result: Result) -> dict[str, Any]:
    """Return the options of own images in a record."""
    return dict(result.data.get("own", {}))


def _match_classes(images: Images, classes: tuple[str, ...]) -> Images:
    """Return images that have some of the network's classes alone, labelled as the network labels them."""
    known = {name: label for label, name in enumerate(classes)}
    if images.classes == classes or len(known) < len(classes) or not set(images.classes) <= set(known):
        return images
    labels = torch.tensor([known[name] for name in images.classes])[images.labels]
    return replace(images, labels=labels, classes=classes)


def _override(known: dict[str, Any], own: OwnOptions | None) -> OwnOptions:
    """Return the known options with those replaced that `own` gives, which are those that differ from their default."""
    options = [(each.name, getattr(own, each.name), each.default) for each in fields(OwnOptions)] if own else []
    return read_own_options({**known, **{name: value for name, value, default in options if value != default}})
