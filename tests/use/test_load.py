"""A trained network from its files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from registered import forgotten
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.model.register import register
from rkcnn.record.result import read_result
from rkcnn.solvers.tableau import Tableau
from rkcnn.use.images import load_images
from rkcnn.use.load import Classifier, load
from rkcnn.use.train import TrainingResult, train
from use.conftest import Arrays


def test_a_folder_and_its_weights_give_the_same(trained: TrainingResult, tmp_path: Path) -> None:
    model = load(trained.folder)
    assert (model.name, model.classes, model.channels, model.size) == (
        "ResNet@k=4",
        tuple("0123456789"),
        1,
        (28, 28),
    )
    assert model.result == read_result(trained.folder / "result.json")
    shutil.copy(trained.folder / "weights.safetensors", tmp_path / "mine.safetensors")
    alone = load(str(tmp_path / "mine.safetensors"))
    assert alone.result is None
    pairs = zip(alone.network.state_dict().values(), model.network.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert repr(model) == "<Classifier: ResNet@k=4, images of 28 x 28 x 1, 10 classes (0, 1, 2, ...)>"


def test_weights_of_a_method_that_was_registered_anew_say_so(arrays: Arrays, tmp_path: Path) -> None:
    def method(node: float) -> Tableau:
        """Of order 2 for every node, with other coefficients for each."""
        weight = 1 / (2 * node)
        return Tableau("mine", 2, a=((0.0, 0.0), (node, 0.0)), b=(1 - weight, weight), c=(0.0, node))

    with forgotten():
        register(method(0.5))
        result = train("RKNet-mine@k=4", arrays, epochs=1, batch=50, out=tmp_path, progress=False)
        load(result.folder)
    with forgotten():
        register(method(0.75))
        with pytest.warns(UserWarning, match="RKNet-mine@k=4 was trained with another version of the step or method"):
            load(result.folder)


def test_it_normalises_as_training_does(trained: TrainingResult, arrays: Arrays) -> None:
    model = load(trained.folder)
    training, test = load_images(arrays)
    assert (model.mean, model.std) == (training.mean, training.std)
    batch = Batches(test, 50, seed=0, shuffle=False).at(0, 0)
    torch.testing.assert_close(model.normalise(test.pixels), batch.pixels, atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(model(test.pixels).argmax(1), np.load(trained.folder / "predictions.npy"))


@pytest.mark.parametrize("precision", [torch.float64, torch.float16, torch.bfloat16])
def test_a_network_may_be_converted(
    trained: TrainingResult, digits: tuple[Images, Images], precision: torch.dtype
) -> None:
    pixels = digits[1].pixels[:4]
    model, converted = load(trained.folder), load(trained.folder)
    converted.network.to(precision)
    torch.testing.assert_close(converted(pixels).float(), model(pixels), rtol=0.05, atol=0.05)
    for given in (pixels, pixels / 255):
        assert {each.dtype for each in converted.features(given)} == {precision}


def test_images_of_another_kind_are_refused(trained: TrainingResult, digits: tuple[Images, Images]) -> None:
    model = load(trained.folder)
    pixels = digits[0].pixels[:2]
    for given in (pixels.float(), pixels[0], pixels.expand(2, 3, 28, 28)):
        with pytest.raises(InputError, match=r"takes uint8 images of shape \(N, 1, height, width\)"):
            model.normalise(given)


def test_features_of_a_path_are_refused_in_a_sentence(trained: TrainingResult) -> None:
    with pytest.raises(InputError, match="of type str given; give a tensor or an array, which `prepare` makes"):
        load(trained.folder).features("digit.png")  # type: ignore[arg-type]


def test_features_of_each_period_with_gradients(trained: TrainingResult, digits: tuple[Images, Images]) -> None:
    model = load(trained.folder)
    pixels = digits[1].pixels[:3]
    (features,) = model.features(pixels)
    assert features.shape == (3, 4, 6, 6)
    fractions = (pixels / 255).requires_grad_()
    (same,) = model.features(fractions)
    torch.testing.assert_close(same, features)
    same.sum().backward()
    assert fractions.grad is not None
    assert fractions.grad.abs().sum() > 0
    with pytest.raises(InputError, match=r"floats from 0 to 255 given; give fractions from 0 to 1, or uint8"):
        model.features(pixels.float())
    with pytest.raises(InputError, match=r"takes uint8 images of shape \(N, 1, height, width\)"):
        model.features(pixels.expand(3, 3, 28, 28))


def test_the_name_of_a_network_leads_on(tmp_path: Path) -> None:
    for name in ("ResNet@k=32", "resnet-1001"):
        with pytest.raises(InputError, match=f"{name} is the name of a network, of which the package has no trained"):
            load(name)
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"weights: it is not a safetensors file; give a finished run's folder or"):
        load(tmp_path / "model.onnx")


def test_pretrained_weights_bring_their_record(pretrained: str, shipped: Path) -> None:
    model = load(pretrained)
    (run,) = shipped.glob("runs/*/*/*/*/result.json")
    assert model.result == read_result(run)
    assert (model.name, model.size, model.classes) == ("RKCNN-E-2@k=4", (28, 28), tuple("0123456789"))
    assert {value.dtype for value in model.network.parameters()} == {torch.float32}


def test_a_result_that_is_a_link_to_nothing_is_named(trained: TrainingResult, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained.folder, folder)
    (folder / "result.json").unlink()
    (folder / "result.json").symlink_to("nothing")
    with pytest.raises(InputError, match=r"result\.json: can't be read \(it is a link"):
        load(folder / "weights.safetensors")


def test_what_holds_no_network_gets_one_sentence(trained: TrainingResult, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none doesn't exist; give the folder of a finished run"):
        load(tmp_path / "none")
    with pytest.raises(InputError, match=r"holds no result\.json; give the folder of a finished run"):
        load(tmp_path)
    result = read_result(trained.folder / "result.json")
    shutil.copy(trained.folder / "weights.safetensors", tmp_path)
    (tmp_path / "result.json").write_bytes(replace(result, run=replace(result.run, network="ResNet@k=8")).to_json())
    with pytest.raises(InputError, match=r"holds ResNet@k=4, and the run beside it is of ResNet@k=8"):
        load(tmp_path)


def test_features_of_numpys_fractions_and_of_what_is_no_image(trained: TrainingResult) -> None:
    model = load(trained.folder)
    fractions = np.random.default_rng(0).random((2, 1, 28, 28))  # float64
    (features,) = model.features(fractions)
    (same,) = model.features(torch.from_numpy(fractions).float())
    torch.testing.assert_close(features, same)
    for shape in ((2, 3, 28, 28), (1, 28, 28)):
        with pytest.raises(InputError, match=r"of shape .* given; give \(N, 1, height, width\)"):
            model.features(np.zeros(shape))
    fractions[0, 0, 0, 0] = np.nan
    with pytest.raises(InputError, match="give fractions from 0 to 1, or uint8"):
        model.features(fractions)


def test_a_name_that_no_file_can_have_gets_one_sentence() -> None:
    with pytest.raises(InputError):
        load("x" * 300)
    with pytest.raises(InputError, match="a repository on Hugging Face is named OWNER/NAME"):
        Classifier.from_pretrained("x" * 300)


def test_no_name_is_not_the_current_folder(trained: TrainingResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an unset variable of a shell gives it."""
    monkeypatch.chdir(trained.folder)
    for read in (load, Classifier.from_pretrained):
        with pytest.raises(InputError, match="an empty name given for a trained network; give the folder of a fin"):
            read("")
    for folder in ("", None):
        with pytest.raises(InputError, match="given; it is the path of the folder to write"):
            load(".").save_pretrained(folder)  # type: ignore[arg-type]


def test_arrays_are_taken_as_tensors_are(trained: TrainingResult, digits: tuple[Images, Images]) -> None:
    model, pixels = load(trained.folder), digits[1].pixels[:3]
    assert torch.equal(model(pixels.numpy()), model(pixels))
    assert torch.equal(model.normalise(pixels.numpy()), model.normalise(pixels))
    for method in (model, model.normalise, model.features):
        with pytest.raises(InputError, match="images of type str given; give a tensor or an array"):
            method("x")  # type: ignore[arg-type]


def test_no_images_have_no_features(trained: TrainingResult) -> None:
    model = load(trained.folder)
    assert model(torch.zeros(0, 1, 28, 28, dtype=torch.uint8)).shape == (0, 10)
    for dtype in (torch.uint8, torch.float32):
        assert [each.shape for each in model.features(torch.zeros(0, 1, 28, 28, dtype=dtype))] == [(0, 4, 6, 6)]
