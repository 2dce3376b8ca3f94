"""Puts the weights of finished runs into the package: python -m rkcnn.use.pretrained.ship RUN ...

A run's folder, or several. Each is tested before and after its weights are rounded, so its test images must be on this
machine; nothing is downloaded. The networks of the paper's size take minutes on a CPU, and seconds on a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import sqrt
from pathlib import Path

import torch
from safetensors.torch import load
from torch import Tensor, nn

from rkcnn.data.images import Images
from rkcnn.data.options import Sources
from rkcnn.data.sets import SETS
from rkcnn.disk import read_file, write_atomically, writing_to
from rkcnn.error import InputError
from rkcnn.evaluation.weights import pack_weights
from rkcnn.model.create import create_model
from rkcnn.page_writer import run_writer
from rkcnn.record.result import Result
from rkcnn.use.evaluate import compute_logits
from rkcnn.use.held_out import load_tested_images
from rkcnn.use.load import Classifier, find_weights
from rkcnn.use.load import load as load_classifier
from rkcnn.use.pretrained.catalogue import SUFFIX, Pretrained, Storage

HERE = Path(__file__).parent
FIRST = 500  # test images, in their order, that the test suite asks about
HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
CHANGED = 0.1  # standard errors of the number of wrong answers, by which it may differ for rounded weights to be kept
RECORDED = {"fp32": 3e-4, "tf32": 3e-3, "bf16": 3e-3}  # by which an error may differ from that in the record


def ship(run: Path, folder: Path = HERE, device: str = "auto") -> Pretrained:
    """Write the weights of a finished run to NETWORK.SET.safetensors, tested and with their record, and return them.

    The weights of convolutions and linear layers are stored in the half precision that changes the logits least, unless
    the number of wrong answers on the whole test set then differs by more than CHANGED standard errors, and by more
    than one. All other numbers stay in float32. Raises InputError if the run is not one to ship, or if its test images
    aren't here.
    """
    file, result = find_weights(run)
    if result is None:
        raise InputError(f"{run} has no record beside it; give the folder of a finished run")
    check_run(run, result, folder)
    images = load_tested_images(result, Sources(offline=True, unverified=True))
    classifier = replace(load_classifier(run), result=None)  # without a record it is computed in float32
    tensors = load(read_file(file, file.stat().st_size))
    logits = compute_logits(classifier, images, device)
    before = count_mistakes(logits, images)
    allowed = RECORDED[result.run.recipe.precision]
    if result.error is None or abs(before / len(images) - result.error) > allowed:
        raise InputError(
            f"{run} gets {before} of {len(images):,} test images wrong in float32 here, and its record says an error "
            f"of {result.error}; ship a run whose weights are those of its record"
        )
    storage, stored = choose_storage(classifier, tensors, images, logits, device)
    name = f"{result.run.network}.{result.run.data}"
    path = folder / f"{name}{SUFFIX}"
    with writing_to(folder, "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, pack_weights(stored, describe(classifier, result, name, storage)))
    return Pretrained(name, path)


def check_run(run: Path, result: Result, folder: Path) -> None:
    """Raise InputError unless a run was tested on the test images of a whole published set by a network of ours."""
    data = result.run.data
    if data not in SETS or (folder == HERE and data == "mnist-mini"):
        raise InputError(f"{run} is on {data}; ship runs on mnist, fashion-mnist, cifar10, cifar100 or svhn, all of it")
    if result.run.recipe.initial_weights:
        raise InputError(f"{run} started from other weights; ship a run that started from new ones")
    if result.run.seed:
        raise InputError(
            f"{run} has seed {result.run.seed}; ship seed 0, since to choose among seeds is to choose on the test set"
        )


def choose_storage(
    classifier: Classifier, tensors: dict[str, Tensor], images: Images, logits: Tensor, device: str
) -> tuple[Storage, dict[str, Tensor]]:
    """Return how to store the tensors, and the tensors so; `logits` are those of all images with the given ones."""
    first = replace(images, pixels=images.pixels[:FIRST], labels=images.labels[:FIRST])
    rounded = {kind: round_weights(classifier.network, tensors, dtype) for kind, dtype in HALVES.items()}
    differences = {
        kind: float((compute_logits(with_weights(classifier, each), first, device) - logits[:FIRST]).abs().max())
        for kind, each in rounded.items()
    }
    kind = min(differences, key=differences.__getitem__)
    found = compute_logits(with_weights(classifier, rounded[kind]), images, device)
    before, wrong = count_mistakes(logits, images), count_mistakes(found, images)
    if abs(wrong - before) > most_changed(before, len(images)):
        return describe_storage("fp32", images, logits, before, 0.0), tensors
    return describe_storage(kind, images, found, before, differences[kind]), rounded[kind]


def most_changed(wrong: int, images: int) -> float:
    """Return by how much a number of wrong answers may differ: CHANGED of sqrt(n p (1 - p)) with p = wrong/n, or one.

    That standard error is how much the number would vary if the test images were drawn anew.
    """
    return max(1.0, CHANGED * sqrt(wrong * (1 - wrong / images)))


def describe_storage(kind: str, images: Images, logits: Tensor, before: int, difference: float) -> Storage:
    """Return what a file says of its weights, with the logits of all images by the numbers that it holds."""
    first = replace(images, pixels=images.pixels[:FIRST], labels=images.labels[:FIRST])
    wrong = count_mistakes(logits, images), count_mistakes(logits[:FIRST], first)
    return Storage(kind, len(images), wrong[0], before, len(first), wrong[1], difference)


def round_weights(network: nn.Module, tensors: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the tensors with the weights of convolutions and linear layers, and nothing else, in another precision."""
    kinds = (nn.Conv2d, nn.Linear)
    names = {f"{name}.weight" for name, module in network.named_modules() if isinstance(module, kinds)}
    return {name: value.to(dtype) if name in names else value for name, value in tensors.items()}


def with_weights(classifier: Classifier, tensors: dict[str, Tensor]) -> Classifier:
    """Return the classifier with other weights, which it holds in float32."""
    network = create_model(classifier.name, len(classifier.classes), classifier.channels)
    network.load_state_dict(tensors)
    return replace(classifier, network=network.eval())


def count_mistakes(logits: Tensor, images: Images) -> int:
    """Return how many of the images get another class than their own."""
    return int((logits.argmax(1).cpu() != images.labels).sum())


def describe(classifier: Classifier, result: Result, name: str, storage: Storage) -> dict[str, str]:
    """Return the metadata of a file: what is needed to use it, and where its weights come from."""
    return {
        "format": "pt",
        **classifier.description.as_metadata(),
        "name": name,
        "data": result.run.data,
        "recipe": str(result.run.recipe),
        "seed": str(result.run.seed),
        "test_error": str(result.error),
        "licence": "MIT",
        "storage": json.dumps(asdict(storage)),
        "record": json.dumps(result.as_dict(), separators=(",", ":")),
    }


def main(arguments: Sequence[str]) -> int:
    """Ship the runs that are named and print a line for each; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rkcnn.use.pretrained.ship", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, or auto: a GPU if there is one")
    parser.add_argument("--into", type=Path, default=HERE, help="another folder than the package's")
    given = parser.parse_args(arguments)

    def write() -> list[str]:
        for run in given.runs:
            shipped = ship(run, given.into, given.device)
            held = shipped.storage
            print(
                f"{shipped.path}: {shipped.path.stat().st_size / 1e6:.2f} MB in {held.weights}; {held.wrong} of "
                f"{held.images:,} wrong, {held.wrong_before} before; logits differ by up to {held.logit_difference:.1e}"
            )
        total = sum(path.stat().st_size for path in given.into.glob(f"*{SUFFIX}"))
        print(f"{given.into}: {total / 1e6:.2f} MB in all; now write their table: python -m rkcnn.use.pretrained.page")
        return []

    return run_writer(write, (), ())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
