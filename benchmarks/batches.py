"""How fast augmented batches are made: whole-batch tensor code beside one picture at a time.

    OMP_NUM_THREADS=1 python benchmarks/batches.py              one CPU core
    python benchmarks/batches.py --device cuda

Random crop after padding 4, flip, normalisation, 32 x 32 x 3, batches of 128 out of 10,000 pictures. The
per-sample reference does the same with the same draws and stacks the pictures, as a Dataset and its default
collate would; torchvision's transforms run beside it where torchvision imports. Each row is the best of 3 runs.
Ends with code 1 if whole batches are not at least 10 times the reference.
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
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.data.sets import SETS

COUNT, SIZE = 10_000, 128
AUGMENTATION = Augmentation(padding=4, flip=True)


def pictures() -> Images:
    """Noise: what a pixel holds makes no difference to how long it takes."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (COUNT, 32, 32, 3), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, (COUNT,), generator=generator)
    data = SETS["cifar10"]
    return Images("noise", "train", pixels, labels, data.classes, data.mean, data.std, False, "", "")


def one_by_one(images: Images, batches: Batches) -> Iterator[Tensor]:
    """The reference: each picture padded, cropped, flipped and normalised on its own."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (images.mean, images.std))
    for step in range(len(batches)):
        done = []
        for index, drawn in zip(*(tensor.tolist() for tensor in batches.plan(0, step)), strict=True):
            top, left, flip = drawn[:3]
            picture = pad(images.pixels[index].permute(2, 0, 1), (4, 4, 4, 4))
            picture = picture[:, top : top + 32, left : left + 32]
            if flip:
                picture = picture.flip(2)
            done.append((picture.float() / 255 - mean) / std)
        yield torch.stack(done)


def torchvision_pipeline(images: Images, batches: Batches) -> Iterator[Tensor]:
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
    for step in range(len(batches)):
        indices = batches.plan(0, step)[0].tolist()
        yield torch.stack([transform(Image.fromarray(images.pixels[index].numpy())) for index in indices])


def rate(make: Callable[[], Iterator[Tensor]], steps: int, device: torch.device) -> float:
    """Batches per second, the best of 3 runs of `steps`."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _batch in islice(make(), steps):
            pass
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / steps)
    return 1 / best


def main() -> int:
    parser = argparse.ArgumentParser(description="Augmented batches per second.")
    parser.add_argument("--device", default="cpu")
    device = torch.device(parser.parse_args().device)
    images = pictures()
    host = Batches(images, SIZE, 0, augmentation=AUGMENTATION, drop_last=True)
    here = Batches(images, SIZE, 0, augmentation=AUGMENTATION, drop_last=True, device=device)
    reference = next(one_by_one(images, host))
    same = torch.allclose(reference, here.at(0, 0).pixels.cpu(), rtol=0, atol=1e-5)
    rows = {
        "one by one (reference)": rate(lambda: one_by_one(images, host), 8, device),
        "whole batches": rate(lambda: (batch.pixels for batch in here.epoch(0)), len(here), device),
    }
    try:
        next(torchvision_pipeline(images, host))
        rows["torchvision, one by one"] = rate(lambda: torchvision_pipeline(images, host), 8, device)
    except (ImportError, RuntimeError) as error:
        print(f"torchvision: not here ({' '.join(str(error).split())[:60]})")
    base = rows["one by one (reference)"]
    print(f"{device}, {torch.get_num_threads()} CPU threads, torch {torch.__version__}; same pixels: {same}")
    print(f"{'':26} {'batches/s':>10} {'images/s':>12} {'x':>7}")
    for name, batches in rows.items():
        print(f"{name:26} {batches:10.1f} {batches * SIZE:12,.0f} {batches / base:7.1f}")
    return 0 if same and rows["whole batches"] >= 10 * base else 1


if __name__ == "__main__":
    sys.exit(main())
