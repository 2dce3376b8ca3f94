"""The runs of a table on a Ray cluster, each a task."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rkcnn.data.sources import Sources
from rkcnn.error import InputError
from rkcnn.record.lock import locked
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.record.run_state import find_state
from rkcnn.reproduce.cluster import join_cluster
from rkcnn.reproduce.driver import Driver
from rkcnn.reproduce.event import Event, fail
from rkcnn.run.side_by_side import Execution


def reproduce_on_ray(
    runs: Sequence[Run], way: Execution, sources: Sources, address: str | None, store: Path | None
) -> Generator[Event, None, None]:
    """Train the runs on the cluster at an address, or on one started here for the purpose, and tell what happens.

    Checkpoints come to `way.out`, or go to `store`, a folder that all machines see; results come to `way.out`. A task
    whose process or machine dies is given out again and goes on from its last checkpoint. Closed early, as by Ctrl-C,
    it asks every task to keep what it has.
    """
    check_device(way.device)
    with ExitStack() as locks, join_cluster(address) as ray:  # nothing is written for a cluster that is none
        device = device_for(way.device, ray.cluster_resources().get("GPU", 0.0))
        held: dict[int, Run] = {}
        for place, run in enumerate(runs):
            try:
                locks.enter_context(locked(way.out / run.folder))
                if store is not None and store.resolve() != way.out.resolve():
                    locks.enter_context(locked(store / run.folder, "name another --store"))
                state = find_state(run, way.out)
            except InputError as error:
                yield fail(place, error)
                continue
            if isinstance(state, Result):  # another driver was faster
                yield Event("ends", place, 1.0, state.error, state.status)
            else:
                held[place] = run
        if held:
            yield from Driver(ray, held, way, store, device).drive(sources)


def check_device(device: str) -> None:
    """InputError unless a task can be told so."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device {device} given with --on ray, which chooses among GPUs; say cpu, cuda or auto")


def device_for(device: str, gpus: float) -> str:
    """What a task is told: cpu, or to take the GPU that Ray lets it see."""
    if device == "cuda" and not gpus:
        raise InputError("--device cuda given, and the Ray cluster has no GPU; say cpu or auto")
    return device if gpus else "cpu"
