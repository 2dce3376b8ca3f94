"""Launches the kernels of an RKStep's backward pass, in order."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from rkcnn.model.fast import backward_kernels as kernels
from rkcnn.model.fast import weight_kernels
from rkcnn.model.fast.launch_forward import (
    FINISHED_AT_ONCE,
    Kept,
    apply_norm,
    grid,
    partials,
    parts_of,
    plain_arguments,
    product_arguments,
    stream_arguments,
    sum_arguments,
    weight_views,
)
from rkcnn.model.fast.program import Program
from rkcnn.model.fast.tables import table
from rkcnn.model.fast.tiles import Split, Tiles, choose_tiles, part_count

SUMMED = 256  # numbers of a block of `add_splits`
UNROLLED = 8  # parts that it loads at a time, if there are few

_convolution_backward = torch.ops.aten.convolution_backward.default


def run_backward(gradient: Tensor, kept: Kept, program: Program) -> tuple[Tensor, Tensor]:
    """Return the gradient of y, and those of all parameters of all evaluations in one flat buffer."""
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    states, narrowed, moments, norm1, norm2, _ = kept
    images, real, height, width = gradient.shape
    k = program.width
    rows, pixels = images * height * width, (images, height, width, k)
    tiles = choose_tiles(rows, k, states.element_size())
    flat = gradient.new_empty(program.starts[-1], dtype=torch.float32)
    sources = gradient_slots(program)
    gradients = states.new_empty((max(sources) + 1, rows, k))
    dh1 = states.new_empty((len(program.pairs), rows, k))
    dh2 = torch.empty_like(narrowed)
    coefficients1 = norm1.new_empty((len(program.pairs), 3, k))
    coefficients2 = norm2.new_empty((len(program.evaluations), 3, k))
    weights = weight_views(kept.weights, program)

    def add_readers(slot: int, out: Tensor, columns: int, external: bool) -> None:
        readers = program.readers(slot)
        kernels.add_readers[(triton.cdiv(rows, tiles.plain.rows),)](
            gradients, states[slot], dh1[readers.start :], coefficients1[readers.start :], out, rows, len(readers),
            R=columns, K=k, EXTERNAL=external, **plain_arguments(tiles.plain, k),
        )  # fmt: skip

    if real < k:
        gradients[0].zero_()
    gradients[0].view(pixels)[..., :real].copy_(gradient.permute(0, 2, 3, 1))
    for e in reversed(range(len(program.evaluations))):
        evaluation, start, places = program.evaluations[e], program.starts[e], program.gradients(e)
        narrow, conv = weights[2 * evaluation.stage : 2 * evaluation.stage + 2]
        if sources[e]:
            add_readers(evaluation.out, gradients[sources[e]], k, evaluation.out in program.increments)
        source = gradients[sources[e]]
        if tiles.conv_back is None:
            _, each = part_count(tiles.sums.rows, tiles.sums.programs, rows, 1)
            part = parts_of(states, each)
            through = differentiate_conv(source.view(pixels), source.view(pixels), conv, 0).permute(0, 2, 3, 1)
            kernels.mask_with_sums[(len(part),)](
                through.contiguous(), narrowed[e], norm2[e], dh2[e], part, rows, each, K=k,
                **sum_arguments(tiles.sums, k),
            )  # fmt: skip
        else:
            part = parts_of(states, tiles.conv_back.rows)
            kernels.conv_backward[grid(tiles.conv_back, rows, k)](
                source,
                conv,
                narrowed[e],
                norm2[e],
                dh2[e],
                part,
                rows,
                height,
                width,
                K=k,
                **product_arguments(tiles.conv_back),
            )
        kernels.finish_sums[(triton.cdiv(k, FINISHED_AT_ONCE), 1)](
            part, moments[program.slots + e], norm2[e], coefficients2[e], flat, len(part), rows, 0, 0,
            start + places.weight2, start + places.bias2, R=real, K=k, BP=partials(len(part)), BC=FINISHED_AT_ONCE,
        )  # fmt: skip
        kernels.add_norm[(triton.cdiv(rows, tiles.plain.rows),)](
            dh2[e], narrowed[e], coefficients2[e], rows, K=k, **plain_arguments(tiles.plain, k)
        )
        stream, reads = tiles.narrow_back, len(evaluation.reads)
        across = reads * triton.cdiv(k, stream.columns)
        parts, each = part_count(stream.rows, stream.programs, rows, across)
        part = norm1.new_empty((reads, parts, 2, k))
        kernels.narrow_backward[(parts, across)](
            dh2[e], narrow, states, norm1, dh1, part, rows, each, parts, program.packed_reads(e),
            program.packed_positions(e), N=reads, K=k, **stream_arguments(stream, k),
        )  # fmt: skip
        kernels.finish_sums[(triton.cdiv(k, FINISHED_AT_ONCE), reads)](
            part, moments, norm1, coefficients1, flat, parts, rows, program.packed_reads(e),
            program.packed_positions(e), start + places.weight1, start + places.bias1, R=real, K=k,
            BP=partials(parts), BC=FINISHED_AT_ONCE,
        )  # fmt: skip
    result = torch.empty_like(gradient)
    add_readers(0, result, real, True)

    add_conv_weights(gradients, sources, kept, program, tiles, pixels, flat)
    add_narrow_weights(dh2, kept, program, tiles, flat)
    return result, flat


def add_conv_weights(
    gradients: Tensor,
    sources: list[int],
    kept: Kept,
    program: Program,
    tiles: Tiles,
    pixels: tuple[int, ...],
    flat: Tensor,
) -> None:
    """Write the gradients of all 3x3 weights."""
    split, k, real, count = tiles.conv_weights, program.width, program.k, len(program.evaluations)
    starts = [(program.starts[e] + program.gradients(e).conv, 9 * real) for e in range(count)]
    if split is None:
        normalised = torch.empty_like(gradients[0])
        weight = weight_views(kept.weights, program)[1]
        for e, (start, _) in enumerate(starts):
            apply_norm(kept.narrowed[e : e + 1], kept.norm2[e : e + 1], normalised, tiles.plain)
            found = differentiate_conv(gradients[sources[e]].view(pixels), normalised.view(pixels), weight, 1)
            place = flat[start : start + 9 * real * real].view(real, 3, 3, real)
            place.copy_(found.permute(0, 2, 3, 1)[:real, :, :, :real])
        return
    _, height, width, _ = pixels
    rows = kept.states.shape[1]
    normalised = torch.empty_like(kept.narrowed)
    apply_norm(kept.narrowed, kept.norm2, normalised, tiles.plain)
    across = 9 * count_blocks(split, k)
    parts, each = part_count(split.rows, split.programs, rows, across * count)
    room = flat.new_empty((count, parts, 9 * k * k))
    weight_kernels.conv_weights[(across, parts, count)](
        gradients, table(tuple(sources), flat.device), normalised, room, rows, height, width, each, parts, K=k,
        **split_arguments(split),
    )  # fmt: skip
    add_splits(room, flat, starts, real, (9, real, k))


def add_narrow_weights(through: Tensor, kept: Kept, program: Program, tiles: Tiles, flat: Tensor) -> None:
    """Write the gradients of all 1x1 weights; `through` are those of the 1x1 outputs."""
    split, k, real, count = tiles.narrow_weights, program.width, program.k, len(program.pairs)
    rows = kept.states.shape[1]
    across = count_blocks(split, k)
    parts, each = part_count(split.rows, split.programs, rows, across * count)
    room = flat.new_empty((count, parts, k * k))
    facts = [number for pair in program.pairs for number in (pair.evaluation, program.slot_of(pair))]
    weight_kernels.narrow_weights[(count, parts, across)](
        through, kept.states, kept.norm1, table(tuple(facts), flat.device), room, rows, each, parts, K=k,
        **split_arguments(split),
    )  # fmt: skip
    starts = [(program.starts[e] + program.gradients(e).narrow + j * real, program.inputs(e)) for e, j in program.pairs]
    add_splits(room, flat, starts, real, (1, real, k))


def differentiate_conv(gradient: Tensor, x: Tensor, weight: Tensor, argument: int) -> Tensor:
    """Return torch's gradient of a 3x3 convolution's input (argument 0) or weight (1); pixels are (N, H, W, k)."""
    wanted = [argument == n for n in range(3)]
    pair, zero = [1, 1], [0, 0]
    channels = [tensor.permute(0, 3, 1, 2) for tensor in (gradient, x, weight)]
    return _convolution_backward(*channels, None, pair, pair, pair, False, zero, 1, wanted)[argument]


def gradient_slots(program: Program) -> list[int]:
    """Return where the gradient of each evaluation's result lies: 0, that of the step's, where nothing reads it."""
    found, free = [], 1
    for evaluation in program.evaluations:
        is_read = len(program.readers(evaluation.out)) > 0 or evaluation.out not in program.increments
        found.append(free if is_read else 0)
        free += is_read
    return found


def add_splits(
    room: Tensor, flat: Tensor, places: list[tuple[int, int]], outputs: int, row: tuple[int, int, int]
) -> None:
    """Add the parts of every weight gradient and write the sums to their places: (start, length of a row there).

    A row of the parts, of which there is one for each output, is `row`: taps, and the real and padded inputs of each.
    """
    count, parts, size = room.shape
    numbers = tuple(number for place in places for number in place)
    weight_kernels.add_splits[(triton.cdiv(size, SUMMED), count)](
        room, flat, table(numbers, flat.device), parts, size, outputs, TAPS=row[0], R=row[1], K=row[2],
        UNROLLED=UNROLLED if parts <= 64 else 4 * UNROLLED, BLOCK=SUMMED, num_warps=2,
    )  # fmt: skip


def count_blocks(split: Split, k: int) -> int:
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
