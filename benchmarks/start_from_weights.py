"""What pretrained weights are worth for a few colour images of other classes: a table of docs/own-images.md.

    python benchmarks/start_from_weights.py FOLDER [--seeds 2] [--images 50]

Takes the first images of the first ten classes of CIFAR-100 (apple to bottle), which CIFAR-10 doesn't have, and trains
by the recipe `own`: the default network and RKCNN-I-2_2_2@k=26_28_28 from new weights, and the latter from the weights
that come with the package, all of it and its classifier alone; last the classifier alone of the widest network there.
Errors are those of the 1,000 published test images of these classes. Runs are kept below FOLDER.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

import torch

import rkcnn
from rkcnn.data.images import Images

NETWORK = "RKCNN-I-2_2_2@k=26_28_28"
WEIGHTS = f"{NETWORK}.cifar10"
WIDEST = "RKCNN-I-2_2_2@k=120.cifar10"
WAYS: dict[str, dict[str, Any]] = {
    "default network, new weights": {},
    f"{NETWORK}, new weights": {"network": NETWORK},
    f"{WEIGHTS}, all of it trained": {"init_from": WEIGHTS},
    f"{WEIGHTS}, the classifier alone": {"init_from": WEIGHTS, "head_only": True},
    f"{WIDEST}, the classifier alone": {"init_from": WIDEST, "head_only": True},
}
CLASSES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--images", type=int, default=50, help="of each class to train on")
    given = parser.parse_args()
    training, test = rkcnn.load_images("cifar100")
    data = choose(training, given.images), choose(test, len(test))
    for way, options in WAYS.items():
        results = [
            rkcnn.train(data=data, seed=seed, out=given.folder, device="cpu", progress=False, **options)
            for seed in range(given.seeds)
        ]
        errors = [result.error or 1.0 for result in results]
        print(
            f"{way}: {results[0].run.network}, {results[0].params:,} parameters: "
            f"{', '.join(f'{100 * error:.1f}' for error in errors)} % of {len(data[1][1]):,} test images (mean "
            f"{100 * mean(errors):.1f} %), {mean(result.seconds for result in results):.0f} s of training steps",
            flush=True,
        )


def choose(images: Images, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first images of each of the first ten classes, at most `count` of a class, with their labels."""
    chosen = torch.cat([(images.labels == label).nonzero()[:count, 0] for label in range(CLASSES)])
    return images.pixels[chosen], images.labels[chosen]


if __name__ == "__main__":
    main()
