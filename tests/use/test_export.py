"""Exported files give what the network gives."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import rkcnn
from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model
from rkcnn.use import export as module
from rkcnn.use.export import describe_model, export, find_real_images
from rkcnn.use.load import Classifier, load
from rkcnn.use.train import TrainingResult
from zoo import SOLVED


def expected(model: Classifier, pixels: torch.Tensor) -> np.ndarray:
    return model(pixels).softmax(1).numpy()


def untrained(name: str, images: Images) -> Classifier:
    torch.manual_seed(0)
    description = NetworkDescription.of(name, images)
    return Classifier(create_model(name, 10, description.channels).eval(), description)


def test_onnxruntime_runs_it(trained: TrainingResult, digits: tuple[Images, Images], tmp_path: Path) -> None:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    done = export(trained, "onnx", output=tmp_path / "new" / "model.bin")
    assert (done.path, done.to, done.images) == (tmp_path / "new" / "model.bin", "onnx", 256)
    assert done.checked_on == "mnist-mini", "a run on arrays has no images of its own"
    assert done.difference < 1e-5
    session = onnxruntime.InferenceSession(done.path, providers=["CPUExecutionProvider"])
    model = load(trained.folder)
    for count in (1, 7):
        pixels = digits[1].pixels[:count]
        (found,) = session.run(["probabilities"], {"images": pixels.numpy()})
        np.testing.assert_allclose(found, expected(model, pixels), atol=1e-5)
    (given,) = session.get_inputs()
    assert (given.type, given.shape) == ("tensor(uint8)", ["batch", 1, 28, 28])
    metadata = session.get_modelmeta().custom_metadata_map
    assert metadata == describe_model(model)
    assert metadata["name"] == "ResNet@k=4"
    assert json.loads(metadata["classes"]) == list("0123456789")
    assert json.loads(metadata["record"])["error"] == trained.error


def test_torch_loads_a_pt2_with_its_metadata(
    trained: TrainingResult, digits: tuple[Images, Images], tmp_path: Path
) -> None:
    model = load(trained.folder)
    model.network.train()
    done = export(model, output=tmp_path / "model.pt2")
    assert model.network.training, "the network given stays as it was"
    extra = {"rkcnn.json": ""}
    run = torch.export.load(done.path, extra_files=extra).module()
    pixels = digits[1].pixels[:5]
    np.testing.assert_allclose(run(pixels).numpy(), expected(load(trained.folder), pixels), atol=1e-5)
    assert json.loads(extra["rkcnn.json"]) == describe_model(model)


def test_safetensors_are_loaded_again(trained: TrainingResult, digits: tuple[Images, Images], tmp_path: Path) -> None:
    done = export(trained.folder, output=str(tmp_path / "model.safetensors"))
    model, again = load(trained.folder), load(done.path)
    assert again.description == model.description
    assert torch.equal(again(digits[1].pixels[:5]), model(digits[1].pixels[:5]))
    with safe_open(done.path, "pt") as file:
        assert json.loads(file.metadata()["record"])["run"]["seed"] == 0


@pytest.mark.parametrize("kind", ["onnx", "pt2", "safetensors"])
def test_it_names_no_file_or_folder_of_this_machine(kind: str, trained: TrainingResult, tmp_path: Path) -> None:
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    model = load(trained.folder)
    assert model.result is not None
    recipe = replace(model.result.run.recipe, initial_weights="0123456789ab")
    run = replace(model.result.run, data=f"folder:{tmp_path}/photos~size-28", recipe=recipe)
    data = {**model.result.data, "init_from": f"{tmp_path}/runs/mnist/ResNet@k=4/mini/seed-0"}
    model = replace(model, result=replace(model.result, run=run, data=data))
    content = export(model, kind, output=tmp_path / f"model.{kind}").path.read_bytes()
    for place in (Path(rkcnn.__file__).parent, Path(torch.__file__).parent, Path.cwd(), Path.home(), tmp_path):
        assert str(place).encode() not in content, place
    assert b".py" not in content, "no stack trace"
    assert b"def forward" not in content, "no line of the source"
    assert b"folder:photos~size-28" in content
    assert b"mnist/ResNet@k=4/mini/seed-0" in content


@pytest.fixture
def colour(digits: tuple[Images, Images]) -> Classifier:
    """A network for three channels, each with a normalisation of its own."""
    grey = digits[1].choose(40)
    pixels = torch.cat([grey.pixels, 255 - grey.pixels, grey.pixels.flip(3)], 1)
    return untrained("ResNet@k=4", replace(grey, pixels=pixels, mean=(0.1, 0.9, 0.5), std=(0.1, 0.3, 0.9)))


def test_a_converted_network_is_exported_in_float32(trained: TrainingResult, tmp_path: Path) -> None:
    model = load(trained.folder)
    model.network.half()
    assert export(model, output=tmp_path / "m.pt2").difference < 1e-5
    assert model.network.half() is model.network


def test_every_channel_has_its_own_normalisation(colour: Classifier, tmp_path: Path) -> None:
    done = export(colour, output=tmp_path / "model.pt2")
    assert done.difference < 1e-5
    pixels = torch.randint(0, 256, (3, 3, 28, 28), dtype=torch.uint8)
    np.testing.assert_allclose(
        torch.export.load(done.path).module()(pixels).numpy(), expected(colour, pixels), atol=1e-5
    )


def test_a_wrong_normalisation_is_found_before_the_file_is_written(
    colour: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EqualScale(module.ProbabilityModel):
        def __init__(self, classifier: Classifier) -> None:
            super().__init__(classifier)
            self.scale[:] = self.scale.mean()

    monkeypatch.setattr(module, "ProbabilityModel", EqualScale)
    with pytest.raises(InputError, match=r"gives probabilities that differ from the network's by up to 0\.\d+ on 256"):
        export(colour, output=tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


def test_it_is_checked_on_the_runs_own_images_where_they_are(
    trained: TrainingResult, digits: tuple[Images, Images], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, test = load(trained.folder), digits[1]
    monkeypatch.setattr(module, "load_tested_images", lambda result, sources: replace(test, name="mine"))
    pixels, name = find_real_images(model)
    assert (pixels.shape, name) == ((256, 1, 28, 28), "mine")
    few = replace(test, pixels=test.pixels[:2], labels=test.labels[:2])
    monkeypatch.setattr(module, "load_tested_images", lambda result, sources: few)
    assert torch.equal(find_real_images(model)[0], few.pixels)
    colour = replace(model, result=None, description=replace(model.description, channels=3, size=(20, 30)))
    pixels, name = find_real_images(colour)
    assert (pixels.shape, pixels.dtype, name) == ((256, 3, 20, 30), torch.uint8, "mnist-mini")


@pytest.mark.parametrize("name", [name for name in SOLVED if "adjoint" not in name])
def test_a_solver_that_decides_by_the_image_is_refused(
    name: str, digits: tuple[Images, Images], tmp_path: Path
) -> None:
    model = untrained(name, digits[1])
    for kind in ("onnx", "pt2"):
        with pytest.raises(InputError, match=r"can't be exported to \w+: its solver .* export it to safetensors, or"):
            export(model, kind, output=tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_the_weights_of_a_run_are_not_overwritten(trained: TrainingResult) -> None:
    path = trained.folder / "weights.safetensors"
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"holds the weights of a run, which would be overwritten; name another file"):
        export(trained, output=path)
    assert path.read_bytes() == before


def test_what_cant_be_written_gets_one_sentence(
    trained: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InputError, match=r"`to=onxx` given \(did you mean onnx\?\); formats are onnx, pt2, safetensors"
    ):
        export(trained, "onxx", output=tmp_path / "a")
    with pytest.raises(InputError, match=r"has none of the suffixes \.onnx, \.pt2, \.safetensors; say which format"):
        export(trained, output=tmp_path / "a.bin")
    with pytest.raises(InputError, match="is a folder"):
        export(trained, "pt2", output=tmp_path)
    with pytest.raises(InputError, match=r"`to=3` given; formats are onnx, pt2, safetensors"):
        export(trained, 3, output=tmp_path / "a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"`output=None` given; it is the path of the file to write"):
        export(trained, output=None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"`to=safetensors` given with .*a\.onnx, whose suffix says onnx; leave one"):
        export(trained, "safetensors", output=tmp_path / "a.onnx")
    monkeypatch.setattr(module, "MOST_DIFFERENCE", -1.0)
    with pytest.raises(
        InputError, match="differ from the network's by up to 0 on 256 images of mnist-mini, so nothing"
    ):
        export(trained, output=tmp_path / "a.safetensors")

    def find_none(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(module, "find_spec", find_none)
    with pytest.raises(
        InputError, match=r"needs onnx and onnxscript and onnxruntime, .*: pip install .* '\.\[onnx\]' in the checkout"
    ):
        export(trained, output=tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())
