"""Asking a trained network about pictures, from Python."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from rkcnn.data.picture import Found
from rkcnn.error import InputError
from rkcnn.use.export import export
from rkcnn.use.images import load_images
from rkcnn.use.load import load
from rkcnn.use.predict import BATCH, Prediction, Unreadable, file_source, find_sources, list_sources, predict_each
from rkcnn.use.train import TrainingResult, train
from use.conftest import Arrays


@pytest.mark.parametrize("precision", [torch.float64, torch.float16, torch.bfloat16])
def test_a_network_may_be_converted(trained: TrainingResult, arrays: Arrays, precision: torch.dtype) -> None:
    model, converted = load(trained.folder), load(trained.folder)
    converted.network.to(precision)
    answers, expected = (each.predict(list(arrays[1][0]), top=10) for each in (converted, model))
    for answer, other in zip(answers, expected, strict=True):
        assert dict(answer.top) == pytest.approx(dict(other.top), abs=0.02)


def test_a_folder_that_cant_be_read_is_named_and_the_others_are_answered(
    trained: TrainingResult, arrays: Arrays, tmp_path: Path
) -> None:
    Image.fromarray(arrays[1][0][3]).save(tmp_path / "a.png")
    sources = list_sources(Found([tmp_path / "a.png"], [], {tmp_path / "b": "b: can't be read (Permission denied)"}))
    answer, unreadable = predict_each(load(trained.folder), sources, 1)
    assert isinstance(answer, Prediction)
    assert unreadable == Unreadable(str(tmp_path / "b"), "b: can't be read (Permission denied)")


def test_every_way_to_give_a_picture_gets_the_same_answer(
    trained: TrainingResult, arrays: Arrays, tmp_path: Path
) -> None:
    model = load(trained.folder)
    pixels = arrays[1][0][3]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels).convert("RGBA").save(tmp_path / "b.webp", lossless=True)
    tensor = torch.from_numpy(pixels)
    ways: list[Any] = [
        tmp_path / "a.png",
        str(tmp_path / "b.webp"),
        (tmp_path / "a.png").read_bytes(),
        Image.fromarray(pixels),
        Image.fromarray(pixels).convert("RGB"),
        pixels,
        pixels[..., None],
        np.repeat(pixels[..., None], 3, -1),
        pixels[None],
        tensor[None],
        tensor[None, None],
        np.repeat(pixels[None], 3, 0)[None],
    ]
    answers = [model.predict(way) for way in ways] + [model.predict([way]) for way in ways]
    assert all(len(answer) == 1 for answer in answers)
    best = int(np.load(trained.folder / "predictions.npy")[3])
    for (answer,) in answers:
        assert answer.label == str(best)
        assert answer.probability == pytest.approx(answers[0][0].probability, abs=1e-5)


def test_a_batch_of_pictures_is_answered_in_order_as_it_was_tested(trained: TrainingResult, arrays: Arrays) -> None:
    model, pixels = load(trained.folder), arrays[1][0]
    many = np.concatenate([pixels, pixels])
    assert len(many) > BATCH
    found = [int(answer.label) for answer in model.predict(many, top=1)]
    np.testing.assert_array_equal(found, np.tile(np.load(trained.folder / "predictions.npy"), 2))
    (answer,) = model.predict(pixels[0], top=99)
    assert len(answer.top) == 10
    assert sum(p for _, p in answer.top) == pytest.approx(1)
    assert answer.top == tuple(sorted(answer.top, key=lambda one: -one.probability))
    assert (answer.picture, answer.probability) == ("picture 1", answer.top[0].probability)


def test_a_network_in_training_mode_answers_as_in_evaluation(trained: TrainingResult, arrays: Arrays) -> None:
    model = load(trained.folder)
    expected = model.predict(arrays[1][0][:5])
    model.network.train()
    assert model.predict(arrays[1][0][:5]) == expected
    assert model.network.training


def test_a_folder_is_answered_by_name_and_the_pictures_given_stay_as_they_are(
    trained: TrainingResult, arrays: Arrays, tmp_path: Path
) -> None:
    model = load(trained.folder)
    for number, pixels in enumerate(arrays[1][0][:3]):
        Image.fromarray(255 - pixels).save(tmp_path / f"{number}.png")
    answers = model.predict(tmp_path)
    assert [answer.picture for answer in answers] == [str(tmp_path / f"{number}.png") for number in range(3)]
    assert all(answer.inverted for answer in answers)
    assert not model.predict(tmp_path, invert=False)[0].inverted
    image = Image.new("I;16", (40, 40), 9000)
    before = image.tobytes()
    model.predict(image)
    assert image.tobytes() == before


def test_a_damaged_picture_is_named_or_left_out(trained: TrainingResult, arrays: Arrays, tmp_path: Path) -> None:
    model = load(trained.folder)
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.fromarray(arrays[1][0][0]).save(good)
    bad.write_bytes(good.read_bytes()[:40])
    with pytest.raises(InputError, match=r"bad\.png: can't be read as PNG.*; `skip_bad=True` would leave it out"):
        model.predict([good, bad])
    (answer,) = model.predict([bad, good], skip_bad=True)
    assert answer.picture == str(good)
    first, second = predict_each(model, [file_source(bad), file_source(good)], 1)
    assert isinstance(first, Unreadable)
    assert first.picture == str(bad)
    assert isinstance(second, Prediction)
    with pytest.raises(InputError, match="picture 2: can't be read"):
        model.predict([good, good.read_bytes()[:40]])


def test_what_is_no_picture_gets_one_sentence(trained: TrainingResult, tmp_path: Path) -> None:
    model = load(trained.folder)
    for given, says in (
        ([], "no picture given; give files, folders"),
        (3, "a picture of type int given"),
        (
            np.zeros((2, 2)),
            r"float64 of shape \(2, 2\) .* \(N, channels, height, width\) .* for fractions from 0 to 1",
        ),
        (np.zeros((2, 8, 8, 5), np.uint8), "with 1 or 3 channels"),
        (np.zeros((0, 8), np.uint8), "with 1 or 3 channels"),
        (np.zeros((3, 8, 9), np.uint8), r"three grey ones or one with colours first; give \(3, 1, 8, 9\) or \(1, 3, 8"),
        (tmp_path, "is a folder with no picture"),
        (tmp_path / "none.png", "there is no such file or folder"),
    ):
        with pytest.raises(InputError, match=says):
            find_sources(given, 1)
    with pytest.raises(InputError, match="`top=0` given"):
        model.predict(np.zeros((8, 8), np.uint8), top=0)
    buffer = io.BytesIO()
    Image.new("L", (9, 9)).save(buffer, "GIF")
    with pytest.raises(InputError, match="can't be read as PNG or JPEG or WEBP"):
        model.predict(buffer.getvalue())


@pytest.mark.parametrize("top", [1.5, "3", None, True, 0])
def test_a_number_of_classes_is_a_whole_one(trained: TrainingResult, top: Any) -> None:
    with pytest.raises(InputError, match=f"`top={top!r}` given; give the number of classes to name, 1 or more"):
        load(trained.folder).predict(np.zeros((28, 28), np.uint8), top=top)


def test_what_is_neither_true_nor_false_is_refused(trained: TrainingResult) -> None:
    model, picture = load(trained.folder), np.zeros((28, 28), np.uint8)
    for method in (model.predict, model.prepare):
        with pytest.raises(InputError, match="`invert='x'` given; it is True, False, or None"):
            method(picture, invert="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`skip_bad='no'` given; it is True or False"):
        model.predict(picture, skip_bad="no")  # type: ignore[arg-type]


def test_an_empty_name_is_no_folder(trained: TrainingResult) -> None:
    with pytest.raises(InputError, match="an empty name given for a picture; give files, folders"):
        load(trained.folder).predict("")


@pytest.mark.parametrize("channels", [2, 4])
def test_transparency_is_not_many_pictures(trained: TrainingResult, channels: int) -> None:
    with pytest.raises(InputError, match=rf"of shape \(32, 32, {channels}\) given; give .* with 1 or 3 channels"):
        load(trained.folder).predict(np.zeros((32, 32, channels), np.uint8))
    assert len(load(trained.folder).predict(np.zeros((channels, 32, 32), np.uint8))) == channels


def test_prepared_pictures_are_what_predict_classifies(trained: TrainingResult, tmp_path: Path) -> None:
    model = load(trained.folder)
    for name, size in (("wide.png", (60, 20)), ("tall.png", (20, 60))):
        Image.effect_noise(size, 80).save(tmp_path / name)
    pixels = model.prepare(tmp_path)
    assert (pixels.dtype, pixels.shape) == (torch.uint8, (2, model.channels, *model.size))
    said = [answer.probability for answer in model.predict(tmp_path, top=1)]
    assert model(pixels).double().softmax(1).amax(1).tolist() == said


def test_a_network_that_starts_from_light_digits_knows_that_its_pictures_are_dark(tmp_path: Path) -> None:
    """Its normalisation is that of MNIST, whose mean of 0 stands for a dark background."""
    training, _ = load_images("mnist-mini")
    x, y = 255 - training.pixels[:60, 0].numpy(), training.labels[:60].numpy() % 2
    settings: dict[str, Any] = {"epochs": 1, "batch": 30, "out": tmp_path, "progress": False}
    result = train(data=(x, y), split=0.2, init_from="RKCNN-R-2@k=32.mnist", **settings)
    model = load(result.folder)
    assert model.mean == (0.0,)
    assert model.description.brightness == pytest.approx(x.mean() / 255, abs=0.02)
    assert not any(answer.inverted for answer in model.predict(x[:8][..., None]))
    assert load(export(result, output=tmp_path / "m.safetensors").path).description == model.description
    again = train(data=(255 - x, y), split=0.2, init_from=result.folder, **settings)
    assert all(answer.inverted for answer in load(again.folder).predict(x[:8][..., None]))
