"""Evaluation from Python."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from digits import write_digits
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
    is_set_of,
    load_tested_images,
    measure_corrupted,
    measure_on,
    read_choice,
    was_tested_with,
)
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


def test_the_callers_network_is_left_as_it_was(trained: TrainingResult, arrays: Arrays) -> None:
    model = load(trained.folder)
    model.network.train()
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    evaluate(model, arrays[1])
    assert model.network.training
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def test_without_data_a_run_is_tested_with_its_own(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "mine.npz", 100, 40)
    settings: dict[str, Any] = {"epochs": 1, "batch": 50, "out": tmp_path / "runs", "progress": False}
    result = train("ResNet@k=4", data, **settings)
    assert evaluate(result).error == result.error
    held = train("ResNet@k=4", data, validation=20, **settings)
    assert evaluate(held).images == 20
    assert evaluate(held).error == held.error
    assert evaluate(result, data).error == result.error

    np.savez(tmp_path / "one.npz", x_train=np.zeros((60, 28, 28), np.uint8), y_train=np.arange(60) % 2)
    split = train("ResNet@k=4", f"npz:{tmp_path / 'one.npz'}", split=0.5, **{**settings, "batch": 10})
    assert evaluate(split).images == 30  # the record remembers the split
    with pytest.raises(InputError, match=r"one\.npz is no longer what the run was tested with; give the `size=\.\.\.`"):
        evaluate(split, split=0.4)

    write_digits(tmp_path / "mine.npz", 100, 41)
    with pytest.raises(InputError, match=r"mine\.npz is no longer what the run was tested with"):
        evaluate(result)
    assert evaluate(result, data).images == 41


def test_an_option_that_is_given_leaves_the_others_as_recorded(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / "photos" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20), 10 * number).save(folder / f"{number}.png")
    (tmp_path / "photos" / "a" / "bad.png").write_bytes(b"bad")
    data = f"folder:{tmp_path / 'photos'}"
    result = train(
        "ResNet@k=4", data, size=24, split=0.5, skip_bad=True, epochs=1, batch=5, out=tmp_path / "runs", progress=False
    )
    for options in ({}, {"size": 24}, {"split": 0.5}, {"skip_bad": True}):
        assert evaluate(result, **options).error == result.error
    assert evaluate(result, data).error == result.error
    with pytest.raises(InputError, match="is no longer what the run was tested with"):
        evaluate(result, size=28)
    (tmp_path / "photos" / "a" / "bad.png").unlink()
    other = (tmp_path / "photos").rename(tmp_path / "others")
    assert evaluate(result, f"folder:{other}", split=0.4).images == 8, "resized to the size of the network"
    assert evaluate(result, f"folder:{other}").images == 20, "all of another folder"
    assert evaluate(result, f"folder:{tmp_path / 'others' / '..' / 'others'}").images == 20


def test_other_images_are_read_as_the_network_takes_them(
    trained: TrainingResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "07":  # two of its ten classes, one image of the last, in colours
        (tmp_path / "some" / name).mkdir(parents=True)
        for number in range(1 if name == "7" else 3):
            Image.new("RGB", (20, 20), (200, 10 * number, 0)).save(tmp_path / "some" / name / f"{number}.png")
    found = evaluate(trained, f"folder:{tmp_path / 'some'}")
    assert [sum(row) for row in found.confusion] == [3, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert "some has no test set of its own: all of its 4 images are test images" in capsys.readouterr().err


def test_a_record_without_channels_keeps_its_meaning(tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (20, 12, 12, 1), np.uint8)
    np.savez(tmp_path / "grey.npz", x_train=pixels.repeat(3, 3), y_train=np.arange(20) % 2)
    data, settings = f"npz:{tmp_path / 'grey.npz'}", {"split": 0.5, "epochs": 1, "batch": 5, "progress": False}
    result = train("ResNet@k=4", data, channels=3, out=tmp_path / "runs", **settings)  # type: ignore[arg-type]
    facts = json.loads((result.folder / "result.json").read_text())
    del facts["data"]["own"]["channels"]
    facts["run"]["data"] = f"{data}~split-0.5"
    (result.folder / "result.json").write_text(json.dumps(facts))
    assert evaluate(result.folder).error == result.error
    assert evaluate(result.folder, data).error == result.error


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
    with pytest.raises(InputError, match="no method 5"):
        evaluate(trained, test, method=5)  # type: ignore[arg-type]


def test_images_are_told_by_their_checksum(trained: TrainingResult, arrays: Arrays) -> None:
    record = read_result(trained.folder / "result.json")
    training, test = load_images(arrays)
    assert was_tested_with(record, test)
    assert not was_tested_with(record, training)
    assert not was_tested_with(record, replace(test, labels_sha256=training.labels_sha256))
    assert was_tested_with(replace(record, data={}), training)  # an old record without checksums


def test_a_set_is_told_by_its_name(trained: TrainingResult, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    record = read_result(trained.folder / "result.json")
    for data, name, same in (
        ("mnist", "mnist", True),
        ("mnist~validation-20", "mnist", True),
        ("folder:~/photos~size-32", "folder:~/photos", True),
        ("mnist-mini", "mnist", False),
        ("mnist", "mnist~validation-20", False),
        (f"folder:{tmp_path}/photos~size-32", f"folder:{tmp_path}/photos/../photos/", True),
        (f"folder:{tmp_path}/photos~size-32", f"folder:{tmp_path}", False),
        (f"folder:{tmp_path}/photos~size-32", "folder:a\0b", False),
    ):
        assert is_set_of(replace(record, run=replace(record.run, data=data)), name) is same


def test_what_cant_be_evaluated_gets_one_sentence(trained: TrainingResult, arrays: Arrays, tmp_path: Path) -> None:
    record = read_result(trained.folder / "result.json")
    with pytest.raises(InputError, match=r"tested with arrays, .* evaluate it from Python with data=\(x, y\), or name"):
        load_tested_images(record)
    shutil.copy(trained.folder / "weights.safetensors", tmp_path)
    with pytest.raises(InputError, match="say which images to test with, as in `data='mnist'`"):
        evaluate(tmp_path / "weights.safetensors")
    with pytest.raises(InputError, match="data of type int given"):
        evaluate(trained, 3)  # type: ignore[arg-type]
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
        ("steps=1.5", "steps=1.5 given; give a whole number"),
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
    assert seen == [(done, 21) for done in range(1, 22)]
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
