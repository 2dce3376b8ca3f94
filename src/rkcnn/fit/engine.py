"""How a step is run: plainly, compiled, or as one CUDA graph. All give the same losses up to rounding."""

from __future__ import annotations

import shutil
import warnings
from contextlib import nullcontext

import torch

from rkcnn.error import InputError
from rkcnn.fit.trainer import Trainer
from rkcnn.model.layers import BatchNorm

ENGINES = ("auto", "eager", "compile", "graph")
WARM_UP = 3  # real steps that let cuDNN, the compiler and the allocator settle; their effect is undone


class Engine:
    """Steps of one trainer, eagerly, on a stream of its own where there are streams."""

    kind = "eager"

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.stream = torch.cuda.Stream(trainer.device) if trainer.device.type == "cuda" else None

    def begin(self) -> None:
        """Whatever the first step would have to do beside a step; the state is left as it was."""
        self.follow()

    def follow(self) -> None:
        """What others did to the trainer, on their stream, comes before the next step."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.trainer.device))

    def advance(self) -> None:
        """One step, and the position behind it."""
        with torch.cuda.stream(self.stream) if self.stream is not None else nullcontext():
            self._step()
        self.trainer.step += 1

    def wait(self) -> None:
        if self.stream is not None:
            self.stream.synchronize()

    def _step(self) -> None:
        self.trainer.learn(*self.trainer.prepare())


class Compiled(Engine):
    """Everything up to the loss compiled for static shapes; a kept partial batch is a second shape."""

    kind = "compile"

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")  # fp32 is what the recipe asks for
        trainer.loss = torch.compile(trainer.forward, dynamic=False)


class Graph(Compiled):
    """The whole step (gather, augment, forward, backward, update) captured once and replayed.

    A kept partial batch runs outside the graph.
    """

    kind = "graph"

    def __init__(self, trainer: Trainer, compiled: bool = True) -> None:
        if compiled:
            super().__init__(trainer)
        else:
            Engine.__init__(self, trainer)
        self.graph = torch.cuda.CUDAGraph()
        indices, drawn = trainer.batches.plan(trainer.epoch, 0)  # a whole batch, wherever the trainer stands
        self.indices, self.drawn = indices.clone(), drawn.clone()

    def _step(self) -> None:
        indices, drawn = self.trainer.prepare()
        if len(indices) != len(self.indices):
            self.trainer.learn(indices, drawn)
            return
        self.indices.copy_(indices)
        self.drawn.copy_(drawn)
        self.graph.replay()

    def begin(self) -> None:
        super().begin()
        with torch.cuda.stream(self.stream):
            self.trainer.prepare()  # train mode, and a learning rate
            self._capture()

    def _capture(self) -> None:
        trainer = self.trainer
        state = trainer.state()
        kept = [tensor.clone() for tensor in state]
        for _ in range(WARM_UP):
            trainer.learn(self.indices, self.drawn)
        torch.cuda.current_stream().synchronize()
        with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
            trainer.learn(self.indices, self.drawn)
        with torch.no_grad():
            for tensor, value in zip(state, kept, strict=True):
                tensor.copy_(value)


def check_engine(kind: str) -> None:
    if kind not in ENGINES:
        raise InputError(f"no engine {kind!r}; engines are {', '.join(ENGINES)}")


def start_engine(kind: str, trainer: Trainer) -> tuple[Engine, str]:
    """The engine asked for, or the fastest that can run this trainer, and one line that says why not a faster one."""
    check_engine(kind)
    cuda = trainer.device.type == "cuda"
    data_decides = bool(trainer.tallies)
    norms_wait = any(isinstance(m, BatchNorm) and m.reducer is not None for m in trainer.network.modules())
    reasons = {
        "graph": (
            "a CUDA graph needs a GPU"
            if not cuda
            else "the data decides how long its solver takes"
            if data_decides
            else "its images stream from the host"
            if trainer.batches.streamed
            else "several ranks reduce their gradients"
            if trainer.ranks.world > 1
            else ""
        ),
        "compile": (
            "the data decides how long its solver takes"
            if data_decides
            else "its batch norms wait for other ranks"
            if norms_wait
            else "torch.compile needs a C++ compiler"
            if not cuda and not any(map(shutil.which, ("c++", "g++", "clang++")))
            else ""
        ),
    }
    if kind == "auto":
        kind = "graph" if cuda else "eager"
        quiet = not cuda  # eager is the ordinary way on a CPU
    else:
        quiet = False
    why: list[str] = []
    for name, engine in (("graph", Graph), ("compile", Compiled)):
        if kind == name:
            if not reasons[name]:
                return engine(trainer), "; ".join(why)
            why.append(f"not {name}: {reasons[name]}")
            kind = "compile" if name == "graph" else "eager"
    return Engine(trainer), "" if quiet else "; ".join(why)
