"""How the error of a trained network grows when its test images are corrupted."""

from __future__ import annotations

from collections.abc import Callable

from rkcnn.data.images import Images
from rkcnn.evaluation.corruption import CORRUPTIONS, GRADES, corrupt
from rkcnn.use.evaluate import compute_logits
from rkcnn.use.load import Classifier


def measure_corrupted(
    classifier: Classifier,
    images: Images,
    device: str = "auto",
    on_progress: Callable[[int, int], object] = lambda done, total: None,
) -> tuple[float, dict[str, tuple[float, ...]]]:
    """Return the error of the clean images, and for each kind of corruption that of each grade, from 1 on.

    `on_progress` is called with the number of evaluations that are done and that of all.
    """
    total = 1 + len(CORRUPTIONS) * len(GRADES)
    done = 0

    def find_error(shown: Images) -> float:
        nonlocal done
        answers = compute_logits(classifier, shown, device).argmax(1).cpu()
        done += 1
        on_progress(done, total)
        return float((answers != images.labels).double().mean())

    clean = find_error(images)
    return clean, {kind: tuple(find_error(corrupt(images, kind, grade)) for grade in GRADES) for kind in CORRUPTIONS}
