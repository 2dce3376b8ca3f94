"""Tables on a device, and lists of tensors cut into blocks."""

from __future__ import annotations

import torch

from rkcnn.model.fast.tables import address_table, cut, table

CPU = torch.device("cpu")


def test_a_table_is_made_once() -> None:
    assert table((1, 2), CPU) is table((1, 2), CPU)
    assert table((1, 2), CPU).dtype == torch.int32
    assert address_table(((2**40, 1),), CPU).tolist() == [[2**40, 1]]


def test_blocks_cover_every_tensor() -> None:
    assert cut([5, 2, 4], 4) == [(0, 0, 4), (0, 4, 1), (1, 0, 2), (2, 0, 4)]
