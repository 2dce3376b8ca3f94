"""Norms, convolutions, and freezing them during a solve."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from rkcnn.model.layers import BatchNorm, Conv, Frozen, Layers, group_norm
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.solvers.solver_step import BatchReducer
from solvers.shares import Threads, shared


@pytest.mark.parametrize(
    ("width", "groups"), [(8, 8), (32, 32), (64, 32), (96, 32), (40, 20), (48, 24), (52, 26), (60, 30)]
)
def test_groups(width: int, groups: int) -> None:
    """min(32, C) where that divides, k groups on the paper's 2k-wide inputs where it doesn't (docs/spec.md, 3.4)."""
    assert group_norm(width).num_groups == groups


def test_batch_norm_is_the_authors() -> None:
    norm = BatchNorm(4)
    assert (norm.eps, norm.momentum) == (1e-3, 0.01)


def test_frozen_batch_norm_uses_the_batch_and_leaves_its_buffers() -> None:
    torch.manual_seed(0)
    norm, x = BatchNorm(4), torch.randn(3, 4, 5, 5)
    expected = norm.train()(x)
    moved = norm.running_mean.clone()  # type: ignore[union-attr]
    norm.frozen = True
    torch.testing.assert_close(norm(x), expected)
    assert torch.equal(norm.running_mean, moved)  # type: ignore[arg-type]
    assert norm.num_batches_tracked == 1


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


@pytest.mark.parametrize("frozen", [False, True])
def test_shares_are_normalised_as_the_whole_is(frozen: bool) -> None:
    """Also where shares are unequal and far from zero and from each other; buffers as one norm has them, or frozen."""
    torch.manual_seed(0)
    x = torch.randn(5, 4, 3, 3, dtype=torch.float64) + 1000 * torch.arange(5)[:, None, None, None]
    one = BatchNorm(4).double().train()
    one.frozen = frozen
    expected = one(x)

    def normalise(share: Tensor, reducer: BatchReducer) -> tuple[Tensor, BatchNorm]:
        norm = BatchNorm(4).double().train()
        norm.frozen, norm.reducer = frozen, reducer
        return norm(share), norm

    parts = shared(x, 2, normalise)
    torch.testing.assert_close(torch.cat([out for out, _ in parts]), expected, rtol=1e-10, atol=1e-10)
    for _, norm in parts:
        for name, value in one.named_buffers():
            torch.testing.assert_close(norm.get_buffer(name), value, rtol=1e-12, atol=0)
        assert not any(value.requires_grad for value in norm.buffers())


def test_a_norm_of_shares_asks_nobody_in_evaluation() -> None:
    norm, x = BatchNorm(4), torch.randn(3, 4, 5, 5)
    norm.reducer = Threads(2)  # would wait for a second share
    assert torch.equal(norm.eval()(x), BatchNorm(4).eval()(x))


def test_torchs_norm_has_torchs_defaults() -> None:
    norm, own = Layers("torch").norm(4), nn.BatchNorm2d(4)
    assert isinstance(norm, BatchNorm)
    assert (norm.eps, norm.momentum, list(norm.state_dict())) == (own.eps, own.momentum, list(own.state_dict()))
