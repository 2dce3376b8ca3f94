"""Kernels over lists of tensors, one launch for all of a list: their addresses stand in a table."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather_rounded(TABLE, OUT, R: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """OUT = the tensors that TABLE names, one behind the other, in its precision; their rows of R get zeros up to K.

    TABLE has (address, number of rows, place in OUT, first number there, how many).
    """
    row = TABLE + tl.program_id(0) * 5
    source = tl.load(row).to(tl.pointer_type(tl.float32))
    i = tl.load(row + 3).to(tl.int32) + tl.arange(0, BLOCK)
    inside = i < tl.load(row + 3) + tl.load(row + 4)
    if R == K:
        found = tl.load(source + i, inside, 0.0)
    else:
        known = inside & (i % K < R) & (i // K < tl.load(row + 1))
        found = tl.load(source + (i // K) * R + i % K, known, 0.0)
    tl.store(OUT + tl.load(row + 2) + i, found.to(OUT.dtype.element_ty), inside)


@triton.jit
def update(TABLE, GRADS, LR, momentum, decay, NESTEROV: tl.constexpr, BLOCK: tl.constexpr):
    """SGD's rule for parameters p and their buffers b; `decay` acts on those whose last number in TABLE is not 0.

    TABLE has (address of p, that of b, place in GRADS, how many, 0 or 1).
    """
    row = TABLE + tl.program_id(0) * 5
    P = tl.load(row).to(tl.pointer_type(tl.float32))
    B = tl.load(row + 1).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    inside = i < tl.load(row + 3)
    p = tl.load(P + i, inside, 0.0)
    g = tl.load(GRADS + tl.load(row + 2) + i, inside, 0.0)
    g += tl.where(tl.load(row + 4) != 0, decay, 0.0) * p
    b = momentum * tl.load(B + i, inside, 0.0) + g
    tl.store(B + i, b, inside)
    change = g + momentum * b if NESTEROV else b
    tl.store(P + i, p - tl.load(LR) * change, inside)


@triton.jit
def track(TABLE, MOM, share, USES: tl.constexpr, R: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """Move R running means and variances towards those of the batches, in order, and count the batches.

    TABLE has (address of the means, of the variances, of the count or 0, the rows of MOM, -1 where there is no more).
    """
    row = TABLE + tl.program_id(0) * (3 + USES)
    means = tl.load(row).to(tl.pointer_type(tl.float32))
    variances = tl.load(row + 1).to(tl.pointer_type(tl.float32))
    c = tl.arange(0, BLOCK)
    mean, variance = tl.load(means + c, c < R, 0.0), tl.load(variances + c, c < R, 0.0)
    uses = 0
    for n in tl.static_range(USES):
        slot = tl.load(row + 3 + n)
        moments = MOM + slot * 3 * K + c
        used = (c < R) & (slot >= 0)
        mean += tl.where(used, share * (tl.load(moments, used, 0.0) - mean), 0.0)
        variance += tl.where(used, share * (tl.load(moments + 2 * K, used, 0.0) - variance), 0.0)
        uses += (slot >= 0).to(tl.int32)
    tl.store(means + c, mean, c < R)
    tl.store(variances + c, variance, c < R)
    count = tl.load(row + 2)
    counted = count.to(tl.pointer_type(tl.int64))
    tl.store(counted, tl.load(counted, count != 0, 0) + uses, count != 0)
