"""Kernels of the stem's convolutions: matrix products whose sums run over the taps and channels of a patch.

Images are (N, H, W, C) with pixels in rows, and W is (K, SIDE, SIDE, C). The result has HIGH by WIDE pixels. A sum over
few channels is one block; one over many takes several, of BT numbers each.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.forward_kernels import dot


@triton.jit
def load_patches(X, n, v, u, known, t, HEIGHT, WIDTH, C: tl.constexpr, SIDE: tl.constexpr, SIGN: tl.constexpr):
    """The numbers `t` of patches of the images X, in the order of SIDE by SIDE taps and C channels: a row for each.

    The first tap is the pixel (v, u) of image n, the others lie behind it, or before it if SIGN is -1. Pixels outside
    their image, and patches that are not `known`, are zero.
    """
    tap = t // C
    y, x = v[:, None] + SIGN * (tap // SIDE)[None, :], u[:, None] + SIGN * (tap % SIDE)[None, :]
    inside = (y >= 0) & (y < HEIGHT) & (x >= 0) & (x < WIDTH)
    mask = inside & known[:, None] & (t < SIDE * SIDE * C)[None, :]
    return tl.load(X + ((n[:, None] * HEIGHT + y) * WIDTH + x) * C + (t % C)[None, :], mask, 0.0)


@triton.jit
def load_windows(
    X, rows, last, t, HEIGHT, WIDTH, HIGH, WIDE, C: tl.constexpr, SIDE: tl.constexpr, STRIDE: tl.constexpr,
    PAD: tl.constexpr,
):  # fmt: skip
    """The patches of X that the pixels `rows` of the result are computed from."""
    n, v, u = rows // (HIGH * WIDE), (rows // WIDE) % HIGH, rows % WIDE
    return load_patches(X, n, v * STRIDE - PAD, u * STRIDE - PAD, rows < last, t, HEIGHT, WIDTH, C, SIDE, 1)


@triton.jit
def stem_forward(
    X, W, BIAS, OUT, M, HEIGHT, WIDTH, HIGH, WIDE, C: tl.constexpr, K: tl.constexpr, SIDE: tl.constexpr,
    STRIDE: tl.constexpr, PAD: tl.constexpr, BIASED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BT: tl.constexpr,
):  # fmt: skip
    """OUT = the convolution of the images X, padded with zeros, plus BIAS if it is BIASED."""
    SUM: tl.constexpr = SIDE * SIDE * C
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    low = OUT.dtype.element_ty
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, SUM, BT):
        t = start + tl.arange(0, BT)
        a = load_windows(X, rows, M, t, HEIGHT, WIDTH, HIGH, WIDE, C, SIDE, STRIDE, PAD).to(low)
        w = tl.load(W + cols[None, :] * SUM + t[:, None], (cols < K)[None, :] & (t < SUM)[:, None], 0.0).to(low)
        acc = dot(a, w, acc)
    if BIASED:
        acc += tl.load(BIAS + cols, cols < K, 0.0).to(tl.float32)[None, :]
    tl.store(OUT + rows[:, None] * K + cols[None, :], acc.to(low), (rows < M)[:, None] & (cols < K)[None, :])


@triton.jit
def stem_input(
    G, W, OUT, M, HEIGHT, WIDTH, HIGH, WIDE, C: tl.constexpr, K: tl.constexpr, SIDE: tl.constexpr,
    STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """OUT = the gradient of the images, from G, that of the result.

    A pixel meets every STRIDE-th tap in each direction. Those that meet the same taps are the rows of one of STRIDE by
    STRIDE programs: every STRIDE-th pixel in each direction, M in all, of which the last may lie outside.
    """
    TAPS: tl.constexpr = (SIDE + STRIDE - 1) // STRIDE
    SUM: tl.constexpr = TAPS * TAPS * K
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    down, across = (HEIGHT + STRIDE - 1) // STRIDE, (WIDTH + STRIDE - 1) // STRIDE
    n, v, u = rows // (down * across), (rows // across) % down, rows % across
    top, left = tl.program_id(1) // STRIDE, tl.program_id(1) % STRIDE
    y, x = v * STRIDE + top, u * STRIDE + left
    known = (rows < M) & (y < HEIGHT) & (x < WIDTH)
    v, u = v + (top + PAD) // STRIDE, u + (left + PAD) // STRIDE
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, SUM, BT):
        t = start + tl.arange(0, BT)
        g = load_patches(G, n, v, u, known, t, HIGH, WIDE, K, TAPS, -1)
        tap = t // K
        dy, dx = (top + PAD) % STRIDE + tap // TAPS * STRIDE, (left + PAD) % STRIDE + tap % TAPS * STRIDE
        there = (dy < SIDE) & (dx < SIDE) & (t < SUM)
        place = W + (((t % K) * SIDE + dy) * SIDE + dx)[:, None] * C + cols[None, :]
        acc = dot(g, tl.load(place, there[:, None] & (cols < C)[None, :], 0.0).to(g.dtype), acc)
    place = OUT + ((n * HEIGHT + y) * WIDTH + x)[:, None] * C + cols[None, :]
    tl.store(place, acc.to(OUT.dtype.element_ty), known[:, None] & (cols < C)[None, :])


@triton.jit
def stem_weights(
    G, X, PART, M, HEIGHT, WIDTH, HIGH, WIDE, ROWS, C: tl.constexpr, K: tl.constexpr, SIDE: tl.constexpr,
    STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """PART[split] = the gradient of W over ROWS rows, BT numbers of each output, from G, that of the result."""
    SUM: tl.constexpr = SIDE * SIDE * C
    split = tl.program_id(0)
    cols, t = tl.arange(0, BN), tl.program_id(1) * BT + tl.arange(0, BT)
    acc = tl.zeros((BN, BT), tl.float32)
    last = tl.minimum(split * ROWS + ROWS, M)
    for start in range(split * ROWS, last, BM):
        rows = start + tl.arange(0, BM)
        g = tl.load(G + rows[:, None] * K + cols[None, :], (rows < last)[:, None] & (cols < K)[None, :], 0.0)
        a = load_windows(X, rows, last, t, HEIGHT, WIDTH, HIGH, WIDE, C, SIDE, STRIDE, PAD).to(g.dtype)
        acc = dot(tl.trans(g), a, acc)
    place = PART + split * K * SUM + cols[:, None] * SUM + t[None, :]
    tl.store(place, acc, (cols < K)[:, None] & (t < SUM)[None, :])
