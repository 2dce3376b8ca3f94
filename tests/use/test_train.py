"""Training from Python."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import typing
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from precisions import newer_precisions, torch_as_it_starts
from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.fit.recipe import RECIPES, Recipe, find_recipe
from rkcnn.record.result import Epoch, Result, read_result
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer
from rkcnn.use.images import load_images
from rkcnn.use.load import load
from rkcnn.use.train import (
    RecipeFields,
    TrainingOptions,
    TrainingResult,
    check_changes,
    train,
)
from use.conftest import Arrays


def test_it_is_the_record_with_its_folder(trained: TrainingResult) -> None:
    kept = read_result(trained.folder / "result.json")
    assert isinstance(trained, Result)
    assert trained.error == kept.error
    assert trained.epochs == kept.epochs
    assert trained.folder.is_dir()
    assert json.loads(trained.to_json()) == json.loads(kept.to_json())
    assert pickle.loads(pickle.dumps(trained)).folder == trained.folder


def test_several_seeds_give_a_list_of_what_each_gives_alone(arrays: Arrays, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 1, "batch": 50, "progress": False}
    results = train("ResNet@k=4", arrays, seed=(1, 0), out=tmp_path / "together", **settings)
    assert [result.run.seed for result in results] == [1, 0]
    for result in results:
        alone = train("ResNet@k=4", arrays, seed=result.run.seed, out=tmp_path / "alone", **settings)
        assert (result.folder / "weights.safetensors").read_bytes() == (
            alone.folder / "weights.safetensors"
        ).read_bytes()
    (single,) = train("ResNet@k=4", arrays, seed=[1], out=tmp_path / "together", **settings)
    assert single.folder == results[0].folder


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        ([0, -1], "`seed=-1` given; a seed is a whole number from 0 to 2^63 - 1"),
        (np.array(0.5), "`seed=array(0.5)` given; a seed is a whole number"),
        ("3", "`seed='3'` given; a seed is a whole number"),
        ([], "0 seeds given, 0 of them different; give each once, as in range(5)"),
        ([2, 2], "2 seeds given, 1 of them different; give each once, as in range(5)"),
    ],
)
def test_seeds_that_are_none_or_the_same_are_refused(seed: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        train("ResNet@k=4", seed=seed)


def test_the_options_have_the_names_and_kinds_of_the_arguments() -> None:
    hints = typing.get_type_hints(train)
    named = {
        name: kind for name, kind in hints.items() if name not in ("network", "data", "seed", "return", "recipe_fields")
    }
    assert {**typing.get_type_hints(RecipeFields), **named} == typing.get_type_hints(TrainingOptions)


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


TINY: dict[str, Any] = {"epochs": 1, "batch": 50, "progress": False}


def test_arrays_are_trained_on(trained: TrainingResult) -> None:
    assert trained.finished
    assert trained.run.data.startswith("arrays-")
    assert (trained.run.recipe.epochs, trained.run.recipe.batch) == (2, 50)
    assert trained.folder.parts[-3:] == ("ResNet@k=4", "own,epochs=2,batch=50,flip=False", "seed-0")
    assert (trained.folder / "weights.safetensors").exists()


def test_images_and_validation_are_trained_on(digits: tuple[Images, Images], tmp_path: Path) -> None:
    settings = {**TINY, "max_steps_per_epoch": 2, "out": tmp_path}
    named = train("ResNet@k=4", "mnist-mini", **settings)
    given = train("ResNet@k=4", digits, **settings, again=True)
    assert (given.run, given.epochs[0].loss) == (named.run, named.epochs[0].loss)
    held = train("ResNet@k=4", "mnist-mini", validation=100, **settings)
    assert held.run.data == "mnist-mini~validation-100"
    assert train("ResNet@k=4", digits[0].split(100), **settings) == held


def test_any_field_of_a_recipe_is_a_keyword(arrays: Arrays, tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"lr": np.float32(0.5), "milestones": [1, 2], "flip": True, "seed": np.int64(3)}
    result = train("ResNet@k=4", arrays, **TINY, **numbers, out=tmp_path)
    assert result.run.recipe == replace(find_recipe("own"), epochs=1, batch=50, lr=0.5, milestones=(1, 2), flip=True)
    assert result.run.seed == 3
    assert type(result.run.recipe.lr) is float


def test_the_keywords_are_the_fields_of_a_recipe() -> None:
    """So that editors and type checkers know them."""
    kinds = typing.get_type_hints(Recipe)
    kept = {field.name: kinds[field.name] for field in fields(Recipe)}
    for name in ("name", "epochs", "batch", "lr", "head_only", "weigh_classes", "initial_weights"):
        del kept[name]
    assert typing.get_type_hints(RecipeFields) == kept


def test_a_recipe_may_be_given_as_such(arrays: Arrays, tmp_path: Path) -> None:
    mine = replace(RECIPES["mini"], name="mine", epochs=1, batch=50, max_steps_per_epoch=1)
    assert train("ResNet@k=4", arrays, recipe=mine, progress=False, out=tmp_path).run.recipe == mine
    assert check_changes({"epochs": np.int64(3)}) == {"epochs": 3}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"learning_rate": 0.1}, r"no field 'learning_rate' \(did you mean lr\?\)"),
        ({"epoch": 3}, r"train has no argument and a recipe no field 'epoch' \(did you mean epochs\?\)"),
        ({"epochs": "3"}, r"`epochs='3'` given; it must be a whole number"),
        ({"epochs": 0}, "epochs=0 given; it must be from 1"),
        ({"epochs": True}, "`epochs=True` given"),
        ({"lr": "fast"}, "it must be a number"),
        ({"flip": 1}, "it must be True or False"),
        ({"schedule": None, "precision": 16}, "it must be text"),
        ({"milestones": 3}, "it must be a tuple of whole numbers"),
        ({"milestones": (1.5,)}, "it must be a tuple of whole numbers"),
        ({"recipe": "min"}, r"no recipe 'min' \(did you mean mini\?\)"),
        ({"recipe": 3}, "a recipe of type int given"),
        ({"seed": -1}, "`seed=-1` given; a seed is a whole number"),
        ({"seed": 0.5}, r"`seed=0\.5` given"),
        ({"network": 3}, "train builds the network itself from a name"),
        ({"network": "RKCN-R-2@k=32"}, "RKCN"),
        ({"device": "toaster"}, "device 'toaster' can't be used here"),
        ({"engine": "warp"}, "engines are"),
        ({"validation": 10_000}, "give 1 to 9999"),
        ({"data": "mnst"}, "did you mean mnist"),
        ({"size": 8}, "`size=8` given with mnist-mini; it is for your own images"),
    ],
)
def test_bad_settings_get_one_sentence_of_python(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        train(**{"network": "ResNet@k=4", "out": tmp_path, "progress": False, **settings})
    assert "--" not in str(error.value)


def test_it_prints_unless_it_is_told_not_to(arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train("ResNet@k=4", arrays, epochs=1, batch=50, out=tmp_path)
    assert "epoch 1/1  loss " in capsys.readouterr().out
    train("ResNet@k=4", arrays, **TINY, out=tmp_path / "quiet")
    assert capsys.readouterr().out == ""


def test_an_observer_is_told_instead(arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Count(Observer):
        told: list[str]

        def __init__(self) -> None:
            self.told = []

        def epoch_done(self, job: Job, epoch: Epoch) -> None:
            self.told.append(f"epoch {epoch.number}")

        def run_ended(self, job: Job, result: Result) -> None:
            self.told.append(result.status)

    count = Count()
    train("ResNet@k=4", arrays, epochs=2, batch=50, out=tmp_path, observer=count)
    assert count.told == ["epoch 0", "epoch 1", "finished"]
    assert capsys.readouterr().out == ""


def test_ctrl_c_keeps_the_run(arrays: Arrays, tmp_path: Path) -> None:
    class Interrupt(Observer):
        def steps_done(self, jobs: Sequence[Job]) -> None:
            if jobs[0].trainer.epoch == 1:
                os.kill(os.getpid(), signal.SIGINT)

    settings: dict[str, Any] = {"epochs": 3, "batch": 50, "out": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train("ResNet@k=4", arrays, **settings, observer=Interrupt())
    assert list(tmp_path.rglob("checkpoint-*.json"))
    continued = train("ResNet@k=4", arrays, **settings, progress=False)
    whole = train("ResNet@k=4", arrays, **{**settings, "out": tmp_path / "whole"}, progress=False)
    assert [epoch.loss for epoch in continued.epochs] == [epoch.loss for epoch in whole.epochs]


def test_other_arrays_are_another_run(arrays: Arrays, tmp_path: Path, trained: TrainingResult) -> None:
    (x, y), test = arrays
    other = train("ResNet@k=4", ((x[:150], y[:150]), test), **TINY, out=tmp_path)
    assert other.run.data != trained.run.data
    assert load_images(((x[:150], y[:150]), test))[0].name == other.run.data


def test_one_run_starts_from_another(arrays: Arrays, tmp_path: Path, trained: TrainingResult) -> None:
    result = train(data=arrays, **TINY, init_from=trained.folder, head_only=True, weigh_classes=True, out=tmp_path)
    assert result.run.network == trained.run.network
    before, after = trained.network().state_dict(), result.network().state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {"classifier.weight", "classifier.bias"}
    recipe = result.run.recipe
    assert (recipe.head_only, recipe.weigh_classes, len(recipe.initial_weights)) == (True, True, 12)


def test_it_says_and_records_which_weights_it_starts_from(
    arrays: Arrays, tmp_path: Path, trained: TrainingResult, capsys: pytest.CaptureFixture[str]
) -> None:
    (x, y), test = arrays
    tiny: dict[str, Any] = {"epochs": 1, "batch": 50, "out": tmp_path}
    result = train(data=((x, y), test), **tiny, init_from=trained.folder, head_only=True)
    out = capsys.readouterr().out
    assert f"starts from the weights of {trained.folder}, its classifier is kept" in out
    assert "the classifier's 50 parameters are trained" in out
    assert result.data["init_from"] == str(trained.folder)
    assert read_result(result.folder / "result.json").data == result.data
    few = [(pixels[labels < 4], labels[labels < 4]) for pixels, labels in arrays]
    train(data=(few[0], few[1]), **tiny, init_from=trained.folder)
    assert "its classifier is new, for 4 classes in place of 10" in capsys.readouterr().out
    assert "init_from" not in trained.data


def read_precisions() -> tuple[object, ...]:
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    return matmul.allow_tf32, cudnn.allow_tf32, matmul.fp32_precision, cudnn.conv.fp32_precision


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_torch_is_left_as_it_was(precision: str, arrays: Arrays, tmp_path: Path) -> None:
    before = read_precisions()
    torch.manual_seed(123)
    expected = torch.rand(1)
    torch.manual_seed(123)
    train("ResNet@k=4", arrays, **TINY, precision=precision, out=tmp_path)
    assert read_precisions() == before
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("setting", ["everything", "convolutions on a GPU", "everything on a CPU"])
def test_a_caller_may_use_torchs_newer_names_of_precisions(setting: str, arrays: Arrays, tmp_path: Path) -> None:
    """After these torch refuses to read some of the older names."""
    with torch_as_it_starts():
        backends: Any = torch.backends
        if setting == "everything":
            backends.fp32_precision = "ieee"
        elif setting == "convolutions on a GPU":
            backends.cudnn.conv.fp32_precision = "ieee"
        else:
            backends.mkldnn.fp32_precision = "bf16"
        before = newer_precisions()
        train("ResNet@k=4", arrays, **TINY, out=tmp_path)
        assert newer_precisions() == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"init_from": ""}, "`init_from=''` given; it is the path of a folder"),
        ({"out": ""}, "`out=''` given; it is the path of a folder"),
        ({"init_from": "x" * 300}, "holds no trained network"),
        ({"again": "no"}, "`again='no'` given; it is True or False"),
        ({"head_only": 1}, "`head_only=1` given; it is True or False"),
        ({"network": "RKCNN-R-2@k=32.mnist"}, "start from them with `init_from=RKCNN-R-2@k=32.mnist`"),
    ],
)
def test_what_is_of_a_wrong_kind_gets_one_sentence(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        train(**{"out": tmp_path, **given})


def test_it_says_what_is_likely_wrong(arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (x, y), (x_test, y_test) = arrays
    train("ResNet@k=4", ((x, y + 1), (x_test, y_test + 1)), epochs=1, lr=0.0, batch=50, out=tmp_path)
    out = capsys.readouterr().out
    assert "no training image is of class 0: if your classes begin at 1, subtract 1 from the labels, as in y - 1" in out
    assert "4 steps is little to learn from: `epochs=75` would make 300" in out
    assert "this is about chance: always giving the same class errs in" in out


def test_labels_that_begin_at_1_are_warned_of(tmp_path: Path) -> None:
    pixels, labels = np.random.RandomState(0).randint(0, 256, (24, 12, 12), np.uint8), (np.arange(24) % 2 + 1).tolist()
    with pytest.warns(UserWarning, match=r"no training image is of class 0: .* subtract 1 from the labels"):
        train("ResNet@k=4", (pixels, labels), split=0.5, epochs=1, batch=6, out=tmp_path, progress=False)
