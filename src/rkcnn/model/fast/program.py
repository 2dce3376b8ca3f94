"""What the fused kernels compute for one RKStep, and where each value lies. Imports no triton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from rkcnn.model.stage import Stage
from rkcnn.model.steps.rkcnn import RKStep

MOST_SLOTS = 16  # states of a step: kernels get the slot of each state that a stage reads in 4 bits
MOST_READS = 7  # states that one stage reads: kernels get the place of each in 8 bits of one number
ALIGNED = 16  # elements: every gradient starts at a multiple of it, so that loads are wide
WIDTH_MULTIPLE = 8  # the width of the states is a multiple of it, likewise: 16 bytes
WIDEST = 128  # channels: a block holds a row of all of them
PADDED_FROM = 113  # from so many channels on the width is WIDEST: whole blocks gain more than the zeros cost


class Evaluation(NamedTuple):
    """One evaluation of a stage network: its weights, the slots of the states that it reads, and that of its result."""

    stage: int
    reads: tuple[int, ...]
    out: int


class Pair(NamedTuple):
    """A state as one evaluation reads it, the j-th of its inputs."""

    evaluation: int
    j: int


class Offsets(NamedTuple):
    """Where a stage's gradients start in the flat buffer of an evaluation, in order; `size` is that of the buffer."""

    weight1: int
    bias1: int
    narrow: int
    weight2: int
    bias2: int
    conv: int
    size: int


@dataclass(frozen=True)
class Program:
    """The evaluations of a step of s stages of k channels. Slot 0 holds y, the others the results of the evaluations.

    `newest`, `sweeps` and `y` are those of RKStep. Inside the step all have `width` channels: those above k have
    weights of zero and are zero, exactly, so that they change no other.
    """

    s: int
    k: int
    newest: bool
    sweeps: int
    y: bool

    @cached_property
    def evaluations(self) -> tuple[Evaluation, ...]:
        found = [Evaluation(i, tuple(range(i + 1)), i + 1) for i in range(self.s)]
        now = [evaluation.out for evaluation in found]  # the slot of each e_i
        given = (0,) if self.y else ()
        for _ in range(self.sweeps):
            seen = now if self.newest else list(now)
            for i in range(self.s):
                out = len(found) + 1
                found.append(Evaluation(self.s + i, (*given, *seen[:i], *seen[i + 1 :]), out))
                now[i] = out
        return tuple(found)

    @property
    def width(self) -> int:
        return fused_width(self.k)

    @property
    def slots(self) -> int:
        return len(self.evaluations) + 1

    @property
    def increments(self) -> range:
        """The slots of the final e_i."""
        return range(self.slots - self.s, self.slots)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every (evaluation, input), those that read the same state together, so that its gradient sums a range."""
        found = [(slot, e, j) for e, ev in enumerate(self.evaluations) for j, slot in enumerate(ev.reads)]
        return tuple(Pair(e, j) for _, e, j in sorted(found))

    def readers(self, slot: int) -> range:
        """The positions in `pairs` of all that read the state."""
        found = [p for p, pair in enumerate(self.pairs) if self.slot_of(pair) == slot]
        return range(found[0], found[-1] + 1) if found else range(0)

    def slot_of(self, pair: Pair) -> int:
        return self.evaluations[pair.evaluation].reads[pair.j]

    def packed_reads(self, e: int) -> int:
        """The slots that an evaluation reads, 4 bits each."""
        return sum(slot << 4 * j for j, slot in enumerate(self.evaluations[e].reads))

    def packed_positions(self, e: int) -> int:
        """The positions in `pairs` of an evaluation's inputs, 8 bits each."""
        return sum(self.pairs.index(Pair(e, j)) << 8 * j for j in range(len(self.evaluations[e].reads)))

    def inputs(self, e: int) -> int:
        """The number of input channels of an evaluation's stage."""
        return len(self.evaluations[e].reads) * self.k

    @cached_property
    def stages(self) -> int:
        return 2 * self.s if self.sweeps else self.s

    def gradients(self, e: int) -> Offsets:
        """The places of an evaluation's weight gradients, relative to its start."""
        c, k = self.inputs(e), self.k
        ends = accumulate(map(_aligned, (c, c, c * k, k, k, 9 * k * k)))
        return Offsets(0, *ends)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the gradients of each evaluation start; the last is the size of all."""
        sizes = [self.gradients(e).size for e in range(len(self.evaluations))]
        return tuple(accumulate(sizes, initial=0))

    @property
    def weight_count(self) -> int:
        """The number of weights of all convolutions of `width` channels."""
        return sum((len(self.evaluations[e].reads) + 9) * self.width**2 for e in range(self.stages))

    @property
    def fits(self) -> bool:
        """Whether the kernels can address its states."""
        return (
            self.slots <= MOST_SLOTS
            and self.width <= WIDEST
            and len(self.pairs) < 256
            and all(1 <= len(evaluation.reads) <= MOST_READS for evaluation in self.evaluations)
        )


def fused_width(k: int) -> int:
    """Return how many channels activations of k channels have inside of fused kernels."""
    return WIDEST if PADDED_FROM <= k <= WIDEST else -(-k // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


@lru_cache
def make_program(numbers: tuple[int, ...]) -> Program:
    """Return the program of (s, k, newest, sweeps, y), which is how an operator of torch's gets it."""
    s, k, newest, sweeps, y = numbers
    return Program(s, k, bool(newest), sweeps, bool(y))


def numbers_of(step: RKStep) -> list[int]:
    """Return (s, k, newest, sweeps, y) of a step whose phases have weights of their own."""
    first = step.guess[0]
    assert isinstance(first, Stage)
    return [len(step.guess), first.conv.out_channels, int(step.newest), step.sweeps, int(step.y)]


def program_of(step: RKStep) -> Program:
    """Return the program of a step, which may be one that the kernels can't address."""
    return make_program(tuple(numbers_of(step)))


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
