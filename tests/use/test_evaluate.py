"""Evaluation from Python."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.evaluation.corruption import corrupt
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model
from rkcnn.record.result import read_result
from rkcnn.use.evaluate import (
    compare_solvers,
    compute_logits,
    evaluate,
    find_precision,
    measure_corrupted,
    measure_on,
    read_choice,
)
from rkcnn.use.held_out import load_tested_images
from rkcnn.use.images import load_images
from rkcnn.use.load import Classifier, load
from rkcnn.use.other_solver import SolverChoice
from rkcnn.use.train import TrainingResult, train
from use.conftest import Arrays


def test_every_way_to_name_a_model_gives_the_recorded_error(trained: TrainingResult, arrays: Arrays) -> None:
    test = arrays[1]
    for model in (trained, trained.folder, str(trained.folder), trained.folder / "weights.safetensors"):
        assert evaluate(model, test).error == trained.error
    found = evaluate(load(trained.folder), load_images(arrays)[1])
    assert (found.error, found.images) == (trained.error, 50)
    assert np.array(found.confusion).sum() == 50
    assert found.interval[0] < found.error < found.interval[1]


@pytest.mark.parametrize("precision", [torch.float64, torch.float16, torch.bfloat16])
def test_a_network_may_be_converted(trained: TrainingResult, arrays: Arrays, precision: torch.dtype) -> None:
    model = load(trained.folder)
    model.network.to(precision)
    assert evaluate(model, arrays[1]).nll == pytest.approx(evaluate(trained, arrays[1]).nll, rel=0.02)
    assert {each.dtype for each in model.network.parameters()} == {precision}


@pytest.mark.parametrize("device", [None, 3, ["cpu"], "toaster", "", "cuda:99"])
def test_a_device_that_is_none_is_a_sentence(trained: TrainingResult, arrays: Arrays, device: Any) -> None:
    with pytest.raises(InputError, match=r"device.*auto"):
        evaluate(trained, arrays[1], device=device)


def test_the_callers_network_is_left_as_it_was(trained: TrainingResult, arrays: Arrays) -> None:
    model = load(trained.folder)
    model.network.train()
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    evaluate(model, arrays[1])
    assert model.network.training
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def test_another_solver_and_corrupted_images(arrays: Arrays, trained: TrainingResult, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 1, "batch": 50, "out": tmp_path, "progress": False}
    model = load(train("RKNet-euler@k=4", arrays, **settings).folder)
    test = arrays[1]
    assert evaluate(model, test, method="euler", steps=1) == evaluate(model, test)
    assert evaluate(model, test, method="dopri5", tol=0.1).nll != evaluate(model, test).nll
    assert evaluate(model, test, corruption=("noise", 5)).nll != evaluate(model, test).nll
    with pytest.raises(InputError, match="has no f that another method could solve"):
        evaluate(trained, test, method="dopri5")
    with pytest.raises(InputError, match="kinds are noise"):
        evaluate(trained, test, corruption=("fog", 1))
    with pytest.raises(InputError, match=r"`corruption='noise'` given; give a kind and a grade from 1 to 5"):
        evaluate(trained, test, corruption="noise")  # type: ignore[arg-type]
    given: Any
    for given in (("noise", 3.0), (["noise"], 3), ("noise", "3"), (None, True)):
        with pytest.raises(InputError, match=r"of grade .* given; kinds are noise"):
            evaluate(trained, test, corruption=given)
    with pytest.raises(InputError, match="no method 5"):
        evaluate(trained, test, method=5)  # type: ignore[arg-type]


def test_what_cant_be_evaluated_gets_one_sentence(trained: TrainingResult, arrays: Arrays, tmp_path: Path) -> None:
    record = read_result(trained.folder / "result.json")
    with pytest.raises(InputError, match=r"tested with arrays, .* evaluate it from Python with data=\(x, y\), or name"):
        load_tested_images(record)
    shutil.copy(trained.folder / "weights.safetensors", tmp_path)
    with pytest.raises(InputError, match="say which images to test with, as in `data='mnist'`"):
        evaluate(tmp_path / "weights.safetensors")
    with pytest.raises(InputError, match="data of type int given"):
        evaluate(trained, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="data of type PosixPath given; give a name such as 'mnist' or 'folder:PATH'"):
        evaluate(trained, tmp_path)  # type: ignore[arg-type]
    x, y = arrays[1]
    with pytest.raises(InputError, match="it has images of 26 x 28, and the network was trained on images of 28 x 28"):
        evaluate(trained, (x[:, 2:], y))
    with pytest.raises(InputError, match="labels up to 10 given; the network has 10 classes"):
        evaluate(trained, (x, y + 1))
    with pytest.raises(InputError, match="given with mnist-mini; it is for your own images"):
        evaluate(trained, "mnist-mini", size=4)


def test_each_solver_beside_the_trainings(digits: tuple[Images, Images], arrays: Arrays) -> None:
    test = load_images(arrays)[1]
    torch.manual_seed(0)
    name = "RKNet-rk4_38@k=4_4"
    model = Classifier(create_model(name, 10, 1).eval(), NetworkDescription.of(name, test))
    choices = [SolverChoice("rk4_38", 1), SolverChoice("euler", 3), SolverChoice("dopri5", tol=1e-4)]
    first, same, euler, dopri5 = compare_solvers(model, test, choices, "cpu")
    assert first.solver == same.solver == "rk4_38, 1 step"
    assert first.metrics == same.metrics == measure_on(model, test, "cpu")
    assert (first.changed, same.changed, first.evaluations) == (0, 0, 8), "4 evaluations in each of two periods"
    assert (euler.solver, euler.evaluations, euler.unconverged) == ("euler, 3 steps", 6, 0)
    assert dopri5.solver == "dopri5, tol 0.0001"
    assert dopri5.evaluations > 14
    assert 0 <= dopri5.changed <= 1


def test_a_choice_is_read() -> None:
    assert read_choice("method=dopri5, tol=1e-3") == SolverChoice("dopri5", tol=1e-3)
    assert read_choice("steps=8") == SolverChoice(steps=8)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' given; give a method with its steps or tolerance"),
        ("methd=rk4", r"did you mean method\?"),
        ("dopri5", r"'dopri5' given \(did you mean method=dopri5\?\)"),
        ("tol=1,tol=2", "'tol=2' given"),
        ("tol=small", "tol=small given; a tolerance is a number"),
        ("steps=1.5", "steps=1.5 given; give a whole number from 1 to 1000"),
        ("method=rk5", "no method 'rk5'"),
    ],
)
def test_what_is_no_choice_gets_one_sentence(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_choice(text)


def test_every_kind_and_grade_is_measured_once(trained: TrainingResult, arrays: Arrays) -> None:
    test, model = load_images(arrays)[1], load(trained.folder)
    seen: list[tuple[int, int]] = []
    clean, errors = measure_corrupted(model, test, "cpu", lambda done, total: seen.append((done, total)))
    assert clean == trained.error
    assert seen == [(done * len(test), 21 * len(test)) for done in range(1, 22)]
    assert {kind: len(grades) for kind, grades in errors.items()} == dict.fromkeys(
        ("noise", "blur", "contrast", "shift"), 5
    )
    assert errors["blur"][4] == evaluate(model, corrupt(test, "blur", 5)).error


def test_the_fused_network_answers_as_the_plain_one(digits: tuple[Images, Images], tmp_path: Path) -> None:
    """On 2,000 digits: evaluation in batches of 1,000 and prediction agree with the network to 1e-6."""
    training, test = digits
    made = train("RKCNN-R-2@k=8", (training, test), epochs=1, max_steps_per_epoch=30, out=tmp_path, progress=False)
    model = load(made.folder)
    some = replace(test, pixels=test.pixels[:1207], labels=test.labels[:1207])  # a partial last batch
    fused = compute_logits(model, some, "cpu").softmax(1)
    plain = model(some.pixels).softmax(1)
    assert torch.allclose(fused, plain, atol=1e-6)
    assert torch.equal(fused.argmax(1), plain.argmax(1))
    top = [answer.top[0].probability for answer in model.predict(some.pixels[:67], 1)]
    assert top == pytest.approx(plain[:67].max(1).values.tolist(), abs=1e-6)


def test_a_cpu_computes_bf16_in_float32(trained: TrainingResult) -> None:
    """Of processors without bf16 of their own it takes five times as long."""
    model = load(trained.folder)
    assert model.result is not None
    for recorded, cpu, gpu in (("bf16", "fp32", "bf16"), ("tf32", "tf32", "tf32"), ("fp32", "fp32", "fp32")):
        run = replace(model.result.run, recipe=replace(model.result.run.recipe, precision=recorded))
        by = replace(model, result=replace(model.result, run=run))
        assert find_precision(by, torch.device("cpu")) == cpu
        assert find_precision(by, torch.device("cuda")) == gpu
    assert find_precision(replace(model, result=None), torch.device("cuda")) == "fp32"
