"""The matrix product."""

from __future__ import annotations

import pytest
import torch

from rkcnn.bench import product
from rkcnn.bench.product import Product


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_flops_of_a_product(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(product.SIZES, "cpu", 8)
    times = iter([0.0, 9.0, 10.0, 12.0])  # the warm-up takes 9 s, the turn 2
    monkeypatch.setattr("rkcnn.bench.product.time.perf_counter", lambda: next(times))
    assert Product(precision, torch.device("cpu")).take_turn() == 2 * 8**3 * 3 / 2
