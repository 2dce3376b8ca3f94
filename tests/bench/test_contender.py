"""One contender: its turn, and the precision of its turn alone."""

from __future__ import annotations

import pytest
import torch

from rkcnn.bench.contender import TORCHS_OWN, Contender, count_flops, create_network, image_size, matrix_units
from rkcnn.model.cost import cost
from rkcnn.record.bench import Measurement


def test_a_turn_is_the_time_of_one_step_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 22.0])
    monkeypatch.setattr("rkcnn.bench.contender.time.perf_counter", lambda: next(times))
    taken: list[int] = []
    measurement = Measurement("training step", "x", 8, "rkcnn", "eager", "fp32", at_once=2)
    contender = Contender(measurement, torch.device("cpu"), taken.append, "fp32")
    assert contender.take_turn(3) == 2.0
    assert taken == [3]
    assert contender.count_kernels() is None  # on a CPU


@pytest.mark.parametrize(
    ("precision", "products", "convolutions", "benchmark"),
    [("fp32", False, False, False), ("tf32", True, True, False), (TORCHS_OWN, False, True, True)],
)
def test_matrix_units_are_set_for_the_turn(precision: str, products: bool, convolutions: bool, benchmark: bool) -> None:
    def settings() -> tuple[bool, bool, bool]:
        cudnn = torch.backends.cudnn
        return torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark

    before = settings()
    with matrix_units(precision):
        assert settings() == (products, convolutions, benchmark)
    assert settings() == before


def test_images_and_flops() -> None:
    small, large = create_network("ResNet@k=4"), create_network("ResNet@k=4_4")
    assert (small.channels, image_size(small)) == (1, 28)
    assert (large.channels, image_size(large)) == (3, 32)
    flops = cost(small).flops
    assert count_flops(small, 8, training=True) == 24 * flops
    assert count_flops(small, 8, training=False) == 8 * flops
    assert count_flops(create_network("RKNet-radau3@k=4"), 8, training=True) is None


def test_the_channels_are_those_that_a_network_is_for() -> None:
    assert [create_network(name).channels for name in ("ResNet@k=4", "ResNet@k=4_4", "RKNet-64")] == [1, 3, 1]
