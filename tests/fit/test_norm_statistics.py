"""Batch norm statistics of the training images, for the time of an evaluation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from fit.bench import RECIPE, trainer
from rkcnn.fit import norm_statistics
from rkcnn.fit.norm_statistics import recomputed_norms
from rkcnn.fit.trainer import Trainer


def norms(run: Trainer) -> list[nn.BatchNorm2d]:
    return [module for module in run.network.modules() if isinstance(module, nn.BatchNorm2d)]


@pytest.mark.parametrize("spec", ["RKCNN-R-2@k=4", "RKNet-radau3@k=4,norm=bn", "ODENet-ab@k=4,adjoint=on,norm=bn"])
def test_the_network_has_them_inside_and_its_own_again_outside(spec: str) -> None:
    run = trainer(spec, recipe=replace(RECIPE, recompute_norms=True, dropout=0.3))
    run.learn(*run.prepare())
    before = {name: value.clone() for name, value in run.state().items()}
    with recomputed_norms(run):
        found = [norm.running_mean.clone() for norm in norms(run) if norm.running_mean is not None]
        assert all(
            not torch.equal(norm.running_var, torch.ones(4)) for norm in norms(run) if norm.running_var is not None
        )
    assert all(torch.equal(value, before[name]) for name, value in run.state().items())
    assert all(norm.momentum == 0.01 for norm in norms(run))
    with recomputed_norms(run):  # without dropout or augmentation, so the same again
        again = [norm.running_mean for norm in norms(run) if norm.running_mean is not None]
        assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))


def test_the_first_norm_has_the_statistics_of_all_images() -> None:
    """Whatever batches it has seen before."""
    run = trainer("RKCNN-R-2@k=4,norm=bn", recipe=replace(RECIPE, recompute_norms=True))
    run.learn(*run.prepare())
    batches = run.batches
    centre = torch.tensor([[2, 2, 0, 0, 0]]).repeat(56, 1)  # no augmentation: the middle of the padded image
    pixels = batches.make(torch.arange(56), centre).pixels
    with recomputed_norms(run), torch.no_grad():
        out = run.network.get_submodule("preprocessor.conv1")(pixels)
        norm = run.network.get_submodule("preprocessor.norm1")
        assert isinstance(norm, nn.BatchNorm2d)
        torch.testing.assert_close(norm.running_mean, out.mean((0, 2, 3)))
        torch.testing.assert_close(norm.running_var, out.var((0, 2, 3)), rtol=1e-4, atol=1e-6)


def test_of_many_images_some_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_statistics, "MOST_IMAGES", 20)
    monkeypatch.setattr(norm_statistics, "BATCH", 10)
    run = trainer(recipe=replace(RECIPE, recompute_norms=True))
    with recomputed_norms(run):
        (count,) = {int(norm.num_batches_tracked) for norm in norms(run) if norm.num_batches_tracked is not None}
    assert count == 2
    chosen = run.batches.images.choose(20)
    assert len(chosen) == 20
    assert torch.equal(chosen.pixels, run.batches.images.choose(20).pixels)


@pytest.mark.parametrize("changes", [{}, {"recompute_norms": True, "head_only": True}])
def test_other_recipes_keep_the_running_averages(changes: dict[str, bool]) -> None:
    run = trainer(recipe=replace(RECIPE, **changes))  # type: ignore[arg-type]
    run.learn(*run.prepare())
    before = [norm.running_mean.clone() for norm in norms(run) if norm.running_mean is not None]
    with recomputed_norms(run):
        inside = [norm.running_mean for norm in norms(run) if norm.running_mean is not None]
        assert all(torch.equal(a, b) for a, b in zip(before, inside, strict=True))
