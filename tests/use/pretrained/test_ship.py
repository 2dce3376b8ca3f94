"""What puts weights into the package."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.record.result import read_result
from rkcnn.use.load import load
from rkcnn.use.pretrained import ship as module
from rkcnn.use.pretrained.ship import HERE, main, most_changed, round_weights, ship
from rkcnn.use.train import train


@pytest.fixture
def run(shipped: Path) -> Path:
    (folder,) = shipped.glob("runs/*/*/*/*")
    return folder


def test_convolutions_and_linear_layers_alone_are_halved(shipped: Path, run: Path, pretrained: str) -> None:
    stored = load_file(shipped / "weights" / f"{pretrained}.safetensors")
    trained = load_file(run / "weights.safetensors")
    network = load(run).network
    modules = dict(network.named_modules())
    assert stored.keys() == trained.keys()
    for name, value in stored.items():
        owner, _, kind = name.rpartition(".")
        halved = kind == "weight" and isinstance(modules[owner], nn.Conv2d | nn.Linear)
        assert value.dtype == (torch.float16 if halved else trained[name].dtype), name
        assert torch.equal(value, trained[name].to(value.dtype)), name
    halves = [name for name, value in stored.items() if value.dtype == torch.float16]
    assert len(halves) > 3
    assert any(name.endswith("running_var") for name in stored), "the network has statistics, which stay"


def test_it_says_what_the_stored_numbers_get_wrong(pretrained: str) -> None:
    from rkcnn.use.pretrained.catalogue import read_catalogue

    (weights,) = read_catalogue()
    storage = weights.storage
    images = load_data_set("mnist-mini")[1]
    answers = load(pretrained)(images.pixels).argmax(1)
    assert (storage.weights, storage.images, storage.first_images) == ("fp16", 2000, 500)
    assert storage.wrong == int((answers != images.labels).sum())
    assert storage.first_wrong == int((answers != images.labels)[:500].sum())
    assert storage.wrong_before == round(2000 * (weights.result.error or 0))
    assert 0 < storage.logit_difference < 0.05


def test_rounding_that_changes_the_error_is_not_kept(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HALVES", {"fp8": torch.float8_e5m2})
    kept = ship(run, tmp_path, "cpu")
    assert kept.storage.weights == "fp32"
    assert (kept.storage.wrong, kept.storage.logit_difference) == (kept.storage.wrong_before, 0)
    assert all(
        torch.equal(value, load_file(run / "weights.safetensors")[name]) for name, value in load_file(kept.path).items()
    )


def test_a_tenth_of_the_standard_error_is_no_change_of_the_error() -> None:
    assert most_changed(2000, 10_000) == pytest.approx(4.0)  # sqrt(10,000 x 0.2 x 0.8) = 40
    assert most_changed(38, 10_000) == 1.0
    assert most_changed(0, 500) == 1.0


def test_the_finer_half_is_chosen(run: Path) -> None:
    """The weights of these networks lie far inside the range of float16, which has three bits more than bfloat16."""
    network, tensors = load(run).network, load_file(run / "weights.safetensors")
    fine, coarse = (round_weights(network, tensors, dtype) for dtype in (torch.float16, torch.bfloat16))
    errors = [
        max(float((each[name].float() - value).abs().max()) for name, value in tensors.items() if value.dim() > 1)
        for each in (fine, coarse)
    ]
    assert errors[0] < errors[1] / 4


def test_runs_that_are_not_to_be_shipped(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is on mnist-mini; ship runs on mnist, fashion-mnist, cifar10"):
        ship(run)
    assert HERE.name == "pretrained"
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes((run / "weights.safetensors").read_bytes())
    with pytest.raises(InputError, match="has no record beside it; give the folder of a finished run"):
        ship(weights, tmp_path)
    result = read_result(run / "result.json")
    wrong = tuple(replace(epoch, held_out_error=0.9) for epoch in result.epochs)
    for change, says in (
        (
            {"error": 0.9, "error_best": 0.9, "epochs": wrong},
            r"test images wrong in float32 here, and its record says an error of 0\.9",
        ),
        ({"run": replace(result.run, data="mnist-mini~validation-50")}, "is on mnist-mini~validation-50; ship runs on"),
        (
            {"run": replace(result.run, recipe=replace(result.run.recipe, initial_weights="012345678901"))},
            "started from other weights",
        ),
        ({"run": replace(result.run, seed=3)}, "has seed 3; ship seed 0, since to choose among seeds is to choose on"),
    ):
        (tmp_path / "result.json").write_bytes(replace(result, **change).to_json())
        with pytest.raises(InputError, match=says):
            ship(weights, tmp_path / "none", "cpu")
    assert not (tmp_path / "none").exists()


def test_the_command_prints_what_it_wrote(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run), "--into", str(tmp_path), "--device", "cpu"]) == 0
    assert "MB in fp16; " in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["RKCNN-E-2@k=4.mnist-mini.safetensors"]
    assert main([str(tmp_path / "none"), "--into", str(tmp_path)]) == 2
    assert "none doesn't exist" in capsys.readouterr().err


def test_training_starts_from_a_name(pretrained: str, tmp_path: Path, shipped: Path) -> None:
    again = train(init_from=pretrained, epochs=1, max_steps_per_epoch=1, lr=0.0, out=tmp_path, progress=False)
    assert again.run.network == "RKCNN-E-2@k=4"
    assert again.run.recipe.initial_weights
    stored = load_file(shipped / "weights" / f"{pretrained}.safetensors")
    name = next(name for name, value in stored.items() if value.dtype == torch.float16)
    assert torch.equal(load_file(again.folder / "weights.safetensors")[name], stored[name].float())
    assert json.loads((again.folder / "config.json").read_bytes())["network"] == "RKCNN-E-2@k=4"
