"""RKCNN-E, -I and -R: the paper's learned Runge–Kutta step (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers, trains_fused
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.stage import SharedStage, Stage


class RKStep(nn.Module):
    """y -> (x, e): the guesses of Phase I and the increments of Phase II.

    Phase I    x_i = E_i(y, x_1 .. x_{i-1})
    Phase II   e_i = I_i(y, e_1 .. e_{i-1}, x_{i+1} .. x_s)    -I: Gauss–Seidel, reads the newest
               e_i = I_i(y, x_1 .. x_{i-1}, x_{i+1} .. x_s)    -R: Jacobi, reads the guesses
               e_i = x_i                                       -E
    More sweeps repeat Phase II, with the same weights, on the results of the sweep before. With `y` (rule 4)
    Phase II reads y; with `shared` (against rule 5) both phases have the same convolutions.
    """

    part_titles: ClassVar = {"guess": "Phase I, stage", "refine": "Phase II, stage", "both": "both phases, stage"}
    fused: Callable[[RKStep, Tensor], Tensor] | None = None  # y -> y + e_1 + ... + e_s in kernels of model/fast/
    takes_tf32 = False  # whether they are used without autocast too, and round float32 to tf32

    def __init__(
        self,
        s: int,
        k: int,
        layers: Layers,
        *,
        newest: bool = False,
        sweeps: int = 0,
        y: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.newest, self.sweeps, self.y = newest, sweeps, y
        self.runs = s * (1 + sweeps)
        self.guess, self.refine, self.both = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        if shared:
            self.both.extend(SharedStage(i, s, k, layers, y) for i in range(s))
        else:
            self.guess.extend(Stage((i + 1) * k, k, layers) for i in range(s))
            self.refine.extend(Stage((s if y else s - 1) * k, k, layers) for _ in range(s if sweeps else 0))

    def forward(self, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        x: list[Tensor] = []
        for stage in self._phase(1):
            x.append(stage(y, *x))
        e = list(x)
        given = [y] if self.y else []
        for _ in range(self.sweeps):
            seen = e if self.newest else list(e)
            for i, stage in enumerate(self._phase(2)):
                e[i] = stage(*given, *seen[:i], *seen[i + 1 :])
        return x, e

    def _phase(self, number: int) -> list[Callable[..., Tensor]]:
        return [partial(stage, number) for stage in self.both] or list(self.guess if number == 1 else self.refine)


class RKCNN(Period):
    """y_next = y + e_1 + ... + e_s, r times; each step has weights of its own and so learns its h."""

    unit = "stage"

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        s, k = spec.stages[index], spec.k[index]
        concatenates, refines = spec.merge == "concat", spec.variant != "E"
        readout = (s + 1) * k if concatenates else k
        super().__init__(s * k if concatenates and refines else readout, readout)
        self.concatenates, self.refines = concatenates, refines
        steps = [
            RKStep(
                s,
                k,
                layers,
                newest=spec.variant == "I",
                sweeps=spec.sweeps or 0,
                y=spec.y is not False,
                shared=bool(spec.shared),
            )
            for _ in range(spec.r[index])
        ]
        self.steps = nn.ModuleList(steps)
        self.evaluations = sum(step.runs for step in steps)

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        for step in self.steps:
            assert isinstance(step, RKStep)
            if step.fused is not None and trains_fused(step, y, step.takes_tf32):
                y = step.fused(step, y)
                yield TimeStep(y, ())
                continue
            x, e = step(y)
            if self.concatenates:
                y = torch.cat([y, *e], 1)
            else:
                for increment in e:
                    y = y + increment
            yield TimeStep(y, tuple(e), tuple(x))

    def outputs(self, last: Tensor, e: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """With merge=concat, -I and -R end as a clique block ({e} goes on), -E as a dense block ({y, e} does)."""
        return (torch.cat(e, 1) if self.concatenates and self.refines else last), last

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        newest, concatenates = spec.variant == "I", spec.merge == "concat"
        draw_stages(diagram, spec.stages[0], spec.sweeps or 0, newest, spec.y is not False, concatenates)
        reads = {"I": "Phase II reads the newest increments", "R": "Phase II reads the guesses of Phase I"}
        diagram.note = reads.get(spec.variant, "")


def draw_stages(
    diagram: Diagram, s: int, sweeps: int = 0, newest: bool = False, y: bool = True, concatenates: bool = False
) -> None:
    """Draw the two phases of an RKStep with s stages, and the sum or concatenation that ends it."""
    x = [f"x{i}" for i in range(1, s + 1)]
    for i in range(s):
        diagram.add(f"stage {i + 1}", dict.fromkeys(["y", *x[:i]], ""), x[i])
    diagram.phase("Phase I", s)
    e = list(x)
    for sweep in range(sweeps):
        reads = e if newest else list(e)
        for i in range(s):
            lanes = [*["y"] * y, *reads[:i], *reads[i + 1 :]]
            e[i] = f"e{i + 1}{'′' * sweep}"
            diagram.add(f"stage {i + 1}", dict.fromkeys(lanes, ""), e[i])
        diagram.phase("Phase II" + (f", sweep {sweep + 1}" if sweeps != 1 else ""), s)
    diagram.add("concatenate" if concatenates else "+", dict.fromkeys(["y", *e], ""), "y'")
