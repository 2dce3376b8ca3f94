"""Sizes of the blocks that the fused kernels work on: fixed by shape, so that training again gives the same bits.

Nothing is tuned while it runs. The values were chosen by measurement on an H200 (docs/gpu.md).
"""

from __future__ import annotations

from typing import NamedTuple

SHARED_MEMORY = 160 * 1024  # bytes that a block of the kernels may take, as on A100, H100 and newer
STAGES = 3  # blocks that Triton loads ahead in a loop that names no other number


class Product(NamedTuple):
    """Blocks of a product: rows and columns of the result, and how much of the sum at a time."""

    rows: int
    columns: int
    sum: int
    warps: int = 4
    stages: int = 3


class Stream(NamedTuple):
    """Blocks of a product whose programs keep the weights and go through many rows; `programs` in all."""

    rows: int
    columns: int
    programs: int
    warps: int = 8
    stages: int = 3


class Split(NamedTuple):
    """Blocks of a weight gradient, whose sum runs over rows: rows at a time, block of the result, programs in all."""

    rows: int
    outputs: int
    inputs: int
    programs: int
    warps: int = 8
    stages: int = 3


class Plain(NamedTuple):
    """Rows of a block of the kernels without a product."""

    rows: int
    warps: int = 4


class Sums(NamedTuple):
    """Blocks of a pass that also sums over rows: rows at a time, and about so many programs in all."""

    rows: int
    programs: int
    warps: int = 8
    stages: int = 1


class Window(NamedTuple):
    """Blocks of a stem's convolution: rows of the result, and how much of the sum over taps and channels at a time.

    Of the weight's gradient, whose sum runs over rows: `split` rows at a time, and about so many programs in all.
    """

    rows: int
    sum: int
    split: int
    programs: int


class Tiles(NamedTuple):
    """The blocks of every kernel for one shape; None leaves a 3x3 convolution to torch, where that is faster."""

    narrow: Product
    conv: Product | None
    conv_back: Product | None
    narrow_back: Stream
    conv_weights: Split | None
    narrow_weights: Split
    sums: Sums
    plain: Plain = Plain(32)
    narrow_by_rows: Stream | None = None  # instead of `narrow` for evaluations that read at most two states


def choose_tiles(rows: int, k: int, size: int = 2) -> Tiles:
    """Return the blocks for activations of so many rows (pixels of all images) and k columns (channels).

    `size` is the number of bytes of an activation: with 4, the blocks are those for 2, cut until they fit.
    """
    tiles = _choose_for_two_bytes(rows, k)
    if size == 2:
        return tiles
    conv, back, split, by_rows = tiles.conv, tiles.conv_back, tiles.conv_weights, tiles.narrow_by_rows
    return tiles._replace(
        narrow=_cut_product(tiles.narrow, size),
        conv=conv and _cut_product(conv, size),
        conv_back=back and _cut_product(back, size),
        narrow_back=_cut_stream(tiles.narrow_back, k, size, kept=1),
        conv_weights=split and _cut_split(split, size),
        narrow_weights=_cut_split(tiles.narrow_weights, size),
        narrow_by_rows=by_rows and _cut_stream(by_rows, k, size, kept=2),
    )


def _cut_product(product: Product, size: int) -> Product:
    """Return blocks of fewer rows, or of less of the sum at a time.

    Beside the stages there is a copy of both factors, as the matrix units want float32 in one layout alone.
    """
    while size * (product.rows + product.columns) * product.sum * (product.stages + 1) > SHARED_MEMORY:
        rows, part = product.rows, product.sum
        product = product._replace(rows=rows // 2) if rows > 128 else product._replace(sum=part // 2)
    large = product.rows * product.columns > 8192  # needs eight warps' registers
    return product._replace(warps=8) if large else product


def _cut_stream(stream: Stream, k: int, size: int, kept: int) -> Stream:
    """Return the same for a product that goes through rows and keeps so many weights: fewer stages, then fewer rows."""
    wide = power_of_two(k)
    room = SHARED_MEMORY // size - kept * wide * stream.columns
    while stream.rows * (wide + stream.columns) * (stream.stages + 1) > room:
        rows, stages = stream.rows, stream.stages
        stream = stream._replace(stages=stages - 1) if stages > 2 else stream._replace(rows=rows // 2)
    return stream


def _cut_split(split: Split, size: int) -> Split:
    """Return the same for a weight gradient, with fewer rows at a time."""
    while size * split.rows * (split.outputs + split.inputs) * (split.stages + 1) > SHARED_MEMORY:
        split = split._replace(rows=split.rows // 2)
    return split


def _choose_for_two_bytes(rows: int, k: int) -> Tiles:
    wide = power_of_two(k)
    half, third = min(64, wide), (32 if 64 < k <= 96 else min(64, wide))  # 96 columns of the sum instead of 128
    split = Split(64, wide, wide, 264, 4)
    stream = Stream(64, wide, 264, 4)
    if wide > 64:  # needs eight warps' registers
        stream = Stream(64, wide, 132, stages=4)
    sums = Sums(16, 2112, 2, 3) if wide > 64 else Sums(64, 264)
    by_rows = None if wide > 64 else Stream(64, wide, 264, 4)
    if rows >= 131072:
        narrow = Product(128, wide, half, 4)
        return Tiles(narrow, None, None, stream, None, split, sums, Plain(32), by_rows)
    if rows >= 49152:
        narrow = Product(256, wide, half, 8)
        return Tiles(narrow, None, None, stream, split, split, sums, Plain(32), by_rows)
    if rows >= 24576:
        product = Product(256, wide, half, 8) if k > 96 else Product(128, wide, third, 4, 4)
        return Tiles(product, product, product, stream, split, split, Sums(64, 264), Plain(32))
    if rows >= 4096:
        narrow = Product(64, wide, wide)
        conv = Product(128, half, wide, 8) if k > 96 else narrow
        few = Split(64, wide, wide, 132)
        return Tiles(narrow, conv, conv, Stream(64, wide, 132), split, few, Sums(64, 264), Plain(64, 8))
    conv = Product(64, half if k > 96 else min(32, wide), wide)
    narrow = Product(32, half, wide)
    few = Split(64, wide, wide, 132)
    return Tiles(narrow, conv, conv, Stream(64, half, 528, 4), split, few, Sums(32, 264), Plain(32, 8))


def choose_window(rows: int, columns: int, total: int, size: int) -> Window:
    """Return the blocks for a convolution with so many rows and columns, in sums of `total` numbers of `size` bytes.

    Few channels are one block. Other blocks for many channels have not been timed (docs/performance.md).
    """
    part = power_of_two(total)
    if total > 64:
        part = 64 if size == 2 else 32
    fits = size * 64 * (power_of_two(columns) + part) * (STAGES + 1) <= SHARED_MEMORY
    split = 64 if fits else 32
    if total <= 64:
        return Window(64, part, split, 132)
    return Window(128 if rows >= 16384 else 32, part, split, 264 if size == 2 else 528)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least the number, and at least 16, as a matrix unit needs."""
    return max(16, 1 << (number - 1).bit_length())


def part_count(block: int, programs: int, rows: int, others: int) -> tuple[int, int]:
    """Return into how many parts the rows are split, and the rows of each, whole blocks of them.

    There are about so many programs in all, `others` for each part.
    """
    parts = max(1, programs // others)
    each = -(-rows // (parts * block)) * block
    return -(-rows // each), each
