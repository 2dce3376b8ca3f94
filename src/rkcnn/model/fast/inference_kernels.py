"""The kernel of the first half of a stage, for inference."""

from __future__ import annotations

import triton
import triton.language as tl

from rkcnn.model.fast.forward_kernels import dot, normalise, weight_mask


@triton.jit
def narrow_inference(
    X, X2, SCALE, SHIFT, W, BIAS, OUT, M, ROWS, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """OUT = relu(relu({X, X2} SCALE + SHIFT) W^T + BIAS); without X2 if N is 1.

    A program keeps its part of W and goes through ROWS rows, AHEAD blocks of which are loaded at a time.
    """
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    c = tl.arange(0, BK)
    inside = weight_mask(cols, c, K)
    place = W + cols[None, :] * (N * K) + c[:, None]
    w, scale, shift = tl.load(place, inside, 0.0), tl.load(SCALE + c, c < K, 0.0), tl.load(SHIFT + c, c < K, 0.0)
    if N == 2:
        w2 = tl.load(place + K, inside, 0.0)
        scale2, shift2 = tl.load(SCALE + K + c, c < K, 0.0), tl.load(SHIFT + K + c, c < K, 0.0)
    bias = tl.load(BIAS + cols, cols < K, 0.0).to(tl.float32)[None, :]
    start = tl.program_id(0) * ROWS
    last = tl.minimum(start + ROWS, M)
    for top in tl.range(start, last, BM, num_stages=AHEAD):
        rows = top + tl.arange(0, BM)
        acc = dot(normalise(X, rows, c, scale, shift, last, K), w, tl.zeros((BM, BN), tl.float32))
        if N == 2:
            acc = dot(normalise(X2, rows, c, scale2, shift2, last, K), w2, acc)
        out = tl.maximum(acc + bias, 0.0).to(OUT.dtype.element_ty)
        tl.store(OUT + rows[:, None] * K + cols[None, :], out, (rows < last)[:, None] & (cols < K)[None, :])
