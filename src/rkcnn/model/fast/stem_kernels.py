"""Kernels of a 3x3 convolution of images, which have few channels: the sum over taps and channels is one block."""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.forward_kernels import dot, neighbours


@triton.jit
def load_patches(X, rows, last, HEIGHT, WIDTH, C: tl.constexpr, BT: tl.constexpr):
    """The 3x3 patches around the pixels `rows` of the images X, (N, H, W, C): a row of 9 C numbers for each."""
    t = tl.arange(0, BT)
    tap = t // C
    beside, inside = neighbours(rows[:, None], (tap // 3 - 1)[None, :], (tap % 3 - 1)[None, :], HEIGHT, WIDTH)
    mask = inside & (rows < last)[:, None] & (t < 9 * C)[None, :]
    return tl.load(X + beside * C + (t % C)[None, :], mask, 0.0)


@triton.jit
def stem_forward(
    X, W, OUT, M, HEIGHT, WIDTH, C: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BT: tl.constexpr,
):  # fmt: skip
    """OUT = the 3x3 convolution of the images X, padded with zeros; W is (K, 3, 3, C)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols, t = tl.arange(0, BN), tl.arange(0, BT)
    low = OUT.dtype.element_ty
    a = load_patches(X, rows, M, HEIGHT, WIDTH, C, BT).to(low)
    mask = (cols < K)[None, :] & (t < 9 * C)[:, None]
    w = tl.load(W + cols[None, :] * (9 * C) + t[:, None], mask, 0.0).to(low)
    out = dot(a, w, tl.zeros((BM, BN), tl.float32)).to(low)
    tl.store(OUT + rows[:, None] * K + cols[None, :], out, (rows < M)[:, None] & (cols < K)[None, :])


@triton.jit
def stem_weights(
    G, X, PART, M, HEIGHT, WIDTH, ROWS, C: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BT: tl.constexpr,
):  # fmt: skip
    """PART[split] = the gradient of W over ROWS rows, from G, that of the result."""
    split = tl.program_id(0)
    cols, t = tl.arange(0, BN), tl.arange(0, BT)
    acc = tl.zeros((BN, BT), tl.float32)
    last = tl.minimum(split * ROWS + ROWS, M)
    for start in range(split * ROWS, last, BM):
        rows = start + tl.arange(0, BM)
        g = tl.load(G + rows[:, None] * K + cols[None, :], (rows < last)[:, None] & (cols < K)[None, :], 0.0)
        a = load_patches(X, rows, last, HEIGHT, WIDTH, C, BT).to(g.dtype)
        acc = dot(tl.trans(g), a, acc)
    place = PART + split * K * 9 * C + cols[:, None] * (9 * C) + t[None, :]
    tl.store(place, acc, (cols < K)[:, None] & (t < 9 * C)[None, :])
