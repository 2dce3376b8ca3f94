"""A network for inference alone: norms folded, in the fastest layout, in any precision, compiled where that pays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, Self

import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.backends import backends_set_to
from rkcnn.model.compiling import NotCompiled, compiling, why_not_compiled
from rkcnn.model.cost import default_size
from rkcnn.model.fast.choose import fuse_stages, separate_stages
from rkcnn.model.fold import fold_norms
from rkcnn.model.layout import choose_layout
from rkcnn.model.network import check_images, check_precision
from rkcnn.model.period import Period
from rkcnn.model.solver import Solver
from rkcnn.solvers.solver_step import at_least_float32

PRECISIONS = ("fp32", "tf32", "bf16")
ENGINES = ("auto", "eager", "compile", "graph")
BATCHES = (1, 8, 32, 128, 512)  # compiled and captured sizes; others are padded to the next, or cut
COMPILE_SECONDS = {"cpu": 30.0, "cuda": 30.0}  # that compiling for one size of batch takes
SAVED = {"cpu": 0.5, "cuda": 0.5}  # share of the time of an eager pass that compiling saves
SPEED = {"cpu": 15e9, "cuda": 50e12}  # FLOP/s of an eager pass: of one thread, of a GPU
WARM_UP = 3  # passes before a graph is captured

Compute = Callable[[Tensor], Tensor]


class FusedNetwork(nn.Module):
    """Computes the logits of a network's evaluation mode, up to rounding; `Network.fused` makes one.

    It holds a copy of the weights, so what happens to the network later changes nothing here. It can't be trained, and
    it has no state to save: save the network's. One thread at a time may call it. `engine` says what really runs:
    eager, compile or graph; `note` says why a faster one could not be used.
    """

    def __init__(
        self,
        network: nn.Module,
        precision: str = "fp32",
        engine: str = "auto",
        images: int | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        for word, value, known in (("precision", precision, PRECISIONS), ("engine", engine, ENGINES)):
            if value not in known:
                raise InputError(f"`{word}={value}` given; it is one of {', '.join(known)}")
        self.name, self.channels, self.smallest = network.name, network.channels, network.smallest
        self.precision, self.wanted, self.images, self.size = precision, engine, images, size
        self.folded = fold_norms(network)
        if precision == "bf16":
            _round_weights(self.folded.float())
        self.training = False
        self.batches: tuple[int, ...] = (
            BATCHES if images is None else ()
        )  # a run of known length compiles once, for its first batch
        self._runs: dict[tuple[int, ...], _Compiled] = {}  # by the shape of a batch
        self._choose()

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (N, classes), in float32 or more, of normalised images (N, channels, height, width)."""
        assert isinstance(self.channels, int)
        assert isinstance(self.smallest, int)
        check_images(str(self.name), self.channels, self.smallest, images)
        rounds = self.precision == "bf16"
        weights = torch.float32 if rounds else next(self.folded.parameters()).dtype
        check_precision(str(self.name), images, weights, rounds)
        with torch.inference_mode(False), torch.no_grad():
            if self.engine == "eager" or not len(images):
                with self._set_backends():
                    return self._compute(images)
            self.batches = self.batches or (min(len(images), BATCHES[-1]),)
            answers = [self._run(part).clone() for part in images.split(self.batches[-1])]
            return answers[0] if len(answers) == 1 else torch.cat(answers)

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode; raises InputError if training is asked for."""
        if mode:
            raise InputError(f"{self.name} is fused for inference and can't be trained; train what it was made of")
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise InputError: weights are those of the network that it was made of."""
        raise InputError(f"{self.name} is fused for inference and is not saved; save the network it was made of")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": {}}  # a copy compiles and captures for itself

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._runs.clear()  # graphs have the addresses of the weights that were
        self._choose()
        return self

    def _choose(self) -> None:
        """Choose the engine and the layout for the device that the weights are on."""
        device = next(self.folded.parameters()).device
        self.engine, self.note = choose_engine(self.folded, device, self.wanted, self.images, self.size)
        eager = self.engine == "eager"  # compiled, a group norm is as fast with channels last
        self.layout = choose_layout(self.folded, device) if eager else torch.channels_last
        self.folded.to(memory_format=self.layout)  # type: ignore[call-overload]
        separate_stages(self.folded)
        if self.precision == "bf16" and self.engine != "eager":
            fuse_stages(self.folded, device)

    def _compute(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            return at_least_float32(self.folded(images.contiguous(memory_format=self.layout)))

    def _run(self, images: Tensor) -> Tensor:
        """Run a batch at the next size that is compiled; the rest of that batch is not read."""
        size = next(size for size in self.batches if size >= len(images))
        shape = (size, *images.shape[1:])
        if shape not in self._runs:
            batch = torch.zeros(shape, dtype=images.dtype, device=images.device).contiguous(memory_format=self.layout)
            with self._set_backends():
                compute = self._compile(batch)
                self._runs[shape] = _Graph(compute, batch) if self.engine == "graph" else _Compiled(compute, batch)
        run = self._runs[shape]
        with nullcontext() if isinstance(run, _Graph) else self._set_backends():  # a graph has them from its capture
            return run(images)

    def _set_backends(self) -> AbstractContextManager[None]:
        """A context in which products are rounded as the precision allows.

        cuDNN tries its kernels for each new shape, unless the engine is eager: that takes longer than a short run.
        """
        return backends_set_to(self.precision, benchmark=True if self.engine != "eager" else None)

    def _compile(self, batch: Tensor) -> Compute:
        """Compile for this shape; run uncompiled, with a note, where that fails."""
        import torch._inductor.config as inductor  # takes a second

        compiled: Compute = torch.compile(self._compute, dynamic=False)
        try:
            # frozen weights are laid out once for the CPU's convolutions, and can't be another network's
            with compiling(), inductor.patch(freezing=batch.device.type == "cpu"):
                compiled(batch)
        except NotCompiled as error:
            self.note = f"not compiled: {error}"
            return self._compute
        return compiled


class _Compiled:
    """A compiled pass over batches of one shape, into which fewer images may be copied."""

    def __init__(self, compute: Compute, batch: Tensor) -> None:
        self.compute, self.batch = compute, batch

    def __call__(self, images: Tensor) -> Tensor:
        """Return the logits of these images, which the next call may overwrite."""
        self.batch[: len(images)].copy_(images)
        return self._pass()[: len(images)]

    def _pass(self) -> Tensor:
        return self.compute(self.batch)


class _Graph(_Compiled):
    """The same as a CUDA graph: one launch instead of one for every kernel."""

    def __init__(self, compute: Compute, batch: Tensor) -> None:
        super().__init__(compute, batch)
        self.replay = capture_graph(compute, batch)

    def _pass(self) -> Tensor:
        return self.replay()


def capture_graph(compute: Compute, batch: Tensor) -> Callable[[], Tensor]:
    """Return a function that replays `compute(batch)` as a CUDA graph and returns its result, in one tensor always."""
    stream = torch.cuda.Stream(batch.device)
    stream.wait_stream(torch.cuda.current_stream(batch.device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            compute(batch)
    torch.cuda.current_stream(batch.device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute(batch)

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


def choose_engine(
    network: nn.Module,
    device: torch.device,
    wanted: str,
    images: int | None = None,
    size: tuple[int, int] | None = None,
) -> tuple[str, str]:
    """Return the engine for so many images of that size, and why it is not the one that is wanted, if it is not.

    `auto` is eager for a network whose solver's steps depend on the data. Otherwise it compiles only if that takes
    less time than it saves on these images, by the FLOPs of the network and rough speeds; without their number, it is
    a graph on a GPU and eager on a CPU.
    """
    reason = _why_only_eager(network, device)
    if wanted == "eager" or reason:
        return "eager", "" if wanted in ("auto", "eager") else reason
    fastest = "graph" if device.type == "cuda" else "compile"
    if wanted == "auto" and not _pays(network, device, images, size):
        return "eager", ""
    if wanted == "graph" and fastest != "graph":
        return "compile", "a CUDA graph needs a GPU"
    return (fastest if wanted == "auto" else wanted), ""


def _pays(network: nn.Module, device: torch.device, images: int | None, size: tuple[int, int] | None) -> bool:
    """Whether compiling takes less time than it saves on so many images of that size."""
    if images is None:
        return device.type == "cuda"
    if device.type not in SPEED:
        return False
    speed = SPEED[device.type] * (torch.get_num_threads() if device.type == "cpu" else 1)
    seconds = _count_flops(network, size) * images / speed
    return seconds * SAVED[device.type] > COMPILE_SECONDS[device.type]


@torch.no_grad()
def _count_flops(network: nn.Module, size: tuple[int, int] | None) -> int:
    """Return the FLOPs of the convolutions and linear layers on one image, which is computed for that.

    `cost` would count more exactly, but without real numbers torch imports its compiler, which takes seconds.
    """
    channels, smallest = network.channels, network.smallest
    assert isinstance(channels, int)
    assert isinstance(smallest, int)
    total = 0

    def count(module: nn.Module, _: object, out: Tensor) -> None:
        nonlocal total
        assert isinstance(module.weight, Tensor)
        total += 2 * out.numel() * module.weight[0].numel()

    layers = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    height, width = size or [max(default_size(channels), smallest)] * 2
    weight = layers[0].weight
    kinds = {each.dtype for each in (*network.parameters(), *network.buffers()) if each.is_floating_point()}
    rounded = len(kinds) > 1  # by `_round_weights`; a network that its user converted has one precision
    dtype = torch.float32 if rounded else weight.dtype
    image = torch.zeros(1, channels, height, width, device=weight.device, dtype=dtype)
    try:
        with torch.autocast(weight.device.type, torch.bfloat16, enabled=rounded):
            network(image)
    finally:
        for hook in hooks:
            hook.remove()
    return total


def _why_only_eager(network: nn.Module, device: torch.device) -> str:
    for module in network.modules():
        solver = getattr(module, "solver", None)
        counts = isinstance(solver, Solver) and (type(solver) is not Solver or not solver.exact)
        if counts or (isinstance(module, Period) and not module.exact):
            return "the number of solver steps depends on the data, or is counted"
    if device.type not in ("cpu", "cuda"):
        return f"it is not known to be faster on {device.type}"
    return why_not_compiled(device)


def _round_weights(network: nn.Module) -> None:
    """Keep the weights of convolutions and linear layers in bf16, so that no pass has to round them again."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.to(torch.bfloat16)
