"""The program of a step reads what RKStep reads."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from rkcnn.model.fast.program import Pair, Program, program_of
from rkcnn.model.layers import Layers
from rkcnn.model.steps.rkcnn import RKStep


class Recorder(nn.Module):
    """Stands in for a stage: remembers what it read, and gives its result the next number."""

    def __init__(self, log: list[tuple[int, ...]]) -> None:
        super().__init__()
        self.log = log

    def forward(self, *states: int) -> int:
        self.log.append(states)
        return len(self.log)


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("y", [False, True])
@pytest.mark.parametrize(("s", "sweeps"), [(1, 0), (2, 1), (3, 1), (3, 2)])
def test_every_evaluation_reads_the_states_that_rkstep_reads(s: int, sweeps: int, newest: bool, y: bool) -> None:
    step = RKStep(s, 2, Layers("bn"), newest=newest, sweeps=sweeps, y=y)
    program = program_of(step)
    log: list[tuple[int, ...]] = []
    step.guess = nn.ModuleList(Recorder(log) for _ in range(s))
    step.refine = nn.ModuleList(Recorder(log) for _ in range(s if sweeps else 0))
    start: Tensor = 0  # type: ignore[assignment]
    _, e = step(start)
    assert [evaluation.reads for evaluation in program.evaluations] == log
    assert list(program.increments) == e


def test_all_that_read_a_state_lie_together() -> None:
    program = Program(3, 4, newest=True, sweeps=1, y=True)
    covered = [p for slot in range(program.slots) for p in program.readers(slot)]
    assert covered == list(range(len(program.pairs)))
    for slot in range(program.slots):
        assert all(program.slot_of(program.pairs[p]) == slot for p in program.readers(slot))
    assert not program.readers(program.slots - 1)  # nothing reads the last increment


def test_packed_numbers_hold_slots_and_positions() -> None:
    program = Program(3, 4, newest=True, sweeps=1, y=True)
    for e, evaluation in enumerate(program.evaluations):
        reads, positions = program.packed_reads(e), program.packed_positions(e)
        for j, slot in enumerate(evaluation.reads):
            assert reads >> 4 * j & 15 == slot
            assert program.pairs[positions >> 8 * j & 255] == Pair(e, j)


def test_gradients_do_not_overlap() -> None:
    program = Program(2, 5, newest=False, sweeps=2, y=True)
    for e in range(len(program.evaluations)):
        places, c = program.gradients(e), program.inputs(e)
        sizes = (c, c, 5 * c, 5, 5, 225)
        assert all(at + size <= after for at, size, after in zip(places, sizes, places[1:], strict=False))
        assert program.starts[e + 1] - program.starts[e] == places.size


@pytest.mark.parametrize(
    ("program", "fits"),
    [
        (Program(5, 80, True, 1, True), True),
        (Program(2, 128, False, 1, True), True),
        (Program(2, 125, False, 1, True), True),
        (Program(2, 129, False, 1, True), False),  # too wide for a block
        (Program(8, 16, False, 0, True), False),  # a stage reads eight states
        (Program(5, 16, True, 3, True), False),  # 21 states
        (Program(1, 16, True, 1, False), False),  # Phase II reads nothing
    ],
)
def test_what_the_kernels_can_address(program: Program, fits: bool) -> None:
    assert program.fits == fits


def test_widths_are_multiples_of_eight_and_the_widest_are_whole() -> None:
    widths = [Program(1, k, False, 0, True).width for k in (1, 8, 26, 78, 112, 113, 120, 128, 130)]
    assert widths == [8, 8, 32, 80, 112, 128, 128, 128, 136]
    assert Program(2, 5, newest=True, sweeps=1, y=True).weight_count == (1 + 2 + 2 + 2 + 4 * 9) * 8 * 8
