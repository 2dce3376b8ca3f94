"""How a training step is run: eagerly, compiled, as one CUDA graph, or in fused kernels; the same up to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from rkcnn.fit.engine_names import check_engine
from rkcnn.fit.trainer import Trainer
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.compiling import NotCompiled, compiling, why_not_compiled
from rkcnn.model.cost import cost
from rkcnn.model.fast.choose import fuse_network
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.model.steps.rkcnn import RKStep

WARM_UP = 3  # real steps that let cuDNN and the allocator settle before a capture; their effect is undone
LONG = 2e13  # FLOPs of a run on a CPU, about ten minutes of two cores: from there the minute that compiling takes pays
FEWEST_IMAGES = 100_000  # of all epochs together: shorter runs are not counted


class Engine:
    """Takes the steps of one trainer, on a CUDA stream of its own where there is a GPU.

    `compiled` compiles everything up to the loss. `note` says why a faster engine could not be used.
    """

    def __init__(self, trainer: Trainer, compiled: bool = False, note: str = "") -> None:
        self.trainer, self.compiled, self.note = trainer, compiled, note
        # Ranks stay on the stream that DistributedDataParallel was made on, where it expects gradients.
        own_stream = trainer.device.type == "cuda" and not trainer.ranks.grouped
        self.stream = torch.cuda.Stream(trainer.device) if own_stream else None
        trainer.loss = torch.compile(trainer.forward, dynamic=False) if compiled else trainer.forward

    @property
    def kind(self) -> str:
        """The name of what really runs: eager, compile, graph or fused."""
        return "compile" if self.compiled else "eager"

    def begin(self) -> None:
        """Compile, and capture the graph, so that the first step need not; the trainer's state is unchanged."""
        self.wait_for_caller()
        if self.compiled:
            with self._on_stream():
                self._compile()

    def wait_for_caller(self) -> None:
        """Let the next step wait for the work on the current stream, such as an evaluation or a loaded checkpoint."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.trainer.device))

    def advance(self) -> None:
        """Take one step, without waiting for the device, and move the trainer to the next."""
        with self._on_stream():
            self._step()
        self.trainer.step += 1

    def wait(self) -> None:
        """Wait until the device has done every step so far."""
        if self.trainer.device.type == "cuda":
            (self.stream or torch.cuda.current_stream(self.trainer.device)).synchronize()

    def _on_stream(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self.stream) if self.stream is not None else nullcontext()

    def _step(self) -> None:
        self.trainer.learn(*self.trainer.prepare())

    def _compile(self) -> None:
        """Compile for whole batches and for a kept partial one; run uncompiled, with a note, where that fails."""
        trainer = self.trainer
        try:
            with compiling(), _state_restored(trainer):
                trainer.prepare()
                for step in sorted({0, trainer.steps - 1}):
                    trainer.learn(*trainer.batches.plan(trainer.epoch, step))
        except NotCompiled as error:
            self.compiled, trainer.loss = False, trainer.forward
            self.note = "; ".join(filter(None, (self.note, f"not compiled: {error}")))


class Graph(Engine):
    """Captures the whole step (gather, augment, forward, backward, update) in a CUDA graph and replays it.

    A kept partial batch runs outside the graph.
    """

    kind = "graph"  # or fused, where it has kernels of our own (rkcnn.model.fast)

    def __init__(self, trainer: Trainer, compiled: bool = True, note: str = "", kind: str = "graph") -> None:
        super().__init__(trainer, compiled, note)
        self.kind = kind
        self.graph = torch.cuda.CUDAGraph()
        indices, choices = trainer.batches.plan(trainer.epoch, 0)  # a whole batch, also where a partial one comes next
        self.indices, self.choices = indices.clone(), choices.clone()

    def begin(self) -> None:
        super().begin()
        with self._on_stream(), _state_restored(self.trainer):
            self.trainer.prepare()  # train mode, and a learning rate
            for _ in range(WARM_UP):
                self.trainer.learn(self.indices, self.choices)
            self.wait()
            with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
                self.trainer.learn(self.indices, self.choices)

    def _step(self) -> None:
        indices, choices = self.trainer.prepare()
        if len(indices) != len(self.indices):
            self.trainer.learn(indices, choices)
            return
        self.indices.copy_(indices)
        self.choices.copy_(choices)
        self.graph.replay()


class FusedEager(Engine):
    """Takes steps in fused kernels without a graph, where the number of evaluations depends on the data."""

    kind = "fused"


@contextmanager
def _state_restored(trainer: Trainer) -> Iterator[None]:
    """Undo, at the end, what steps inside did to the trainer."""
    state = list(trainer.state().values())
    saved = [tensor.clone() for tensor in state]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(state, saved, strict=True):
                tensor.copy_(value)


def start_engine(kind: str, trainer: Trainer) -> Engine:
    """Return the engine asked for or, with a note that gives the reason, the fastest that can run this trainer."""
    check_engine(kind)
    asked, notes = kind, []
    if kind == "auto":
        kind = "compile" if trainer.device.type == "cpu" and _compiling_pays(trainer) else "eager"
        if trainer.device.type == "cuda":
            kind = "fused" if trainer.recipe.precision == "bf16" and _is_faster_fused(trainer) else "graph"
    if kind == "fused" and (reason := _fuse(trainer)):
        if asked == "fused":
            notes.append(f"no fused kernels: {reason}")
        kind = "graph"
    if kind == "graph" and (reason := _why_no_graph(trainer)):
        notes.append(f"no CUDA graph: {reason}")
        kind = "compile"
    if kind == "compile" and (reason := _why_not_compiled(trainer)):
        notes.append(f"not compiled: {reason}")
        kind = "eager"
    note = "; ".join(notes)
    if kind == "fused" and trainer.solver_stats:
        return FusedEager(trainer, note=note)
    if kind in ("graph", "fused"):
        return Graph(trainer, note=note, kind=kind)
    return Engine(trainer, kind == "compile", note)


def _is_faster_fused(trainer: Trainer) -> bool:
    """Whether kernels of our own are taken to train the network faster than a plain graph in bf16.

    They were measured on an H200: faster for RKCNN at several widths, and for RKNet-rk4_38 at k = 120, which stands for
    all ODE networks with fixed steps. ODE networks whose steps the data decides, and those of which only stem,
    transitions and updates are fused, are not measured. In tf32 they are slower at k = 120 and faster at k = 32
    (docs/performance.md).
    """
    kinds = RKStep if trainer.solver_stats else (RKStep, OdeFunction)
    return any(isinstance(module, kinds) for module in trainer.network.modules())


def _compiling_pays(trainer: Trainer) -> bool:
    """Whether a run on a CPU is shorter compiled: a long one of a network that doesn't have channels last.

    With channels last torch's own operations are as fast as compiled ones or faster (benchmarks/cpu_layouts.py).
    Network, images and recipe alone decide, so that a run that is continued is run in the same way.
    """
    images = trainer.recipe.epochs * trainer.steps * trainer.recipe.batch
    if images < FEWEST_IMAGES or trainer.layout == torch.channels_last or trainer.ranks.grouped:
        return False
    height, width = trainer.batches.images.pixels.shape[2:]
    return 3 * cost(trainer.network, (height, width)).flops * images >= LONG


def _fuse(trainer: Trainer) -> str:
    """Let the network and its updates train in fused kernels, or return why they can't."""
    if reason := _why_not_captured(trainer):
        return reason
    if reason := fuse_network(trainer.network, trainer.device, trainer.recipe.precision):
        return reason
    from rkcnn.model.fast.update import update_parameters  # imports triton

    trainer.sgd.fused = update_parameters
    return ""


def _why_no_graph(trainer: Trainer) -> str:
    depends = "the number of solver steps depends on the data" if trainer.solver_stats else ""
    return _why_not_captured(trainer) or depends


def _why_not_captured(trainer: Trainer) -> str:
    """Return why a step could not be captured in a CUDA graph, if it had the same kernels every time."""
    if trainer.device.type != "cuda":
        return "it needs a GPU"
    if trainer.batches.streamed:
        return "the images stream from the host"
    return "several ranks reduce their gradients" if trainer.ranks.grouped else ""


def _why_not_compiled(trainer: Trainer) -> str:
    if trainer.solver_stats:
        return "the number of solver steps depends on the data"
    if any(isinstance(module, BatchNorm) and module.reducer is not None for module in trainer.network.modules()):
        return "batch norm exchanges statistics between ranks"
    return why_not_compiled(trainer.device)
