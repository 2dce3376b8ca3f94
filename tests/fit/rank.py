"""One rank of the tests of several: `python rank.py TASK ...`, started by torchrun or by hand with its variables."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

import rkcnn.run.train
from fit.bench import digits
from rkcnn.fit.ranks import Ranks, join
from rkcnn.fit.recipe import Recipe
from rkcnn.fit.trainer import Trainer
from rkcnn.model.create import create_model
from rkcnn.model.steps.ode import OdePeriod
from rkcnn.record.result import Result
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import Stopped
from rkcnn.solvers.solver_step import LOCAL

CPU = torch.device("cpu")
RECIPE = Recipe("mini", epochs=2, batch=16, lr=0.05, padding=2, sync_norm=True, recompute_norms=True)
IMAGES = {"RKCNN": 85, "ODENet": 21, "RKNet": 21}  # whole batches and one of 5, of which two ranks get 2 and 3
GRADIENTS = (
    "RKCNN-R-2_2@k=4,norm=bn",
    "RKCNN-R-2@k=4,norm=gn",
    "ODENet-abm@k=4,norm=bn",
    "ODENet-abm@k=4,norm=bn,converge=image",
    "RKNet-radau3@k=4,norm=bn",
    "RKNet-dopri5@k=4,tol=0.01,norm=bn",
    "ODENet-ab@k=4,adjoint=on,norm=bn",
)
TIGHT = "ODENet-abm@k=4,norm=bn,tol=1e-06"  # with its tol of 1e-3, a rounding may change the number of iterations
RUNS = ("RKCNN-R-2@k=4", "RKCNN-R-2@k=4,norm=gn", TIGHT, "RKNet-radau3@k=4,norm=bn")
RESUMED = "ODENet-abm@k=4,tol=0.002,converge=image"  # the images of each rank take evaluations of their own


def gradients(spec: str, ranks: Ranks) -> dict[str, Tensor]:
    """The loss of five images, its gradient and the buffers after it, in float64."""
    torch.manual_seed(3)
    network = create_model(spec, 10, 1).double().train()
    pixels, labels = torch.randn(5, 1, 28, 28, dtype=torch.float64), torch.randint(0, 10, (5,))
    mine = slice(5 * ranks.rank // ranks.world, 5 * (ranks.rank + 1) // ranks.world)
    model = ranks.wrap(network, sync_norm=True)
    losses = F.cross_entropy(model(pixels[mine]), labels[mine], reduction="sum")
    (losses * (ranks.world / 5)).backward()
    found = {"loss": ranks.sum(losses.detach()), **dict(network.named_buffers())}
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        found[f"{name}.grad"] = parameter.grad
    return found


def train(
    spec: str,
    out: str | Path,
    checkpoint_interval: float = 60.0,
    device: str = "cpu",
    engine: str = "auto",
    observer: Observer | None = None,
) -> Result:
    """A run on the first digits, to its end."""
    load = rkcnn.run.train.load_data_set  # type: ignore[attr-defined]
    fixed = digits(IMAGES[spec.partition("-")[0]]), replace(digits(20), part="test")
    rkcnn.run.train.load_data_set = lambda *_: fixed  # type: ignore[attr-defined]
    try:
        return rkcnn.run.train.train(
            spec,
            recipe=RECIPE,
            device=device,
            engine=engine,
            out=out,
            checkpoint_interval=checkpoint_interval,
            observer=observer,
        )[0]
    finally:
        rkcnn.run.train.load_data_set = load  # type: ignore[attr-defined]


def compare(out: str) -> None:
    """All that is compared with one rank: gradients in one group, runs in a group each."""
    with join(CPU) as (ranks, _):
        found = {spec: gradients(spec, ranks) for spec in GRADIENTS}
        if ranks.writes:
            torch.save(found, Path(out) / "gradients.pt")
        (Path(out) / f"evaluations-{ranks.rank}").write_text(str(evaluations(ranks, agree=True)))
    for spec in RUNS:
        train(spec, out)
    train(RESUMED, Path(out) / "whole")
    with suppress(Stopped):
        train(RESUMED, Path(out) / "resumed", observer=StopInSecondEpoch())
    train(RESUMED, Path(out) / "resumed")


class StopInSecondEpoch(Observer):
    """Asks the run to stop after its third step, the first of the second epoch."""

    left = 3

    def steps_done(self, jobs: Sequence[Job]) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


def interrupt(out: str, spec: str, rank: str, name: str, step: str) -> None:
    """A run in which one rank gets a signal just before it learns from that step; kept after every step."""
    learn, left = Trainer.learn, [int(step)]

    def learn_or_die(self: Trainer, indices: Tensor, choices: Tensor) -> None:
        left[0] -= 1
        if left[0] == 0 and os.environ["RANK"] == rank:
            os.kill(os.getpid(), signal.Signals[name])
        learn(self, indices, choices)

    Trainer.learn = learn_or_die  # type: ignore[method-assign]
    try:
        train(spec, out, checkpoint_interval=-1.0)
    except Stopped as stopped:  # its traceback still knows the trainer
        print(f"rank {os.environ['RANK']}: {stopped}; threads of its group left: {group_threads()}")
        sys.exit(3)


def group_threads() -> int:
    """gloo's, of this process: one that frees a tensor while Python ends takes the process down with SIGABRT.

    A thread that was joined is listed until the kernel has removed it, so those that end within 30 s don't count.
    """
    end = time.monotonic() + 30
    while True:
        count = 0
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # it ended meanwhile
                count += "gloo" in task.joinpath("comm").read_text()
        if count == 0 or time.monotonic() > end:
            return count
        time.sleep(0.05)


def evaluations(ranks: Ranks, agree: bool) -> float:
    """What abm took under synchronised norms on shares that alone would converge apart."""
    torch.manual_seed(0)
    network = create_model("ODENet-abm@k=4,norm=bn,tol=0.02", 10, 1).train()
    model = ranks.wrap(network, sync_norm=True)
    (period,) = (module for module in network.modules() if isinstance(module, OdePeriod))
    if not agree:
        period.solver = replace(period.solver, reducer=LOCAL)
    model(torch.randn(4, 1, 28, 28) * (5 if ranks.rank else 0.01)).sum().backward()
    assert period.solver_stats is not None
    return period.solver_stats.read().evaluations


def disagree() -> None:
    """A wait of more than 5 s ends in an error."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    with join(CPU) as (ranks, _):
        evaluations(ranks, agree=False)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    task, *arguments = sys.argv[1:]
    tasks: dict[str, Callable[..., object]] = {
        "compare": compare,
        "train": train,
        "interrupt": interrupt,
        "disagree": disagree,
    }
    tasks[task](*arguments)
