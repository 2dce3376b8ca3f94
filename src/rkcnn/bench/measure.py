"""Carries out a plan: prepares every contender, then lets each take its turn in every round.

A product of two large matrices is timed too: the arithmetic speed that steps are compared with.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn import __version__
from rkcnn.bench.contender import Contender, create_network, image_size, matrix_units, synchronise
from rkcnn.bench.forward_pass import our_forward_pass, peer_forward_pass
from rkcnn.bench.memory import measure_peak
from rkcnn.bench.peers.same_outputs import build_peer, check_peer, choose_peers
from rkcnn.bench.plain_solve import plain_solves
from rkcnn.bench.plan import INFER_BATCHES, PACKAGES, CannotRun, PeerChoice, Plan
from rkcnn.bench.training_step import WORK as TRAINING_STEP
from rkcnn.bench.training_step import default_batch, our_training_step, peer_training_step
from rkcnn.error import InputError
from rkcnn.model.network import Network
from rkcnn.record.bench import Bench, Measurement
from rkcnn.record.source import current_source
from rkcnn.run.device import describe_machine, forget_peak, peak_bytes, pick_device

SIZES = {"cuda": 8192, "cpu": 1024}
REPETITIONS = 3


@dataclass
class Product:
    """Multiplies two n x n matrices in one precision."""

    precision: str
    device: torch.device
    rounds: list[float] = field(default_factory=list)  # FLOP/s in each round
    _matrices: tuple[Tensor, Tensor] | None = None

    @property
    def size(self) -> int:
        return SIZES[self.device.type]

    def take_turn(self) -> float:
        """Multiply a few times; return the FLOP/s."""
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        if self._matrices is None:
            drawn = torch.randn(2, self.size, self.size, device=self.device).to(dtype)
            self._matrices = drawn[0], drawn[1]
            self._multiply()  # warm-up
        return self._multiply()

    def _multiply(self) -> float:
        assert self._matrices is not None
        with matrix_units(self.precision):
            synchronise(self.device)
            start = time.perf_counter()
            for _ in range(REPETITIONS):
                torch.mm(*self._matrices)
            synchronise(self.device)
        return 2.0 * self.size**3 * REPETITIONS / (time.perf_counter() - start)


ROUNDS = {"train": 7, "infer": 7, "solve": 7, "memory": 3}
STEPS = {"cuda": 40, "cpu": 5}
WARM_UP = {"cuda": 10, "cpu": 2}
DEFAULT_ENGINES = {
    ("train", "cpu"): ("eager", "compile"),
    ("train", "cuda"): ("eager", "compile", "graph-uncompiled", "graph"),
    ("infer", "cpu"): ("eager", "compile", "fused-eager", "fused"),
    ("infer", "cuda"): ("eager", "compile", "graph", "fused"),
    ("memory", "cpu"): ("eager",),
    ("memory", "cuda"): ("eager", "graph"),
    ("solve", "cpu"): ("eager",),
    ("solve", "cuda"): ("eager", "graph"),
}


class Progress(NamedTuple):
    """What is about to be done: the number of turns before it and of all turns; `done` is None while preparing."""

    what: str
    done: int | None
    total: int


class _Wanted(NamedTuple):
    """A contender that has not been built."""

    measurement: Measurement
    peer: PeerChoice | None
    build: Callable[[], Iterator[Contender]]


class Measuring:
    """A bench in progress. `run` measures; `record` holds what has been measured so far, at any time."""

    def __init__(self, plan: Plan, note: str = "") -> None:
        self.plan, self.device = plan, pick_device(plan.device)
        self.rounds = plan.rounds or ROUNDS[plan.kind]
        self.steps = plan.steps or STEPS[self.device.type]
        self.warm_up = min(WARM_UP[self.device.type], self.steps)
        self.record = Bench(
            plan.kind,
            self.rounds,
            self.steps,
            {**describe_machine(self.device), "cores": os.cpu_count() or 0},
            _find_versions(plan, self.device),
            **asdict(current_source()),
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
            note=note,
        )

    def run(self) -> Iterator[Progress]:
        """Measure everything, and yield before each piece of work what it is; raises InputError if nothing can run."""
        for peer in self.plan.peers or ():
            check_peer(peer)
        wanted = list(self._list_wanted())
        measure = self._measure_memory if self.plan.kind == "memory" else self._measure_times
        yield from measure(wanted)
        self.record.complete = True

    def _measure_times(self, wanted: list[_Wanted]) -> Iterator[Progress]:
        # Peers first: outputs that are not ours are said before ours are compiled, and before anything is timed.
        built: dict[int, list[Contender]] = {}
        for place, each in sorted(enumerate(wanted), key=lambda pair: pair[1].peer is None):
            yield Progress(f"preparing {_describe(each.measurement)}", None, len(wanted))
            gc.collect()  # what an earlier contender left in cycles would be freed while this one is measured
            before = torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else 0
            forget_peak(self.device)
            try:
                for contender in each.build():
                    contender.take_turn(self.warm_up)
                    if self.device.type == "cuda":
                        contender.measurement.peak_bytes = peak_bytes(self.device) - before
                    built.setdefault(place, []).append(contender)
            except CannotRun as reason:
                self._leave_out(each, str(reason))
            except torch.OutOfMemoryError:
                self._leave_out(each, "the GPU has too little memory")
        contenders = [contender for place in sorted(built) for contender in built[place]]
        self._check_any(contenders)
        precisions = dict.fromkeys(contender.measurement.precision for contender in contenders)
        products = [Product(precision, self.device) for precision in precisions]
        self.record.product_size = products[0].size
        total = self.rounds * (len(contenders) + len(products))
        done = 0
        for number in range(1, self.rounds + 1):
            for product in products:
                yield Progress(f"round {number} of {self.rounds}: matrix product, {product.precision}", done, total)
                product.rounds.append(product.take_turn())
                self.record.products[product.precision] = product.rounds
                done += 1
            for contender in contenders:
                measurement = contender.measurement
                yield Progress(f"round {number} of {self.rounds}: {_describe(measurement)}", done, total)
                try:
                    measurement.seconds.append(contender.take_turn(self.steps))
                except torch.OutOfMemoryError:
                    raise InputError(
                        f"the GPU has too little memory for {_describe(measurement)} beside the other contenders; "
                        "measure fewer of them at once"
                    ) from None
                self._keep(measurement)
                done += 1

        if self.device.type == "cuda":
            for contender in contenders:  # after all rounds, for a profiler may slow what follows
                yield Progress(f"counting kernels of {_describe(contender.measurement)}", done, total)
                contender.measurement.kernels = contender.count_kernels()

    def _measure_memory(self, wanted: list[_Wanted]) -> Iterator[Progress]:
        for each in list(wanted):
            if each.peer is None:
                continue
            yield Progress(f"comparing outputs: {_describe(each.measurement)}", None, len(wanted))
            network = create_network(each.measurement.network)
            try:
                _, each.measurement.difference = build_peer(each.peer, network, image_size(network))
            except CannotRun as reason:
                self._leave_out(each, str(reason))
                wanted.remove(each)
        total, done = self.rounds * len(wanted), 0
        for number in range(1, self.rounds + 1):
            for each in list(wanted):
                found = each.measurement
                yield Progress(f"round {number} of {self.rounds}: {_describe(found)}", done, total)
                done += 1
                try:
                    peak, idle = measure_peak(
                        found.network, found.batch, found.precision, found.engine, str(self.device), each.peer
                    )
                except CannotRun as reason:
                    self._leave_out(each, str(reason))
                    wanted.remove(each)
                    continue
                found.memory_bytes.append(peak)
                found.idle_bytes.append(idle)
                self._keep(found)
            self._check_any(wanted)

    def _keep(self, measurement: Measurement) -> None:
        """Put a measurement that has its first round on the record."""
        if len(measurement.values) == 1:
            self.record.measurements.append(measurement)

    def _leave_out(self, wanted: _Wanted, reason: str) -> None:
        found = wanted.measurement
        line = f"{found.label} of {found.network}, {found.precision}: {reason}"
        if line not in self.record.left_out:  # once for all batches
            self.record.left_out.append(line)

    def _check_any(self, contenders: list[Contender] | list[_Wanted]) -> None:
        if not contenders:
            raise InputError(f"nothing can be measured: {'; '.join(self.record.left_out)}")

    def _list_wanted(self) -> Iterator[_Wanted]:
        """Yield every contender of the plan: for each network and batch ours, then its peers."""
        for name in self.plan.networks:
            network = create_network(name)
            family = network.spec.family if isinstance(network, Network) else ""
            peers = choose_peers(family) if self.plan.peers is None else self.plan.peers
            default = INFER_BATCHES if self.plan.kind == "infer" else (default_batch(network.channels),)
            for batch in self.plan.batches or default:
                yield from self._list_ours(name, batch)
                yield from (self._list_peer(peer, name, batch) for peer in peers)
                if self.plan.kind == "solve":
                    theirs = "torchdiffeq" in {peer.name for peer in peers}
                    measurement = Measurement("solve", name, batch, "rkcnn.solve", "eager", "fp32")
                    yield _Wanted(measurement, None, partial(plain_solves, name, batch, self.device, theirs))

    def _list_ours(self, name: str, batch: int) -> Iterator[_Wanted]:
        kind, device = self.plan.kind, self.device
        at_once = self.plan.at_once if kind in ("train", "solve") else (1,)
        for precision in self.plan.precisions:
            for engine in self.plan.engines or DEFAULT_ENGINES[kind, device.type]:
                for runs in at_once:
                    work = "forward pass" if kind == "infer" else TRAINING_STEP
                    measurement = Measurement(work, name, batch, "rkcnn", engine, precision, runs)
                    yield _Wanted(measurement, None, partial(self._build_ours, measurement))

    def _build_ours(self, wanted: Measurement) -> Iterator[Contender]:
        name, batch, precision, engine = wanted.network, wanted.batch, wanted.precision, wanted.engine
        if precision == "tf32" and self.device.type != "cuda":
            raise CannotRun("tf32 is a precision of GPUs")
        if self.plan.kind == "infer":
            yield our_forward_pass(name, batch, precision, engine, self.device)
        else:
            yield our_training_step(name, batch, precision, engine, wanted.at_once, self.device, self.steps)

    def _list_peer(self, peer: PeerChoice, name: str, batch: int) -> _Wanted:
        work = "forward pass" if self.plan.kind == "infer" else TRAINING_STEP
        precision = "tf32" if self.device.type == "cuda" else "fp32"
        measurement = Measurement(work, name, batch, peer.name, "eager", precision)
        build = peer_forward_pass if self.plan.kind == "infer" else peer_training_step
        return _Wanted(measurement, peer, lambda: iter([build(peer, name, batch, self.device)]))


def _describe(measurement: Measurement) -> str:
    return f"{measurement.network}, batch {measurement.batch}, {measurement.label}, {measurement.precision}"


def _find_versions(plan: Plan, device: torch.device) -> dict[str, str]:
    """Return the versions of what is measured: packages, CUDA's libraries, and the commits of checkouts."""
    found = {"rkcnn": __version__, "torch": torch.__version__, "python": platform.python_version()}
    if device.type == "cuda":
        found |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    for peer in plan.peers or ():
        if peer.path is not None:
            command = ["git", "-C", str(peer.path), "rev-parse", "--short=12", "HEAD"]
            try:
                found[peer.name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            except (OSError, subprocess.CalledProcessError):
                found[peer.name] = "unknown commit"
    return found
