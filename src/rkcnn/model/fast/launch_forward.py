"""Launches the kernels of an RKStep's forward pass, in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from rkcnn.model.fast import forward_kernels as kernels
from rkcnn.model.fast import list_kernels
from rkcnn.model.fast.program import Program
from rkcnn.model.fast.tables import address_table, cut
from rkcnn.model.fast.tiles import Plain, Product, Stream, Sums, choose_tiles, part_count, power_of_two

MOST_PARTIALS = 1024  # partial sums that a block of the finishing kernels holds at a time
FINISHED_AT_ONCE = 8  # channels of one such block
ADDED = 1024  # elements of a block of `add_increments` and `gather_rounded`


class Kept(NamedTuple):
    """What the backward pass needs: no normalised activation is among it.

    Statistics are float32: `moments` are the mean, the inverse deviation and the unbiased variance of each state, then
    of each 1x1 output; `norm1` and `norm2` the scale and shift of each norm as it was used.
    """

    states: Tensor  # (slots, M, k)
    narrowed: Tensor  # (evaluations, M, k), the outputs of the 1x1 convolutions
    moments: Tensor  # (slots + evaluations, 3, k)
    norm1: Tensor  # (pairs, 2, k)
    norm2: Tensor  # (evaluations, 2, k)
    weights: Tensor  # the convolutions' weights in the activations' precision, one behind the other


def allocate(y: Tensor, program: Program) -> tuple[Tensor, Kept]:
    """Return the step's result, and what it keeps, without values."""
    images, _, height, width = y.shape
    rows, evaluations, k = images * height * width, len(program.evaluations), program.width

    def statistics(*shape: int) -> Tensor:
        return y.new_empty((*shape, k), dtype=torch.float32)

    result = y.new_empty((images, height, width, program.k)).permute(0, 3, 1, 2)
    return result, Kept(
        y.new_empty((program.slots, rows, k)),
        y.new_empty((evaluations, rows, k)),
        statistics(program.slots + evaluations, 3),
        statistics(len(program.pairs), 2),
        statistics(evaluations, 2),
        y.new_empty(program.weight_count),
    )


def run_forward(y: Tensor, parameters: Sequence[Tensor], program: Program, eps: float) -> tuple[Tensor, Kept]:
    """Take the step; `parameters` are norm1's weight and bias, the 1x1's weight, norm2's, the 3x3's, of each stage."""
    y = y.contiguous(memory_format=torch.channels_last)
    result, kept = allocate(y, program)
    states, narrowed, moments, norm1, norm2, _ = kept
    images, _, height, width = y.shape
    rows, k = states.shape[1:]
    real = program.k
    tiles = choose_tiles(rows, k, states.element_size())
    weights = cast_weights(parameters, kept.weights, program)

    def finish(part: Tensor, block: int, row: Tensor, norm: tuple[Tensor, Tensor, Tensor] | None) -> None:
        weight, bias, out = norm or (row, row, row)
        kernels.finish_moments[(triton.cdiv(k, FINISHED_AT_ONCE),)](
            part, row, weight, bias, out, len(part), rows, eps, R=real, K=k, BM=block,
            NORM=norm is not None, BP=partials(len(part)), BC=FINISHED_AT_ONCE,
        )  # fmt: skip

    def take_moments(source: Tensor, columns: int, slot: int) -> None:
        _, each = part_count(tiles.sums.rows, tiles.sums.programs, rows, 1)
        part = parts_of(states, each)
        kernels.take_moments[(len(part),)](
            source, states[slot], part, rows, each, R=columns, K=k, **sum_arguments(tiles.sums, k)
        )
        finish(part, each, moments[slot], None)

    def take_narrow(e: int, weight1: Tensor, bias1: Tensor, narrow: Tensor) -> tuple[Tensor, int]:
        reads, stream = len(program.evaluations[e].reads), tiles.narrow_by_rows
        places = (program.packed_reads(e), program.packed_positions(e))
        given = (states, moments, weight1, bias1, norm1, narrow, narrowed[e])
        if stream is None or reads > 2:
            part = parts_of(states, tiles.narrow.rows)
            kernels.narrow_forward[grid(tiles.narrow, rows, k)](
                *given, part, rows, *places, N=reads, R=real, K=k, **product_arguments(tiles.narrow)
            )
            return part, tiles.narrow.rows
        across = triton.cdiv(k, stream.columns)
        count, each = part_count(stream.rows, stream.programs, rows, across)
        part = parts_of(states, each)
        kernels.narrow_forward_by_rows[(count, across)](
            *given, part, rows, each, *places, N=reads, R=real, K=k, **stream_arguments(stream, k)
        )
        return part, each

    take_moments(y, real, 0)
    normalised = y.new_empty((images, height, width, k)).permute(0, 3, 1, 2)
    for e, evaluation in enumerate(program.evaluations):
        weight1, bias1, _, weight2, bias2, _ = parameters[6 * evaluation.stage : 6 * evaluation.stage + 6]
        narrow, conv = weights[2 * evaluation.stage : 2 * evaluation.stage + 2]
        part, block = take_narrow(e, weight1, bias1, narrow)
        finish(part, block, moments[program.slots + e], (weight2, bias2, norm2[e]))
        apply_norm(narrowed[e : e + 1], norm2[e : e + 1], normalised, tiles.plain)
        if tiles.conv is None:
            take_moments(torch.conv2d(normalised, conv.permute(0, 3, 1, 2), padding=1), k, evaluation.out)
            continue
        part = parts_of(states, tiles.conv.rows)
        kernels.conv_forward[grid(tiles.conv, rows, k)](
            normalised, conv, states[evaluation.out], part, rows, height, width, K=k, **product_arguments(tiles.conv)
        )
        finish(part, tiles.conv.rows, moments[evaluation.out], None)
    size = rows * k
    kernels.add_increments[(triton.cdiv(size, ADDED),)](
        states, states[program.increments.start], len(program.increments), result, size, R=real, K=k, BLOCK=ADDED
    )
    return result, kept


def apply_norm(narrowed: Tensor, norm2: Tensor, out: Tensor, plain: Plain) -> None:
    """Write relu(norm2(z)) of every evaluation given."""
    count, rows, k = narrowed.shape
    kernels.apply_norm[(triton.cdiv(rows, plain.rows), count)](
        narrowed, norm2, out, rows, K=k, **plain_arguments(plain, k)
    )


def cast_weights(parameters: Sequence[Tensor], flat: Tensor, program: Program) -> list[Tensor]:
    """Write the convolutions' weights into `flat`, channels last and `width` wide; return each as it lies there."""
    found = [parameters[6 * stage + n].permute(0, 2, 3, 1) for stage in range(program.stages) for n in (2, 5)]
    sources = [source.contiguous() for source in found]  # as the trainer lays them out, so that nothing is copied
    views = weight_views(flat, program)
    sizes = [view.numel() for view in views]
    starts = list(accumulate(sizes, initial=0))
    rows = tuple(
        (sources[n].data_ptr(), sources[n].numel() // program.k, starts[n], at, size)
        for n, at, size in cut(sizes, ADDED)
    )
    list_kernels.gather_rounded[(len(rows),)](
        address_table(rows, flat.device), flat, R=program.k, K=program.width, BLOCK=ADDED
    )
    return views


def weight_views(flat: Tensor, program: Program) -> list[Tensor]:
    """Return the 1x1 and the (width, 3, 3, width) weights of each stage in what `cast_weights` wrote."""
    k = program.width
    reads = [len(program.evaluations[e].reads) for e in range(program.stages)]
    shapes = [shape for count in reads for shape in ((k, 1, 1, count * k), (k, 3, 3, k))]
    parts = flat.split([prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def parts_of(states: Tensor, block: int) -> Tensor:
    """Return room for two partial sums a channel of every block of rows."""
    _, rows, k = states.shape
    return states.new_empty((triton.cdiv(rows, block), 2, k), dtype=torch.float32)


def partials(count: int) -> int:
    """Return how many partial sums a block of a finishing kernel holds at a time."""
    return min(MOST_PARTIALS, power_of_two(count))


def grid(product: Product, rows: int, k: int) -> tuple[int, int]:
    """Return the number of blocks of rows and of columns."""
    return triton.cdiv(rows, product.rows), triton.cdiv(k, product.columns)


def product_arguments(product: Product) -> dict[str, int]:
    """Return the sizes of a product's blocks as a kernel's arguments."""
    return {
        "BM": product.rows,
        "BN": product.columns,
        "BK": product.sum,
        "num_warps": product.warps,
        "num_stages": product.stages,
    }


def stream_arguments(stream: Stream, k: int) -> dict[str, int]:
    """Return the sizes of the blocks of a product that goes through rows as a kernel's arguments."""
    return {
        "BM": stream.rows,
        "BN": stream.columns,
        "BK": power_of_two(k),
        "AHEAD": stream.stages,
        "num_warps": stream.warps,
    }


def plain_arguments(plain: Plain | Sums, k: int) -> dict[str, int]:
    """Return the sizes of the blocks of a kernel without a product as its arguments."""
    return {"BM": plain.rows, "BN": power_of_two(k), "num_warps": plain.warps}


def sum_arguments(sums: Sums, k: int) -> dict[str, int]:
    """Return the same for a kernel that goes through rows."""
    return {**plain_arguments(sums, k), "AHEAD": sums.stages}
