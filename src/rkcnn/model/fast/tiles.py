"""Sizes of the blocks that the fused kernels work on: fixed by shape, so that training again gives the same bits.

Nothing is tuned while it runs. The values were chosen by measurement on an H200 (docs/gpu.md).
"""

from __future__ import annotations

from typing import NamedTuple


class Product(NamedTuple):
    """Blocks of a product: rows and columns of the result, and how much of the sum at a time."""

    rows: int
    columns: int
    sum: int
    warps: int = 4
    stages: int = 3


class Split(NamedTuple):
    """Blocks of a weight gradient, whose sum runs over rows: rows at a time, block of the result, programs in all."""

    rows: int
    outputs: int
    inputs: int
    programs: int
    warps: int = 8
    stages: int = 3


class Tiles(NamedTuple):
    """The blocks of every kernel for one shape; `plain_rows` are those of kernels without a product."""

    narrow: Product
    conv: Product
    conv_back: Product
    narrow_back: Product
    conv_weights: Split
    narrow_weights: Split
    plain_rows: int = 32


def choose_tiles(rows: int, k: int) -> Tiles:
    """Return the blocks for activations of so many rows (pixels of all images) and k columns (channels)."""
    wide = min(128, power_of_two(k))
    deep = 32 if 64 < k <= 96 else min(64, power_of_two(k))
    weights = Split(64, wide, wide, 264), Split(64, wide, wide, 264)
    if rows >= 16384:
        product = Product(128, wide, deep, 8, 3)
        return Tiles(product, product, product, product, *weights)
    if rows >= 4096:
        product = Product(64, wide, deep, 4, 4)
        return Tiles(product, product, product, product, *weights, plain_rows=16)
    product = Product(32, min(64, wide), deep, 4, 4)
    return Tiles(product, product, product, product, *weights, plain_rows=8)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least the number, and at least 16, as a matrix unit needs."""
    return max(16, 1 << (number - 1).bit_length())


def part_count(split: Split, rows: int, blocks: int) -> tuple[int, int]:
    """Return into how many parts a weight gradient's sum is split, and the rows of each, given its blocks."""
    parts = max(1, split.programs // blocks)
    each = -(-rows // (parts * split.rows)) * split.rows  # whole blocks of rows
    return -(-rows // each), each
