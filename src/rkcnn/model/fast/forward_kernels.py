"""Kernels of the forward pass of an RKStep.

Activations are (M, K) matrices, a row for each pixel of each image and a column for each channel, of which the first R
are the network's and the others zero; states and 1x1 outputs lie behind each other in one buffer each. Statistics are
float32: each block of rows gives its mean and its sum of squared deviations, and `finish_moments` joins those in a
fixed order, so that a step is the same bit for bit.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def dot(a, b, acc):
    """acc + a b. The factors of float32 are rounded to tf32: in fp32 no kernel of these is launched (choose.py)."""
    return tl.dot(a, b, acc, input_precision="tf32")


@triton.jit
def store_moments(tile, rows, cols, PART, M, K: tl.constexpr, BM: tl.constexpr):
    """Store the mean and the sum of squared deviations of the block's rows, for each column."""
    block = tl.program_id(0)
    count = tl.minimum(M - block * BM, BM).to(tl.float32)
    inside = (rows < M)[:, None]
    mean = tl.sum(tl.where(inside, tile, 0.0), 0) / count
    deviation = tl.where(inside, tile - mean[None, :], 0.0)
    place = PART + block * 2 * K + cols
    tl.store(place, mean, cols < K)
    tl.store(place + K, tl.sum(deviation * deviation, 0), cols < K)


@triton.jit
def add_rows(tile, mask, means, squares, n):
    """Means and sums of squared deviations of every BM-th row, with those of the n-th block of rows."""
    off = tl.where(mask, tile - means, 0.0)
    step = off * (1.0 / n)  # one division for the whole block
    return means + step, squares + off * (off - step)


@triton.jit
def join_rows(means, squares, count, cols, PART, K: tl.constexpr, BM: tl.constexpr):
    """Store the moments of all `count` rows from those of every BM-th."""
    counts = ((count - tl.arange(0, BM) + BM - 1) // BM).to(tl.float32)[:, None]
    mean = tl.sum(counts * means, 0) / count
    off = means - mean[None, :]
    place = PART + tl.program_id(0) * 2 * K + cols
    tl.store(place, mean, cols < K)
    tl.store(place + K, tl.sum(squares + counts * off * off, 0), cols < K)


@triton.jit
def take_moments(
    Y, S, PART, M, ROWS, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, AHEAD: tl.constexpr
):
    """S = Y, which has R columns, and the moments of its parts of ROWS rows.

    Those of every BM-th row are taken first, and joined at the end. AHEAD blocks of rows are loaded at a time.
    """
    cols = tl.arange(0, BN)
    start = tl.program_id(0) * ROWS
    last = tl.minimum(start + ROWS, M)
    means = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, BN), tl.float32)
    n = 0.0
    for top in tl.range(start, last, BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        mask = (rows < last)[:, None] & (cols < R)[None, :]
        tile = tl.load(Y + rows[:, None] * R + cols[None, :], mask, 0.0)
        tl.store(S + rows[:, None] * K + cols[None, :], tile, (rows < last)[:, None] & (cols < K)[None, :])
        n += 1.0
        means, squares = add_rows(tile.to(tl.float32), mask, means, squares, n)
    join_rows(means, squares, last - start, cols, PART, K, BM)


@triton.jit
def finish_moments(
    PART, MOM, WEIGHT, BIAS, SS, BLOCKS, M, eps, R: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
    NORM: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """MOM = (mean, 1 / deviation, unbiased variance) from the moments of blocks of BM rows.

    With NORM also SS = (scale, shift) of the norm that reads them.
    """
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BP, BC), tl.float32)
    for start in range(0, BLOCKS, BP):
        p = start + tl.arange(0, BP)
        mask = (p < BLOCKS)[:, None] & (c < K)[None, :]
        count = tl.maximum(tl.minimum(M - p * BM, BM), 0).to(tl.float32)[:, None]
        total += count * tl.load(PART + p[:, None] * 2 * K + c[None, :], mask, 0.0)
    mean = tl.sum(total, 0) / M
    total = tl.zeros((BP, BC), tl.float32)
    for start in range(0, BLOCKS, BP):
        p = start + tl.arange(0, BP)
        mask = (p < BLOCKS)[:, None] & (c < K)[None, :]
        count = tl.maximum(tl.minimum(M - p * BM, BM), 0).to(tl.float32)[:, None]
        place = PART + p[:, None] * 2 * K + c[None, :]
        off = tl.load(place, mask, 0.0) - mean[None, :]
        total += tl.where(mask, tl.load(place + K, mask, 0.0) + count * off * off, 0.0)
    squares = tl.sum(total, 0)
    rstd = 1.0 / tl.sqrt(squares / M + eps)
    tl.store(MOM + c, mean, c < K)
    tl.store(MOM + K + c, rstd, c < K)
    tl.store(MOM + 2 * K + c, squares / (M - 1), c < K)
    if NORM:
        scale = tl.load(WEIGHT + c, c < R, 0.0) * rstd
        tl.store(SS + c, scale, c < K)
        tl.store(SS + K + c, tl.load(BIAS + c, c < R, 0.0) - mean * scale, c < K)


@triton.jit
def find_norm(MOM, WEIGHT, BIAS, SS, slot, position, j, c, first, R: tl.constexpr, K: tl.constexpr):
    """Scale and shift of norm1 for the state in a slot, the j-th input; the `first` program stores them for later."""
    moments = MOM + slot * 3 * K + c
    scale = tl.load(WEIGHT + j * R + c, c < R, 0.0) * tl.load(moments + K, c < K, 0.0)
    shift = tl.load(BIAS + j * R + c, c < R, 0.0) - tl.load(moments, c < K, 0.0) * scale
    tl.store(SS + position * 2 * K + c, scale, (c < K) & first)
    tl.store(SS + position * 2 * K + K + c, shift, (c < K) & first)
    return scale, shift


@triton.jit
def normalise(X, rows, c, scale, shift, M, K: tl.constexpr):
    """relu(X scale + shift) of these rows and columns."""
    x = tl.load(X + rows[:, None] * K + c[None, :], (rows < M)[:, None] & (c < K)[None, :], 0.0)
    return tl.maximum(x.to(tl.float32) * scale[None, :] + shift[None, :], 0.0).to(x.dtype)


@triton.jit
def weight_mask(cols, c, K: tl.constexpr):
    """Which weights of these outputs and inputs there are."""
    return (cols < K)[None, :] & (c < K)[:, None]


@triton.jit(do_not_specialize=["READS", "POSITIONS"])
def narrow_forward(
    S, MOM, WEIGHT, BIAS, SS, W, Z, PART, M, READS, POSITIONS, N: tl.constexpr, R: tl.constexpr,
    K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Z = relu(norm1(states)) W^T for the N states that READS names, and the moments of Z.

    Their concatenation is not stored. The first block stores the scale and shift of each state, at its position, for
    the backward pass.
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first = (tl.program_id(0) == 0) & (tl.program_id(1) == 0)
    KB: tl.constexpr = (K + BK - 1) // BK
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(N * KB):
        j = i // KB
        c = (i % KB) * BK + tl.arange(0, BK)
        slot = (READS >> (4 * j)) & 15
        position = (POSITIONS >> (8 * j)) & 255
        scale, shift = find_norm(MOM, WEIGHT, BIAS, SS, slot, position, j, c, first, R, K)
        a = normalise(S + slot.to(tl.int64) * M * K, rows, c, scale, shift, M, K)
        acc = dot(a, tl.load(W + cols[None, :] * (N * K) + j * K + c[:, None], weight_mask(cols, c, K), 0.0), acc)
    z = acc.to(Z.dtype.element_ty)
    tl.store(Z + rows[:, None] * K + cols[None, :], z, (rows < M)[:, None] & (cols < K)[None, :])
    store_moments(z.to(tl.float32), rows, cols, PART, M, K, BM)


@triton.jit(do_not_specialize=["READS", "POSITIONS"])
def narrow_forward_by_rows(
    S, MOM, WEIGHT, BIAS, SS, W, Z, PART, M, ROWS, READS, POSITIONS, N: tl.constexpr, R: tl.constexpr,
    K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """The same as `narrow_forward` for at most two states: a program keeps its part of W and goes through ROWS rows.

    BK covers all K columns of a state. AHEAD blocks of rows are loaded at a time.
    """
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    c = tl.arange(0, BK)
    first = (tl.program_id(0) == 0) & (tl.program_id(1) == 0)
    slot, position = READS & 15, POSITIONS & 255
    scale, shift = find_norm(MOM, WEIGHT, BIAS, SS, slot, position, 0, c, first, R, K)
    w = tl.load(W + cols[None, :] * (N * K) + c[:, None], weight_mask(cols, c, K), 0.0)
    state = S + slot.to(tl.int64) * M * K
    if N == 2:
        other, position = (READS >> 4) & 15, (POSITIONS >> 8) & 255
        scale2, shift2 = find_norm(MOM, WEIGHT, BIAS, SS, other, position, 1, c, first, R, K)
        w2 = tl.load(W + cols[None, :] * (N * K) + K + c[:, None], weight_mask(cols, c, K), 0.0)
        state2 = S + other.to(tl.int64) * M * K
    start = tl.program_id(0) * ROWS
    last = tl.minimum(start + ROWS, M)
    means = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, BN), tl.float32)
    n = 0.0
    for top in tl.range(start, last, BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        acc = dot(normalise(state, rows, c, scale, shift, last, K), w, tl.zeros((BM, BN), tl.float32))
        if N == 2:
            acc = dot(normalise(state2, rows, c, scale2, shift2, last, K), w2, acc)
        z = acc.to(Z.dtype.element_ty)
        tl.store(Z + rows[:, None] * K + cols[None, :], z, (rows < last)[:, None] & (cols < K)[None, :])
        n += 1.0
        means, squares = add_rows(z.to(tl.float32), (rows < last)[:, None], means, squares, n)
    join_rows(means, squares, last - start, cols, PART, K, BM)


@triton.jit
def apply_norm(Z, SS, A, M, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A = relu(Z scale + shift), for each evaluation."""
    evaluation = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < K)[None, :]
    place = evaluation * M * K + rows[:, None] * K + cols[None, :]
    scale = tl.load(SS + evaluation * 2 * K + cols, cols < K, 0.0)[None, :]
    shift = tl.load(SS + evaluation * 2 * K + K + cols, cols < K, 0.0)[None, :]
    z = tl.load(Z + place, mask, 0.0)
    tl.store(A + place, tl.maximum(z.to(tl.float32) * scale + shift, 0.0).to(z.dtype), mask)


@triton.jit
def neighbours(rows, dy, dx, HEIGHT, WIDTH):
    """The rows of the pixels that lie (dy, dx) beside those of `rows`, and which of them are inside their image."""
    v, u = (rows // WIDTH) % HEIGHT + dy, rows % WIDTH + dx
    return rows + dy * WIDTH + dx, (v >= 0) & (v < HEIGHT) & (u >= 0) & (u < WIDTH)


@triton.jit
def convolve(
    A, W, rows, cols, M, HEIGHT, WIDTH, K: tl.constexpr, SIDE: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The block of the 3x3 convolution of A, padded with zeros. W is (K, 3, 3, K).

    The weight of input c for output o is at o OUT + c IN. SIDE is 1, or -1 for the transposed convolution.
    """
    KB: tl.constexpr = (K + BK - 1) // BK
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(9 * KB):
        tap = i // KB
        c = (i % KB) * BK + tl.arange(0, BK)
        beside, inside = neighbours(rows, SIDE * (tap // 3 - 1), SIDE * (tap % 3 - 1), HEIGHT, WIDTH)
        mask = (inside & (rows < M))[:, None] & (c < K)[None, :]
        a = tl.load(A + beside[:, None] * K + c[None, :], mask, 0.0)
        place = W + cols[None, :] * OUT + tap * K + c[:, None] * IN
        acc = dot(a, tl.load(place, (cols < K)[None, :] & (c < K)[:, None], 0.0), acc)
    return acc


@triton.jit
def conv_forward(
    A, W, OUT, PART, M, HEIGHT, WIDTH, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """OUT = the 3x3 convolution of A, padded with zeros, and the moments of OUT."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = convolve(A, W, rows, cols, M, HEIGHT, WIDTH, K, 1, 9 * K, 1, BM, BN, BK)
    out = acc.to(OUT.dtype.element_ty)
    tl.store(OUT + rows[:, None] * K + cols[None, :], out, (rows < M)[:, None] & (cols < K)[None, :])
    store_moments(out.to(tl.float32), rows, cols, PART, M, K, BM)


@triton.jit
def add_increments(Y, E, COUNT: tl.constexpr, OUT, SIZE, R: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """OUT = Y + the COUNT states from E on, in float32, R columns of it; SIZE is that of a state."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(Y + i, i < SIZE, 0.0).to(tl.float32)
    for _ in tl.static_range(COUNT):
        total += tl.load(E + i, i < SIZE, 0.0).to(tl.float32)
        E += SIZE
    if R == K:
        tl.store(OUT + i, total.to(OUT.dtype.element_ty), i < SIZE)
    else:
        tl.store(OUT + (i // K) * R + i % K, total.to(OUT.dtype.element_ty), (i < SIZE) & (i % K < R))
