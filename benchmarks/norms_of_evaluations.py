"""How much of a network's error comes from one set of running statistics for several evaluations of f.

    python benchmarks/norms_of_evaluations.py RUN [--batches 40] [--test 10000] [--device auto] [--record]

RUN is a finished run of RKNN, RK-Net or ODE-Net with a fixed number of evaluations and batch norm in f. While it
trains, each evaluation of f normalises by the statistics of its own batch; in evaluation all share one running average.
The same weights are measured with four kinds of statistics: the running averages of the run; averages taken anew over
batches as the recipe trains on them, shared as before; the same with a set for each evaluation; and those of each batch
of 250 test images itself. A run of the same network with statistics=each has, with the same seed, the same weights.

--record also writes errors-by-statistics.json into RUN. Beside a result.json in results/, the published pages show it.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

import rkcnn
from rkcnn.data.augmentation import Augmentation
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.disk import check_replaceable, write_atomically
from rkcnn.error import InputError
from rkcnn.evaluation.binomial import wilson
from rkcnn.fit.recipe import Recipe
from rkcnn.model.backends import backends_set_to
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.create import create_model
from rkcnn.model.spec import parse
from rkcnn.record.errors_by_statistics import KINDS, ErrorsByStatistics
from rkcnn.record.source import current_source
from rkcnn.run.device import pick_device
from rkcnn.run_folder import ERRORS_BY_STATISTICS
from rkcnn.use.load import Classifier

BATCH = 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a finished run")
    parser.add_argument("--batches", type=int, default=40, help="of training images that statistics are taken from")
    parser.add_argument("--test", type=int, default=10_000, help="test images that errors are measured on")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, or auto: a GPU if there is one")
    parser.add_argument("--record", action="store_true", help=f"write {ERRORS_BY_STATISTICS} into RUN")
    given = parser.parse_args()
    path = Path(given.run, ERRORS_BY_STATISTICS)
    try:
        device = pick_device(given.device)
        model = rkcnn.load(given.run)
        shared, separated = rebuild(model, "shared"), rebuild(model, "each")
        if given.record and Path(given.run).is_dir():
            check_replaceable(path)
    except InputError as error:
        parser.error(str(error))
    if not Path(given.run).is_dir() or model.result is None:
        parser.error(f"{given.run} is no run's folder, so its data set is not known; give one that has a result.json")
    run = model.result.run
    if run.validation:
        parser.error(f"{given.run} was tested on training images; give a run that was tested on the test set")
    training, test = rkcnn.load_images(run.data)
    if given.batches < 1 or not given.test > 0:
        parser.error(f"--batches {given.batches} --test {given.test} given; both must be 1 or more")
    if given.record and given.test < len(test):
        parser.error(f"--record given with --test {given.test}; a record needs all {len(test):,} test images")
    print(f"{model.name}, training error {100 * model.result.epochs[-1].training_error:.2f} %")
    tested = replace(test, pixels=test.pixels[: given.test], labels=test.labels[: given.test])
    with backends_set_to("fp32", deterministic=True):
        for network in (model.network, shared, separated):
            network.to(device)
        taught = draw_batches(training, run.recipe, given.batches, device)
        wrong = count_wrong(model, shared, take_anew(separated, taught), taught, tested)
    variances = find_variances(separated)
    print("running variance of each evaluation over the mean of all evaluations, median over channels")
    for name, ratios in variances.items():
        print(f"  {name}: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    if given.record:
        versions = {"rkcnn": rkcnn.__version__, "torch": torch.__version__, "python": platform.python_version()}
        where = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
        source = vars(current_source(network=run.network))
        found = ErrorsByStatistics(run, len(tested), len(taught), wrong, variances, where, versions, **source)
        write_atomically(path, found.to_json())


def count_wrong(
    model: Classifier, shared: nn.Module, separated: nn.Module, taught: list[Tensor], test: Images
) -> dict[str, int]:
    """Print what the network errs with each kind of statistics, and return how many images it gets wrong."""
    pixels, device = model.normalise(test.pixels), taught[0].device
    ways: tuple[tuple[str, Callable[[], nn.Module]], ...] = (
        ("running averages of the run", lambda: model.network),
        ("taken anew, shared", lambda: take_anew(shared, taught)),
        ("taken anew, one set for each evaluation", lambda: separated),
        ("those of each batch of test images", lambda: set_norms(deepcopy(model.network), True)),
    )
    wrong = {}
    for kind, (way, make) in zip(KINDS, ways, strict=True):
        wrong[kind] = int((predict(make(), pixels, device) != test.labels).sum())
        low, high = wilson(wrong[kind], len(test))
        error = f"{100 * wrong[kind] / len(test):.2f} % of {len(test):,} images"
        print(f"{way}: {error} ({100 * low:.2f} to {100 * high:.2f})", flush=True)
    return wrong


def draw_batches(training: Images, recipe: Recipe, number: int, device: torch.device) -> list[Tensor]:
    """Return the first batches that the recipe trains on with seed 0, augmented and normalised."""
    augmentation = Augmentation(recipe.padding, recipe.flip, recipe.cutout, recipe.cutmix)
    batches = Batches(training, recipe.batch, 0, augmentation=augmentation, device=device)
    return [batches.at(0, step).pixels for step in range(min(number, len(batches)))]


@torch.no_grad()
def rebuild(model: Classifier, statistics: str) -> nn.Module:
    """Return the same network with shared running statistics or with some for each evaluation of f, from those it has.

    Which of the sets of a network that has one for each evaluation are then shared doesn't matter: they are taken anew.
    """
    network = create_model(str(replace(parse(model.name), statistics=statistics)), len(model.classes), model.channels)
    state = network.state_dict()
    for name, given in model.network.state_dict().items():
        state[name].copy_(given if given.dim() <= state[name].dim() else given[0])
    return network


def find_variances(network: nn.Module) -> dict[str, list[float]]:
    """Return how the variance that each norm of f divides by differs from evaluation to evaluation."""
    found = {}
    for name, norm in network.named_modules():
        if isinstance(norm, BatchNorm) and norm.separated:
            variance = norm.get_buffer("running_var")
            ratios = variance / variance.mean(0).clamp(min=torch.finfo(variance.dtype).tiny)
            found[name] = [round(ratio, 4) for ratio in ratios.median(1).values.tolist()]
    return found


def set_norms(network: nn.Module, training: bool) -> nn.Module:
    """Let batch norms take the statistics of their batches, or their running ones; all else is as in evaluation."""
    network.eval()
    for norm in norms_of(network):
        norm.train(training)
    return network


def norms_of(network: nn.Module) -> Iterable[nn.BatchNorm2d]:
    return (module for module in network.modules() if isinstance(module, nn.BatchNorm2d))


@torch.no_grad()
def take_anew(network: nn.Module, batches: Iterable[Tensor]) -> nn.Module:
    """Give all batch norms the mean statistics over these batches."""
    for norm in norms_of(set_norms(network, True)):
        norm.reset_running_stats()
        norm.momentum = None  # torch's sign for the mean of all batches
    for batch in batches:
        network(batch)
    return set_norms(network, False)


@torch.no_grad()
def predict(network: nn.Module, pixels: Tensor, device: torch.device) -> Tensor:
    return torch.cat([network(batch.to(device)).argmax(1).cpu() for batch in pixels.split(BATCH)])


if __name__ == "__main__":
    main()
