"""benchmarks/norms_of_evaluations.py: the same weights with other running statistics."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import rkcnn
from rkcnn.record.norm_statistics import KINDS, read_norm_statistics
from rkcnn.record.result import read_result

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("norms_of_evaluations").main


@pytest.mark.parametrize("spec", ["RKNet-rk4_38@k=4,norm=bn", "RKNet-rk4_38@k=4,norm=bn,statistics=each"])
def test_it_measures_and_records_a_run(
    spec: str, main: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = rkcnn.train(spec, data="mnist-mini", recipe="smoke", out=tmp_path, device="cpu")
    options = ["--batches", "2", "--test", "200", "--device", "cpu", "--record"]
    monkeypatch.setattr(sys, "argv", ["norms_of_evaluations.py", str(result.folder), *options])
    assert callable(main)
    main()
    found = read_norm_statistics(result.folder, read_result(result.folder / "result.json").run)
    assert found is not None
    assert (found.images, found.batches, found.device) == (200, 2, "cpu")
    assert all(len(ratios) == 4 and sum(ratios) == pytest.approx(4, abs=1) for ratios in found.variances.values())
    printed = capsys.readouterr().out
    for kind in KINDS:
        assert f"{100 * found.error(kind):.2f} %" in printed
