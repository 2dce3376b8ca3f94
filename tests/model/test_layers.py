"""Norms, convolutions, and freezing them during a solve."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.layers import Conv, Frozen, Layers, group_norm
from rkcnn.model.steps.ode import OdeFunction


@pytest.mark.parametrize(
    ("width", "groups"), [(8, 8), (32, 32), (64, 32), (96, 32), (40, 20), (48, 24), (52, 26), (60, 30)]
)
def test_groups(width: int, groups: int) -> None:
    """min(32, C) where that divides, k groups on the paper's 2k-wide inputs where it doesn't (docs/spec.md, 3.4)."""
    assert group_norm(width).num_groups == groups


@pytest.mark.parametrize("kind", ["bn", "gn"])
def test_frozen_f_is_one_function(kind: str) -> None:
    torch.manual_seed(0)
    f = OdeFunction(4, Layers(kind, dropout=0.5)).train()
    y = torch.randn(2, 4, 6, 6)
    frozen = Frozen(f)
    assert torch.equal(frozen(0.5, y), frozen(0.5, y))
    assert not torch.equal(Frozen(f)(0.5, y), frozen(0.5, y))  # another solve, another mask
    assert not torch.equal(f(0.5, y), f(0.5, y))
    assert all(conv.masks is None for conv in f.modules() if isinstance(conv, Conv))
    assert not any(norm.frozen for norm in f.modules() if isinstance(norm, BatchNorm))


def test_norms_are_released_when_f_fails() -> None:
    f = OdeFunction(4, Layers("bn"))
    with pytest.raises(RuntimeError):
        Frozen(f)(0.0, torch.randn(2, 3, 6, 6))
    assert not any(norm.frozen for norm in f.modules() if isinstance(norm, BatchNorm))


def test_columns_take_part_of_a_weight() -> None:
    conv = Conv(6, 4, 3)
    x = torch.randn(2, 2, 5, 5)
    expected = nn.functional.conv2d(x, conv.weight[:, 2:4], padding=1)
    assert torch.equal(conv(x, slice(2, 4)), expected)


def test_dropout_keeps_its_mean_and_its_rate() -> None:
    torch.manual_seed(0)
    conv = Conv(1, 1, 1, dropout=0.2).train()
    nn.init.ones_(conv.weight)
    out = conv(torch.ones(1, 1, 200, 200)).detach()
    assert out.unique().tolist() == pytest.approx([0, 1.25])
    assert float(out.mean()) == pytest.approx(1, abs=0.02)


def test_torchs_norm_has_torchs_defaults() -> None:
    norm, own = Layers("torch").norm(4), nn.BatchNorm2d(4)
    assert isinstance(norm, BatchNorm)
    assert (norm.eps, norm.momentum, list(norm.state_dict())) == (own.eps, own.momentum, list(own.state_dict()))
