"""How fast augmented batches are made: whole-batch tensor code beside one picture at a time.

    python benchmarks/batches.py                    one CPU core
    python benchmarks/batches.py --device cuda

Random crop after padding 4, flip, normalisation, 32 x 32 x 3, batches of 256 out of 10,000 pictures. The
reference does the same picture by picture and stacks them, as a Dataset and its default collate would;
torchvision's transforms run beside it where torchvision imports. Every row makes its own draws; each is the
best of 30 runs. Ends with code 1 if whole batches are not at least 10 times the reference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import pad

from rkcnn.data.augmentation import Augmentation
from rkcnn.data.batches import Batch, Batches
from rkcnn.data.images import Images
from rkcnn.data.sets import SETS

COUNT, SIZE, ROUNDS = 10_000, 256, 30
AUGMENTATION = Augmentation(padding=4, flip=True)


def pictures() -> Images:
    """Noise: what a pixel holds makes no difference to how long it takes."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (COUNT, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, (COUNT,), generator=generator)
    data = SETS["cifar10"]
    return Images("noise", "train", pixels, labels, data.classes, data.mean, data.std, False, "", "")


def one_picture(picture: Tensor, drawn: list[int], mean: Tensor, std: Tensor) -> Tensor:
    """The reference: one picture padded, cropped, flipped and normalised on its own."""
    top, left, flip = drawn
    picture = pad(picture, (4, 4, 4, 4))[:, top : top + 32, left : left + 32]
    if flip:
        picture = picture.flip(2)
    return (picture.float() / 255 - mean) / std


def one_by_one(images: Images, epoch: int) -> Iterator[Batch]:
    """Batches of pictures made one by one, each drawn for as torchvision draws: by torch's generator."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (images.mean, images.std))
    generator = torch.Generator().manual_seed(epoch)
    for indices in torch.randperm(COUNT, generator=generator).split(SIZE):
        done, labels = [], []
        for index in indices.tolist():
            drawn = [int(torch.randint(0, choices, (), generator=generator)) for choices in (9, 9, 2)]
            done.append(one_picture(images.pixels[index], drawn, mean, std))
            labels.append(int(images.labels[index]))
        yield Batch(torch.stack(done), torch.tensor(labels))


def torchvision_pipeline(images: Images, epoch: int) -> Iterator[Batch]:
    """torchvision's transforms on a PIL picture, as the paper's code has them."""
    from PIL import Image
    from torchvision import transforms  # type: ignore[import-not-found]

    transform = transforms.Compose(
        [
            transforms.RandomHorizontalFlip(),
            transforms.RandomCrop(32, padding=4),
            transforms.ToTensor(),
            transforms.Normalize(images.mean, images.std),
        ]
    )
    pictures = [Image.fromarray(pixels.permutation_test(1, 2, 0).numpy()) for pixels in images.pixels]
    for indices in torch.randperm(COUNT, generator=torch.Generator().manual_seed(epoch)).split(SIZE):
        done = [(transform(pictures[index]), int(images.labels[index])) for index in indices.tolist()]
        yield Batch(torch.stack([picture for picture, _ in done]), torch.tensor([label for _, label in done]))


def rates(makers: dict[str, Callable[[int], Iterator[Batch]]], device: torch.device) -> dict[str, float]:
    """Batches per second, draws included: the best of many short runs in turn, so that other load meets all alike."""
    best = dict.fromkeys(makers, float("inf"))
    for epoch in range(ROUNDS):
        for name, make in makers.items():
            steps = 0
            start = time.perf_counter()
            for _batch in islice(make(epoch), 4 if "one by one" in name else None):
                steps += 1
            if device.type == "cuda":
                torch.cuda.synchronize()
            best[name] = min(best[name], (time.perf_counter() - start) / steps)
    return {name: 1 / seconds for name, seconds in best.items()}


def same_pixels(images: Images, batches: Batches) -> bool:
    """Whether the first batch is what the reference makes of the same draws."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (images.mean, images.std))
    plan = zip(*(tensor.tolist() for tensor in batches.plan(0, 0)), strict=True)
    reference = torch.stack([one_picture(images.pixels[index], drawn[:3], mean, std) for index, drawn in plan])
    return torch.allclose(reference, batches.at(0, 0).pixels.cpu(), rtol=0, atol=1e-6)


def main() -> int:
    parser = argparse.ArgumentParser(description="Augmented batches per second.")
    parser.add_argument("--device", default="cpu")
    device = torch.device(parser.parse_args().device)
    torch.set_num_threads(1)  # a second thread on a core that others use makes it slower, not faster
    images = pictures()
    batches = Batches(images, SIZE, 0, augmentation=AUGMENTATION, device=device)
    same = same_pixels(images, batches)
    makers: dict[str, Callable[[int], Iterator[Batch]]] = {
        "one by one (reference)": lambda epoch: one_by_one(images, epoch),
        "whole batches": batches.epoch,
    }
    try:
        next(torchvision_pipeline(images, 0))
        makers["torchvision, one by one"] = lambda epoch: torchvision_pipeline(images, epoch)
    except (ImportError, RuntimeError) as error:
        print(f"torchvision doesn't import here: {' '.join(str(error).split())[:60]}")
    rows = rates(makers, device)
    base = rows["one by one (reference)"]
    print(f"{device}, 1 CPU thread, torch {torch.__version__}; same pixels: {same}")
    print(f"{'':26} {'batches/s':>10} {'images/s':>12} {'x':>7}")
    for name, made in rows.items():
        print(f"{name:26} {made:10.1f} {made * SIZE:12,.0f} {made / base:7.1f}")
    return 0 if same and rows["whole batches"] >= 10 * base else 1


if __name__ == "__main__":
    sys.exit(main())
