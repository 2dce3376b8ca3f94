"""A worker process: orders in, events out, and nothing lost when its driver dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from digits import write_digits
from rkcnn.data.sources import Sources
from rkcnn.record.run import Run
from rkcnn.record.standing import BEGUN, standing
from rkcnn.reproduce.event import read_event
from rkcnn.reproduce.worker import Order, read_order
from rkcnn.run.together import Way
from rkcnn.train.recipe import recipe_of


def test_an_order_is_a_line() -> None:
    runs = tuple(enumerate(Run("mnist", "ResNet@k=4", recipe_of("paper-mnist"), seed) for seed in (0, 1)))
    order = Order(runs, Way(Path("out"), "cuda:1", "graph"), Sources(Path("data"), offline=True))
    assert "\n" not in order.to_json()
    assert read_order(order.to_json()) == order


def test_when_its_driver_dies_it_keeps_and_leaves(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "digits.npz")
    recipe = recipe_of("mini", {"epochs": "100000", "batch": "64"})
    run = Run(data, "ResNet@k=4", recipe, 0)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "rkcnn.reproduce.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        order = Order(((7, run),), Way(out, "cpu", keep_seconds=1e9), Sources())
        print(order.to_json(), file=process.stdin, flush=True)
        for line in process.stdout:
            event = read_event(line)
            assert event.run == 7
            if event.share > 0:
                break
        process.stdin.close()
        process.stdin = None
        assert process.wait(60) == 0
    assert standing(run, out) == BEGUN
    steps = [path.stem for path in (out / run.folder).glob("checkpoint-*.json")]
    assert max(steps) > "checkpoint-00000-000000"
