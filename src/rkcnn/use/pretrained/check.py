"""Tests pretrained weights on all their test images: python -m rkcnn.use.pretrained.check [NAME ...]

`make test-weights` runs it. Nothing is downloaded: a data set that is not on this machine is named, and its weights are
not tested. The exit code is 1 if weights get another number of images wrong than when they were put into the package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from rkcnn.data.images import Images
from rkcnn.data.options import Sources
from rkcnn.error import InputError
from rkcnn.page_writer import run_writer
from rkcnn.use.evaluate import compute_logits
from rkcnn.use.held_out import load_tested_images
from rkcnn.use.load import load
from rkcnn.use.pretrained.catalogue import Pretrained, find_pretrained, read_catalogue
from rkcnn.use.pretrained.ship import count_mistakes

ROUNDING = 2e-4  # of all answers: by which another processor, or a GPU, may change them, since it sums in another order


def check_weights(names: Sequence[str]) -> list[str]:
    """Test the weights of these names, or all of them, print a line for each, and return a sentence on each failure."""
    chosen = [_find(name) for name in names] or read_catalogue()
    if not chosen:
        print("this package holds no pretrained weights")
    failures = []
    for each in chosen:
        try:
            images = load_test_set(each)
        except InputError as error:
            print(f"{each.name}: NOT TESTED: {error}", flush=True)
            continue
        storage, wrong = each.storage, count_wrong(each, images)
        counted = f"{wrong} of {len(images):,} wrong, {storage.wrong} when it was stored"
        last = f"after its last epoch {100 * (each.result.error or 0):.2f} %"
        print(f"{each.name}: {100 * wrong / len(images):.2f} % ({counted}); {last}", flush=True)
        if abs(wrong - storage.wrong) > ROUNDING * len(images):
            failures.append(f"{each.name} gets {wrong} images wrong, and got {storage.wrong} wrong when it was stored")
    return failures


def load_test_set(weights: Pretrained) -> Images:
    """Return the images that weights were tested with; InputError if they aren't on this machine."""
    return load_tested_images(weights.result, Sources(offline=True, unverified=True))


def count_wrong(weights: Pretrained, images: Images, device: str = "auto") -> int:
    """Return how many of the images get another class than their own, computed in float32."""
    logits = compute_logits(replace(load(weights.name), result=None), images, device)
    return count_mistakes(logits, images)


def _find(name: str) -> Pretrained:
    found = find_pretrained(name)
    if found is None:
        raise InputError(f"{name} is no name of pretrained weights; `rkcnn models --pretrained` lists them")
    return found


if __name__ == "__main__":
    sys.exit(run_writer(lambda: check_weights(sys.argv[1:]), (), ()))
