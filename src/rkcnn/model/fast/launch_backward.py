"""Launches the kernels of an RKStep's backward pass, in order."""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
from torch import Tensor

from rkcnn.model.fast import backward_kernels as kernels
from rkcnn.model.fast import weight_kernels
from rkcnn.model.fast.launch_forward import CHANNELS, Kept, blocks, grid, partials, parts_of, weight_views
from rkcnn.model.fast.program import Program
from rkcnn.model.fast.tiles import Split, choose_tiles, part_count, power_of_two

SUMMED = 1024  # numbers of a block of `add_splits`


def run_backward(gradient: Tensor, kept: Kept, program: Program) -> tuple[Tensor, Tensor]:
    """Return the gradient of y, and those of all parameters of all evaluations in one flat buffer."""
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    states, narrowed, moments, norm1, norm2, _ = kept
    height, width = gradient.shape[2:]
    rows, k = states.shape[1:]
    tiles, columns, device = choose_tiles(rows, k), power_of_two(k), gradient.device
    flat = gradient.new_empty(program.starts[-1], dtype=torch.float32)
    sources = gradient_slots(program)
    gradients = states.new_empty((max(sources) + 1, rows, k))
    dh1 = states.new_empty((len(program.pairs), rows, k))
    dh2 = torch.empty_like(narrowed)
    coefficients1 = norm1.new_empty((len(program.pairs), 3, k))
    coefficients2 = norm2.new_empty((len(program.evaluations), 3, k))
    weights = weight_views(kept.weights, program)

    def add_readers(slot: int, out: Tensor, external: bool) -> None:
        readers = program.readers(slot)
        kernels.add_readers[(triton.cdiv(rows, tiles.plain_rows),)](
            gradient, states[slot], dh1[readers.start :], coefficients1[readers.start :], out, rows, len(readers), K=k,
            EXTERNAL=external, BM=tiles.plain_rows, BN=columns,
        )  # fmt: skip

    gradients[0].copy_(gradient.permute(0, 2, 3, 1).reshape(rows, k))
    for e in reversed(range(len(program.evaluations))):
        evaluation, start, places = program.evaluations[e], program.starts[e], program.gradients(e)
        narrow, conv = weights[2 * evaluation.stage : 2 * evaluation.stage + 2]
        if sources[e]:
            add_readers(evaluation.out, gradients[sources[e]], evaluation.out in program.increments)
        out = moments[program.slots + e]
        part = parts_of(states, tiles.conv_back.rows)
        kernels.conv_backward[grid(tiles.conv_back, rows, k)](
            gradients[sources[e]], conv, narrowed[e], out, norm2[e], dh2[e], part, rows, height, width, K=k,
            **blocks(tiles.conv_back),
        )  # fmt: skip
        kernels.finish_sums[(triton.cdiv(k, CHANNELS), 1)](
            part, out, norm2[e], coefficients2[e], flat, len(part), rows, 0, 0, start + places.weight2,
            start + places.bias2, K=k, BP=partials(len(part)), BC=CHANNELS,
        )  # fmt: skip
        down, across = grid(tiles.narrow_back, rows, k)
        reads = len(evaluation.reads)
        part = norm1.new_empty((reads, down, 2, k))
        kernels.narrow_backward[(down, across * reads)](
            dh2[e], narrowed[e], coefficients2[e], narrow, states, moments, norm1, dh1, part, rows, down,
            program.packed_reads(e), program.packed_positions(e), N=reads, K=k, **blocks(tiles.narrow_back),
        )  # fmt: skip
        kernels.finish_sums[(triton.cdiv(k, CHANNELS), reads)](
            part, moments, norm1, coefficients1, flat, down, rows, program.packed_reads(e), program.packed_positions(e),
            start + places.weight1, start + places.bias1, K=k, BP=partials(down), BC=CHANNELS,
        )  # fmt: skip
    result = torch.empty_like(gradient)
    add_readers(0, result, True)

    split = tiles.conv_weights
    count = len(program.evaluations)
    tile = split_blocks(split, k)
    parts, each = part_count(split, rows, 9 * tile * count)
    room = norm1.new_empty((count, parts, 9 * k * k))
    weight_kernels.conv_weights[(9 * tile, parts, count)](
        gradients, table(tuple(sources), device), narrowed, norm2, room, rows, height, width, each, parts, K=k,
        **split_arguments(split),
    )  # fmt: skip
    starts = [(program.starts[e] + program.gradients(e).conv, 9 * k) for e in range(count)]
    add_splits(room, flat, table(tuple(sum(starts, ())), device), 9 * k)

    split = tiles.narrow_weights
    count = len(program.pairs)
    tile = split_blocks(split, k)
    parts, each = part_count(split, rows, tile * count)
    room = norm1.new_empty((count, parts, k * k))
    facts = [(pair.evaluation, program.slot_of(pair)) for pair in program.pairs]
    weight_kernels.narrow_weights[(count, parts, tile)](
        dh2, narrowed, coefficients2, states, norm1, table(tuple(sum(facts, ())), device), room, rows, each, parts,
        K=k, **split_arguments(split),
    )  # fmt: skip
    starts = [
        (program.starts[e] + program.gradients(e).narrow + j * k, program.inputs(e)) for e, j in program.pairs
    ]
    add_splits(room, flat, table(tuple(sum(starts, ())), device), k)
    return result, flat


def gradient_slots(program: Program) -> list[int]:
    """Return where the gradient of each evaluation's result lies: 0, that of the step's, where nothing reads it."""
    found, free = [], 1
    for evaluation in program.evaluations:
        is_read = len(program.readers(evaluation.out)) > 0 or evaluation.out not in program.increments
        found.append(free if is_read else 0)
        free += is_read
    return found


def add_splits(room: Tensor, flat: Tensor, places: Tensor, row: int) -> None:
    """Add the parts of every weight gradient and write the sums to their places."""
    count, parts, size = room.shape
    weight_kernels.add_splits[(triton.cdiv(size, SUMMED), count)](
        room, flat, places, parts, size, row, BLOCK=SUMMED
    )


def split_blocks(split: Split, k: int) -> int:
    """Return the number of blocks of one k by k matrix."""
    return triton.cdiv(k, split.outputs) * triton.cdiv(k, split.inputs)


def split_arguments(split: Split) -> dict[str, int]:
    """Return the sizes of a weight gradient's blocks as a kernel's arguments."""
    return {
        "BM": split.rows,
        "BO": split.outputs,
        "BI": split.inputs,
        "num_warps": split.warps,
        "num_stages": split.stages,
    }


@lru_cache(maxsize=256)
def table(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the numbers on the device; kept, since a CUDA graph can't copy them from the host."""
    return torch.tensor(numbers, dtype=torch.int32, device=device)
