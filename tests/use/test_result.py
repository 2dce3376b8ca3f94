"""What `rkcnn.train` returns."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.record.result import Result, read_result
from rkcnn.use.load import load
from rkcnn.use.result import TrainingResult


def test_it_is_the_record_with_its_folder(trained: TrainingResult) -> None:
    kept = read_result(trained.folder / "result.json")
    assert isinstance(trained, Result)
    assert trained.error == kept.error
    assert trained.epochs == kept.epochs
    assert trained.folder.is_dir()
    assert json.loads(trained.to_json()) == json.loads(kept.to_json())
    assert pickle.loads(pickle.dumps(trained)).folder == trained.folder


def test_the_network_is_the_trained_one(trained: TrainingResult, digits: tuple[Images, Images]) -> None:
    network = trained.network()
    assert not network.training
    images = digits[1].pixels[:5]
    classifier = load(trained.folder)
    with torch.no_grad():
        assert torch.equal(network(classifier.normalise(images)), classifier(images))


def test_the_plot_shows_in_a_notebook(trained: TrainingResult, tmp_path: Path) -> None:
    figure = trained.plot()
    picture = tmp_path / "curves.png"
    figure.savefig(picture)
    assert picture.stat().st_size > 1000
    svg = figure._repr_svg_()  # type: ignore[attr-defined]
    assert "ResNet@k=4 on arrays-" in svg
    assert svg.lstrip().startswith("<?xml")


def test_it_says_what_it_is(trained: TrainingResult) -> None:
    text = repr(trained)
    assert text.startswith("<TrainingResult: ResNet@k=4 on arrays-")
    assert f"test error {100 * (trained.error or 0):.2f} % after 2 epochs in 0:0" in text
    held_out = TrainingResult(replace(_record(trained), run=replace(trained.run, data="a~validation-9")), Path("x"))
    assert "validation error" in repr(held_out)


def test_a_run_that_diverged_has_neither_network_nor_curves(trained: TrainingResult, tmp_path: Path) -> None:
    status = "diverged: the loss is not finite at epoch 1, step 3, lr 100"
    record = _record(trained)
    stretches = (replace(record.stretches[0], epochs=0),)
    record = replace(record, status=status, error=None, error_best=None, epochs=(), stretches=stretches)
    diverged = TrainingResult(record, tmp_path)
    (tmp_path / "result.json").write_bytes(record.to_json())
    assert status in repr(diverged)
    with pytest.raises(InputError, match="there is nothing to plot"):
        diverged.plot()
    with pytest.raises(InputError, match="holds no weights: the run diverged"):
        diverged.network()


def _record(trained: TrainingResult) -> Result:
    return read_result(trained.folder / "result.json")
