"""Kernels of f of RKNN, RK-Net and ODE-Net, beside those of an RKStep.

Activations are (M, K) matrices, as in `forward_kernels`: a row for each pixel of each image, a column for each channel,
of which the first R are the network's and the others zero.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.backward_kernels import store_sums
from rkcnn.model.fast.forward_kernels import add_rows, join_rows


@triton.jit
def take_centred(
    Y, CENTRE, S, PART, M, ROWS, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """S = Y - CENTRE, where Y has R columns, and the moments of its parts of ROWS rows.

    AHEAD blocks of rows are loaded at a time.
    """
    cols = tl.arange(0, BN)
    centre = tl.load(CENTRE + cols, cols < K, 0.0)[None, :]
    start = tl.program_id(0) * ROWS
    last = tl.minimum(start + ROWS, M)
    means = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, BN), tl.float32)
    n = 0.0
    for top in tl.range(start, last, BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < last)[:, None] & (cols < K)[None, :]
        given = tl.load(Y + rows[:, None] * R + cols[None, :], mask & (cols < R)[None, :], 0.0).to(tl.float32)
        tile = given - centre
        tl.store(S + rows[:, None] * K + cols[None, :], tile.to(S.dtype.element_ty), mask)
        n += 1.0
        means, squares = add_rows(tile, mask, means, squares, n)
    join_rows(means, squares, last - start, cols, PART, K, BM)


@triton.jit
def add_constant(
    Z, CONSTANT, PART, M, ROWS, PIXELS, K: tl.constexpr, ADDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """Z += CONSTANT, which is the same for every image of PIXELS rows, and the moments of the parts of ROWS rows.

    Without ADDS there is no constant, and Z stays. AHEAD blocks of rows are loaded at a time.
    """
    cols = tl.arange(0, BN)
    start = tl.program_id(0) * ROWS
    last = tl.minimum(start + ROWS, M)
    means = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, BN), tl.float32)
    n = 0.0
    for top in tl.range(start, last, BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < last)[:, None] & (cols < K)[None, :]
        place = Z + rows[:, None] * K + cols[None, :]
        tile = tl.load(place, mask, 0.0)
        if ADDS:
            constant = tl.load(CONSTANT + (rows % PIXELS)[:, None] * K + cols[None, :], mask, 0.0)
            tile = (tile.to(tl.float32) + constant).to(tile.dtype)
            tl.store(place, tile, mask)
        n += 1.0
        means, squares = add_rows(tile.to(tl.float32), mask, means, squares, n)
    join_rows(means, squares, last - start, cols, PART, K, BM)


@triton.jit
def scale_and_shift(Z, SS, OUT, M, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """OUT = Z scale + shift, R columns of it."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < R)[None, :]
    scale, shift = tl.load(SS + cols, cols < K, 0.0)[None, :], tl.load(SS + K + cols, cols < K, 0.0)[None, :]
    z = tl.load(Z + rows[:, None] * K + cols[None, :], mask, 0.0).to(tl.float32)
    tl.store(OUT + rows[:, None] * R + cols[None, :], (z * scale + shift).to(OUT.dtype.element_ty), mask)


@triton.jit
def sum_gradient(
    G, Z, PART, M, ROWS, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, AHEAD: tl.constexpr
):
    """Sums of G, the gradient of a norm's output, which has R columns, and of G Z over the parts of ROWS rows."""
    cols = tl.arange(0, BN)
    first = tl.zeros((BM, BN), tl.float32)
    second = tl.zeros((BM, BN), tl.float32)
    start = tl.program_id(0) * ROWS
    for top in tl.range(start, tl.minimum(start + ROWS, M), BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < M)[:, None] & (cols < R)[None, :]
        g = tl.load(G + rows[:, None] * R + cols[None, :], mask, 0.0).to(tl.float32)
        first += g
        second += g * tl.load(Z + rows[:, None] * K + cols[None, :], mask, 0.0).to(tl.float32)
    store_sums(tl.sum(first, 0), tl.sum(second, 0), cols, PART, K)


@triton.jit
def add_norm_between(
    G, Z, COEF, OUT, M, A: tl.constexpr, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """OUT = c0 G + c1 Z + c2, the gradient of a norm's input; G has A columns, Z has K and OUT has R."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    inside = (rows < M)[:, None]
    c0 = tl.load(COEF + cols, cols < K, 0.0)[None, :]
    c1 = tl.load(COEF + K + cols, cols < K, 0.0)[None, :]
    c2 = tl.load(COEF + 2 * K + cols, cols < K, 0.0)[None, :]
    g = tl.load(G + rows[:, None] * A + cols[None, :], inside & (cols < A)[None, :], 0.0).to(tl.float32)
    z = tl.load(Z + rows[:, None] * K + cols[None, :], inside & (cols < K)[None, :], 0.0).to(tl.float32)
    out = (c0 * g + (c1 * z + c2)).to(OUT.dtype.element_ty)
    tl.store(OUT + rows[:, None] * R + cols[None, :], out, inside & (cols < R)[None, :])
