"""Kernels of the gradients of an RKStep's weights: those of all its stages in one launch, split over the rows."""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.forward_kernels import dot, neighbours


@triton.jit
def conv_weights(
    G, GRADIENT_OF, A, PART, M, HEIGHT, WIDTH, ROWS, SPLITS, K: tl.constexpr,
    BM: tl.constexpr, BO: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """PART[evaluation, split] = G^T A, shifted by a tap, over ROWS rows: (K, 9, K) numbers.

    GRADIENT_OF names the slot of G with the gradient of each evaluation's result.
    """
    TILES: tl.constexpr = ((K + BO - 1) // BO) * ((K + BI - 1) // BI)
    tap, tile = tl.program_id(0) // TILES, tl.program_id(0) % TILES
    split, evaluation = tl.program_id(1), tl.program_id(2).to(tl.int64)
    out = (tile // ((K + BI - 1) // BI)) * BO + tl.arange(0, BO)
    c = (tile % ((K + BI - 1) // BI)) * BI + tl.arange(0, BI)
    gradient = G + tl.load(GRADIENT_OF + evaluation).to(tl.int64) * M * K
    normalised = A + evaluation * M * K
    acc = tl.zeros((BO, BI), tl.float32)
    last = tl.minimum(split * ROWS + ROWS, M)
    for start in range(split * ROWS, last, BM):
        rows = start + tl.arange(0, BM)
        beside, inside = neighbours(rows, tap // 3 - 1, tap % 3 - 1, HEIGHT, WIDTH)
        g = tl.load(gradient + rows[:, None] * K + out[None, :], (rows < last)[:, None] & (out < K)[None, :], 0.0)
        mask = (inside & (rows < last))[:, None] & (c < K)[None, :]
        a = tl.load(normalised + beside[:, None] * K + c[None, :], mask, 0.0)
        acc = dot(tl.trans(g), a, acc)
    place = PART + (evaluation * SPLITS + split) * 9 * K * K + out[:, None] * (9 * K) + tap * K + c[None, :]
    tl.store(place, acc, (out < K)[:, None] & (c < K)[None, :])


@triton.jit
def narrow_weights(
    D, S, SS, EVALUATION_AND_SLOT, PART, M, ROWS, SPLITS, K: tl.constexpr,
    BM: tl.constexpr, BO: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """PART[pair, split] = D^T relu(state scale + shift) over ROWS rows: (K, K) numbers."""
    pair, split = tl.program_id(0).to(tl.int64), tl.program_id(1)
    out = (tl.program_id(2) // ((K + BI - 1) // BI)) * BO + tl.arange(0, BO)
    c = (tl.program_id(2) % ((K + BI - 1) // BI)) * BI + tl.arange(0, BI)
    gradient = D + tl.load(EVALUATION_AND_SLOT + 2 * pair).to(tl.int64) * M * K
    state = S + tl.load(EVALUATION_AND_SLOT + 2 * pair + 1).to(tl.int64) * M * K
    scale = tl.load(SS + pair * 2 * K + c, c < K, 0.0)[None, :]
    shift = tl.load(SS + pair * 2 * K + K + c, c < K, 0.0)[None, :]
    acc = tl.zeros((BO, BI), tl.float32)
    last = tl.minimum(split * ROWS + ROWS, M)
    for start in range(split * ROWS, last, BM):
        rows = start + tl.arange(0, BM)
        inside = (rows < last)[:, None]
        d = tl.load(gradient + rows[:, None] * K + out[None, :], inside & (out < K)[None, :], 0.0)
        x = tl.load(state + rows[:, None] * K + c[None, :], inside & (c < K)[None, :], 0.0)
        a = tl.maximum(x.to(tl.float32) * scale + shift, 0.0).to(x.dtype)
        acc = dot(tl.trans(d), a, acc)
    place = PART + (pair * SPLITS + split) * K * K + out[:, None] * K + c[None, :]
    tl.store(place, acc, (out < K)[:, None] & (c < K)[None, :])


@triton.jit
def add_splits(
    PART, GRADS, PLACES, SPLITS, SIZE, OUTPUTS, TAPS: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
    UNROLLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """GRADS = the sum of each item's SPLITS parts of SIZE numbers, added in order, UNROLLED loaded at a time.

    Parts have TAPS times K numbers for each output, of which the first R of the first OUTPUTS have a place:
    PLACES are the start, and how many numbers lie there from one output to the next.
    """
    item = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = PART + item * SPLITS * SIZE + i
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, SPLITS, UNROLLED):
        for n in tl.static_range(UNROLLED):
            split = first + n
            total += tl.load(part + split * SIZE, (i < SIZE) & (split < SPLITS), 0.0)
    start, length = tl.load(PLACES + 2 * item), tl.load(PLACES + 2 * item + 1)
    out, tap, c = i // (TAPS * K), (i // K) % TAPS, i % K
    tl.store(GRADS + start + out * length + tap * R + c, total, (i < SIZE) & (out < OUTPUTS) & (c < R))
