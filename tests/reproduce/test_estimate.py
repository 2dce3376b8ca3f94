"""About how long a table takes."""

from __future__ import annotations

import pytest
import torch

from rkcnn.data.sets import find_set
from rkcnn.record.tables import TABLES
from rkcnn.reproduce.estimate import count_cost, measure_speed, training_flops
from rkcnn.reproduce.worker import Slot


def test_a_run_costs_its_steps_and_its_evaluations() -> None:
    (run,) = TABLES["mnist"].runs(rows="Identity*", seeds=1)
    flops = count_cost(run.network, find_set("mnist")).flops
    assert flops == 7107456
    assert training_flops(run, flops) == flops * 160 * (3 * 468 * 128 + 10_000)
    (smoke,) = TABLES["cifar10"].runs("smoke", rows="Identity*")
    assert training_flops(smoke, 1) == 3 * 40 * 32 + 2_000
    assert training_flops(TABLES["cifar10"].runs(seeds=1)[0], 1) == 300 * (3 * 1563 * 32 + 10_000)


def test_the_speed_is_measured_with_the_cheapest_network() -> None:
    runs = TABLES["mnist"].runs("smoke", rows="RKCNN-I*")
    flops = {run.network: count_cost(run.network, find_set("mnist-mini")).flops for run in runs}
    assert 1e8 < measure_speed(runs, flops, Slot("cpu", 1)) < 1e14


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_timed_without_a_graph_where_the_number_of_steps_depends_on_the_data() -> None:
    runs = TABLES["mnist"].runs("smoke", rows="ODENet-abm*")
    flops = {run.network: count_cost(run.network, find_set("mnist-mini")).flops for run in runs}
    assert 1e8 < measure_speed(runs, flops, Slot("cuda:0", 1)) < 1e14
