"""benchmarks/norms_of_evaluations.py: the same weights with other running statistics."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import rkcnn
from rkcnn.record.errors_by_statistics import KINDS, read_errors_by_statistics
from rkcnn.record.result import read_result

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call the script with these arguments."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module("norms_of_evaluations")

    def call(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["norms_of_evaluations.py", *map(str, arguments), "--device", "cpu"])
        module.main()

    return call


@pytest.mark.parametrize("spec", ["RKNet-rk4_38@k=4,norm=bn", "RKNet-rk4_38@k=4,norm=bn,statistics=each"])
def test_it_measures_and_records_a_run(
    spec: str, measure: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = rkcnn.train(spec, data="mnist-mini", recipe="smoke", out=tmp_path, device="cpu", progress=False).folder
    measure(folder, "--batches", 2, "--record")
    found = read_errors_by_statistics(folder, read_result(folder / "result.json"))
    assert found is not None
    assert (found.images, found.batches, found.device) == (2000, 2, "cpu")
    assert all(len(ratios) == 4 and sum(ratios) == pytest.approx(4, abs=1) for ratios in found.variances.values())
    printed = capsys.readouterr().out
    for kind in KINDS:
        assert f"{100 * found.error(kind):.2f} %" in printed
    rkcnn.train(spec, data="mnist-mini", recipe="smoke", out=tmp_path, device="cpu", progress=False, again=True)
    assert not (folder / "errors-by-statistics.json").exists(), "it is of weights that are replaced"


def test_what_it_can_not_use_is_said_before_it_measures(
    measure: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = "RKNet-rk4_38@k=4,norm=bn"
    train = partial(rkcnn.train, spec, data="mnist-mini", recipe="smoke", out=tmp_path, device="cpu", progress=False)
    folder, validated = train().folder, train(validation=500).folder
    for arguments, says in (
        ((folder, "--record", "--test", 100), "all 2,000 test images"),
        ((folder, "--batches", 0), "1 or more"),
        ((folder, "--test", -5), "1 or more"),
        ((validated,), "tested on training images"),
        ((folder / "weights.safetensors", "--record"), "is no run's folder"),
        ((tmp_path / "nothing",), "nothing"),
    ):
        with pytest.raises(SystemExit):
            measure(*arguments)
        assert says in capsys.readouterr().err
    assert not (folder / "errors-by-statistics.json").exists()
