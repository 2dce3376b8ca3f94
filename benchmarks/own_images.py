"""The errors of docs/own-images.md: two small real sets, trained with nothing but the defaults, beside a ResNet.

    python benchmarks/own_images.py FOLDER [--seeds 3] [--only fashion|cifar]

Makes FOLDER/fashion.npz, 1,000 images of Fashion-MNIST (100 of each class), and FOLDER/cifar, 300 images of CIFAR-10
(airplane, automobile and cat, 100 of each) as PNG files of 40 to 120 pixels. Trains the default network and the ResNet
of the same frame whose FLOPs are nearest, by the same recipe, and measures both also on the published test images of
these classes, 10,000 and 3,000, which gives a narrower interval than the 200 and 60 that `--split 0.2` sets apart.
Those of CIFAR-10 are scaled up and down as the PNG files are.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from PIL import Image, ImageOps

import rkcnn
from rkcnn.data.images import Images
from rkcnn.use.train import TrainingResult

CHOSEN = ("airplane", "automobile", "cat")
WIDTHS = range(16, 65, 4)  # of the ResNets to choose from; multiples of 4, for group norm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("fashion", "cifar"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sets = {"fashion": make_fashion, "cifar": make_cifar}
    for name, make in sets.items():
        if given.only in (None, name):
            data, test = make(given.folder)
            network: str | None = None
            for _ in range(2):
                results = [train(network, data, seed, given.folder / "runs") for seed in range(given.seeds)]
                show(name, results, test)
                network = nearest_resnet(results[0])


def make_fashion(folder: Path) -> tuple[str, tuple[torch.Tensor, torch.Tensor]]:
    """Write fashion.npz; return its name for `rkcnn.train`, and the published test images."""
    training, test = rkcnn.load_images("fashion-mnist")
    chosen = first_of_each(training, range(len(training.classes)))
    pixels, labels = training.pixels[chosen, 0].numpy(), training.labels[chosen].numpy()
    np.savez(folder / "fashion.npz", x_train=pixels, y_train=labels, classes=np.array(training.classes))
    return f"npz:{folder / 'fashion.npz'}", (test.pixels, test.labels)


def make_cifar(folder: Path) -> tuple[str, tuple[torch.Tensor, torch.Tensor]]:
    """Write the PNG files below cifar/; return their name for `rkcnn.train`, and the test images of these classes."""
    training, test = rkcnn.load_images("cifar10")
    numbers = [training.classes.index(name) for name in CHOSEN]
    sizes = np.random.RandomState(0)
    for label, number in enumerate(first_of_each(training, numbers).tolist()):
        name = CHOSEN[label // 100]
        (folder / "cifar" / name).mkdir(parents=True, exist_ok=True)
        scale(training.pixels[number], sizes).save(folder / "cifar" / name / f"{number:05}.png")
    wanted = torch.isin(test.labels, torch.tensor(numbers))
    restored = [ImageOps.fit(scale(each, sizes), (32, 32), Image.Resampling.BICUBIC) for each in test.pixels[wanted]]
    pixels = torch.from_numpy(np.stack([np.asarray(image) for image in restored])).permute(0, 3, 1, 2)
    labels = torch.tensor([numbers.index(label) for label in test.labels[wanted].tolist()])
    return f"folder:{folder / 'cifar'}", (pixels, labels)


def first_of_each(images: Images, labels: list[int] | range) -> torch.Tensor:
    """Return the positions of the first 100 images of each of these classes."""
    return torch.cat([(images.labels == label).nonzero()[:100, 0] for label in labels])


def scale(pixels: torch.Tensor, sizes: np.random.RandomState) -> Image.Image:
    """Return an image (3, 32, 32) as a square of 40 to 120 pixels."""
    side = int(sizes.randint(40, 121))
    return Image.fromarray(pixels.permute(1, 2, 0).numpy()).resize((side, side), Image.Resampling.BICUBIC)


def train(network: str | None, data: str, seed: int, out: Path) -> TrainingResult:
    """As `rkcnn train NETWORK --data DATA --split 0.2 --seed SEED` does."""
    return rkcnn.train(network, data, split=0.2, seed=seed, out=out, device="cpu", progress=False)


def nearest_resnet(result: TrainingResult) -> str:
    """Return the ResNet with as many periods and the same stem whose FLOPs are nearest to the run's."""
    model = rkcnn.load(result.folder)
    periods = model.name.partition("@")[0].count("_") + 1
    names = [f"ResNet@k={'_'.join([str(k)] * periods)},stem=odenet" for k in WIDTHS]

    def distance(name: str) -> float:
        network = rkcnn.create_model(name, len(model.classes), model.channels)
        return abs(rkcnn.cost(network, model.size).flops - (result.flops or 0))

    return min(names, key=distance)


def show(name: str, results: list[TrainingResult], test: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Print a row of the page's table."""
    first = results[0]
    errors = [rkcnn.evaluate(result, data=test, device="cpu").error for result in results]
    print(
        f"{name}: {first.run.network}, {first.params:,} parameters, {(first.flops or 0) / 1e6:.1f} MFLOP, "
        f"{first.run.recipe}: {', '.join(f'{100 * error:.1f}' for error in errors)} % of {len(test[1]):,} test images "
        f"(mean {100 * mean(errors):.1f} %), {100 * mean(result.error or 1 for result in results):.1f} % of the split, "
        f"{mean(result.seconds for result in results):.0f} s of training steps",
        flush=True,
    )


if __name__ == "__main__":
    main()
