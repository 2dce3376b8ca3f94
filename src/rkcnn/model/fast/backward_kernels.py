"""Kernels of the backward pass of an RKStep; what was normalised is computed again and never stored.

With dh the gradient of a norm's output where its ReLU passes, and x its input, the norm's own gradient is
c0 dh + c1 x + c2: three numbers a channel, from the sums of dh and dh x, which `finish_sums` joins in a fixed order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.forward_kernels import convolve, dot


@triton.jit
def store_sums(first, second, cols, PART, K: tl.constexpr):
    """Store the block's sums of dh and of dh x, for each column."""
    place = PART + tl.program_id(0) * 2 * K + cols
    tl.store(place, first, cols < K)
    tl.store(place + K, second, cols < K)


@triton.jit(do_not_specialize=["READS", "POSITIONS", "WEIGHT_AT", "BIAS_AT"])
def finish_sums(
    PART, MOM, SS, COEF, GRADS, BLOCKS, M, READS, POSITIONS, WEIGHT_AT, BIAS_AT, R: tl.constexpr, K: tl.constexpr,
    BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """COEF = (c0, c1, c2) of a norm's backward pass, and the gradients of its weight and bias."""
    j = tl.program_id(1)
    slot, position = (READS >> (4 * j)) & 15, (POSITIONS >> (8 * j)) & 255
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    first = tl.zeros((BP, BC), tl.float32)
    second = tl.zeros((BP, BC), tl.float32)
    for start in range(0, BLOCKS, BP):
        p = start + tl.arange(0, BP)
        mask = (p < BLOCKS)[:, None] & (c < K)[None, :]
        place = PART + (j * BLOCKS + p)[:, None] * 2 * K + c[None, :]
        first += tl.load(place, mask, 0.0)
        second += tl.load(place + K, mask, 0.0)
    mean = tl.load(MOM + slot * 3 * K + c, c < K, 0.0)
    rstd = tl.load(MOM + slot * 3 * K + K + c, c < K, 0.0)
    bias = tl.sum(first, 0)
    weight = (tl.sum(second, 0) - mean * bias) * rstd
    c0 = tl.load(SS + position * 2 * K + c, c < K, 0.0)
    c1 = -c0 * rstd * weight / M
    coefficients = COEF + position * 3 * K + c
    tl.store(coefficients, c0, c < K)
    tl.store(coefficients + K, c1, c < K)
    tl.store(coefficients + 2 * K, -c0 * bias / M - c1 * mean, c < K)
    tl.store(GRADS + WEIGHT_AT + j * R + c, weight, c < R)
    tl.store(GRADS + BIAS_AT + j * R + c, bias, c < R)


@triton.jit
def mask_tile(g, rows, cols, Z, SS, DH, M, K: tl.constexpr):
    """DH = g, the gradient of norm2's output, where its ReLU passes, else 0; returns DH and Z of the block."""
    mask = (rows < M)[:, None] & (cols < K)[None, :]
    place = rows[:, None] * K + cols[None, :]
    z = tl.load(Z + place, mask, 0.0).to(tl.float32)
    scale, shift = tl.load(SS + cols, cols < K, 0.0), tl.load(SS + K + cols, cols < K, 0.0)
    dh = tl.where(mask & (z * scale[None, :] + shift[None, :] > 0), g, 0.0).to(DH.dtype.element_ty)
    tl.store(DH + place, dh, mask)
    return dh.to(tl.float32), z


@triton.jit
def conv_backward(
    G, W, Z, SS, DH, PART, M, HEIGHT, WIDTH, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """DH = the gradient of norm2's output where its ReLU passes, from G, that of the 3x3's output; and its sums."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = convolve(G, W, rows, cols, M, HEIGHT, WIDTH, K, -1, 1, 9 * K, BM, BN, BK)
    HALF: tl.constexpr = BN // 2  # by halves, as the block, Z and DH at once do not fit the registers
    left, right = acc.reshape(BM, 2, HALF).permute(0, 2, 1).split()
    cols = tl.program_id(1) * BN + tl.arange(0, HALF)
    dh, z = mask_tile(left, rows, cols, Z, SS, DH, M, K)
    store_sums(tl.sum(dh, 0), tl.sum(dh * z, 0), cols, PART, K)
    dh, z = mask_tile(right, rows, cols + HALF, Z, SS, DH, M, K)
    store_sums(tl.sum(dh, 0), tl.sum(dh * z, 0), cols + HALF, PART, K)


@triton.jit
def mask_with_sums(
    G, Z, SS, DH, PART, M, ROWS, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, AHEAD: tl.constexpr
):
    """DH = G, the gradient of norm2's output, where its ReLU passes, else 0; and its sums over ROWS rows."""
    cols = tl.arange(0, BN)
    first = tl.zeros((BM, BN), tl.float32)
    second = tl.zeros((BM, BN), tl.float32)
    start = tl.program_id(0) * ROWS
    for top in tl.range(start, tl.minimum(start + ROWS, M), BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < M)[:, None] & (cols < K)[None, :]
        g = tl.load(G + rows[:, None] * K + cols[None, :], mask, 0.0)
        dh, z = mask_tile(g, rows, cols, Z, SS, DH, M, K)
        first += dh
        second += dh * z
    store_sums(tl.sum(first, 0), tl.sum(second, 0), cols, PART, K)


@triton.jit
def add_norm(D, Z, COEF, M, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """D, the gradient of norm2's output where its ReLU passes, becomes that of its input Z."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < K)[None, :]
    place = rows[:, None] * K + cols[None, :]
    c0 = tl.load(COEF + cols, cols < K, 0.0)[None, :]
    c1 = tl.load(COEF + K + cols, cols < K, 0.0)[None, :]
    c2 = tl.load(COEF + 2 * K + cols, cols < K, 0.0)[None, :]
    d, z = tl.load(D + place, mask, 0.0), tl.load(Z + place, mask, 0.0)
    tl.store(D + place, (c0 * d.to(tl.float32) + (c1 * z.to(tl.float32) + c2)).to(d.dtype), mask)


@triton.jit(do_not_specialize=["READS", "POSITIONS"])
def narrow_backward(
    D, W, S, SS, DH, PART, M, ROWS, PARTS, READS, POSITIONS, N: tl.constexpr, K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """DH = the gradient of norm1's output where its ReLU passes, for each of the N states read; and its sums.

    D is the gradient of the 1x1's output. A program keeps its part of W and goes through ROWS rows; BK covers all K
    columns of D.
    """
    NB: tl.constexpr = (K + BN - 1) // BN
    j = tl.program_id(1) // NB
    slot = ((READS >> (4 * j)) & 15).to(tl.int64)
    position = ((POSITIONS >> (8 * j)) & 255).to(tl.int64)
    cols = (tl.program_id(1) % NB) * BN + tl.arange(0, BN)
    c = tl.arange(0, BK)
    w = tl.load(W + c[:, None] * (N * K) + j * K + cols[None, :], (c < K)[:, None] & (cols < K)[None, :], 0.0)
    scale = tl.load(SS + position * 2 * K + cols, cols < K, 0.0)[None, :]
    shift = tl.load(SS + position * 2 * K + K + cols, cols < K, 0.0)[None, :]
    states, results = S + slot * M * K, DH + position * M * K
    first = tl.zeros((BM, BN), tl.float32)  # summed over rows at the end alone: that crosses warps
    second = tl.zeros((BM, BN), tl.float32)
    start = tl.program_id(0) * ROWS
    for top in tl.range(start, tl.minimum(start + ROWS, M), BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < M)[:, None] & (cols < K)[None, :]
        place = rows[:, None] * K + cols[None, :]
        d = tl.load(D + rows[:, None] * K + c[None, :], (rows < M)[:, None] & (c < K)[None, :], 0.0)
        x = tl.load(states + place, mask, 0.0).to(tl.float32)
        acc = dot(d, w, tl.zeros((BM, BN), tl.float32))
        dh = tl.where(mask & (x * scale + shift > 0), acc, 0.0).to(DH.dtype.element_ty)
        tl.store(results + place, dh, mask)
        first += dh.to(tl.float32)
        second += dh.to(tl.float32) * x
    store_sums(tl.sum(first, 0), tl.sum(second, 0), cols, PART + j * PARTS * 2 * K, K)


@triton.jit(do_not_specialize=["COUNT"])
def add_readers(
    G, S, DH, COEF, OUT, M, COUNT, R: tl.constexpr, K: tl.constexpr, EXTERNAL: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """OUT = the gradient of state S: that of the step's result, if it is part of it, and of the COUNT that read it.

    OUT has R columns.
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < K)[None, :]
    place = rows[:, None] * K + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    if EXTERNAL:
        total = tl.load(G + place, mask, 0.0).to(tl.float32)
    x = tl.load(S + place, mask, 0.0).to(tl.float32)
    for n in range(COUNT):
        dh = tl.load(DH + place, mask, 0.0).to(tl.float32)
        coefficients = COEF + n * 3 * K + cols
        c0 = tl.load(coefficients, cols < K, 0.0)[None, :]
        c1 = tl.load(coefficients + K, cols < K, 0.0)[None, :]
        c2 = tl.load(coefficients + 2 * K, cols < K, 0.0)[None, :]
        total += c0 * dh + (c1 * x + c2)
        DH += M * K
    tl.store(OUT + rows[:, None] * R + cols[None, :], total.to(OUT.dtype.element_ty), mask & (cols < R)[None, :])
