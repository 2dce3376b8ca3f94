"""Batch norm: the authors' constants, over several processes, and with exact sums where channels come last."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.model import batch_norm
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.solvers.solver_step import BatchReducer
from solvers.shares import Threads, shared


@pytest.fixture
def any_number_of_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pixels are computed by rows too, and a tensor in several parts."""
    monkeypatch.setattr(batch_norm, "MANY", 0)
    monkeypatch.setattr(batch_norm, "CACHED", 100)


def by_rows(width: int) -> BatchNorm:
    norm = BatchNorm(width).train()
    norm.by_rows = True
    return norm


def channels_last(x: Tensor) -> Tensor:
    return x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()


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


def test_sums_of_many_pixels_are_exact_with_channels_last() -> None:
    """Torch's own are off by 7e-5 here."""
    torch.manual_seed(0)
    x = torch.randn(256, 2, 32, 32) / 2 + 2
    norm = by_rows(2)
    norm.momentum = 1.0
    norm(channels_last(x))
    assert norm.running_mean is not None
    assert norm.running_var is not None
    torch.testing.assert_close(norm.running_mean.double(), x.double().mean((0, 2, 3)), rtol=1e-6, atol=0)
    torch.testing.assert_close(norm.running_var.double(), x.double().var((0, 2, 3)), rtol=3e-6, atol=0)


@pytest.mark.usefixtures("any_number_of_pixels")
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)).filter(
        lambda shape: shape[0] * shape[2] * shape[3] > 1
    ),
    frozen=st.booleans(),
    seed=st.integers(0, 99),
)
def test_by_rows_is_batch_norm(shape: tuple[int, int, int, int], frozen: bool, seed: int) -> None:
    """Outputs, gradients and buffers, for any shape; outputs and gradients have channels last."""
    torch.manual_seed(seed)
    x, upstream = torch.randn(shape, dtype=torch.float64) * 3 + 5, torch.randn(shape, dtype=torch.float64)
    found = []
    for norm, images in ((BatchNorm(shape[1]), x.clone().requires_grad_()), (by_rows(shape[1]), channels_last(x))):
        norm.double().frozen = frozen
        torch.nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(1))
        torch.nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(2))
        out = norm(images)
        gradients = torch.autograd.grad(out, (images, norm.weight, norm.bias), upstream)
        found.append((out, *gradients, *norm.buffers()))
        assert not any(buffer.requires_grad for buffer in norm.buffers())
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-8, atol=1e-8)
    assert found[1][0].is_contiguous(memory_format=torch.channels_last)
    assert found[1][1].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.usefixtures("any_number_of_pixels")
def test_gradients_by_rows_are_those_of_differences() -> None:
    torch.manual_seed(0)
    norm, x = by_rows(3).double(), torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    norm.frozen = True
    assert torch.autograd.gradcheck(norm, (x,))


@pytest.mark.usefixtures("any_number_of_pixels")
def test_bf16_images_have_float32_statistics_by_rows() -> None:
    torch.manual_seed(0)
    x = torch.randn(8, 4, 6, 6).bfloat16()
    norm, plain = by_rows(4), BatchNorm(4).train()
    images, contiguous = channels_last(x), x.clone().requires_grad_()
    out, expected = norm(images), plain(contiguous)
    out.float().square().sum().backward()
    expected.float().square().sum().backward()
    assert (out.dtype, images.grad.dtype) == (torch.bfloat16, torch.bfloat16)  # type: ignore[union-attr]
    torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(images.grad, contiguous.grad, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(norm.running_var, plain.running_var, rtol=1e-5, atol=0)


def test_a_slice_of_channels_by_rows() -> None:
    torch.manual_seed(0)
    x = channels_last(torch.randn(20, 6, 16, 16))
    expected = F.batch_norm(x[:, 1:4].contiguous(), None, None, training=True, eps=1e-3)
    torch.testing.assert_close(by_rows(3)(x[:, 1:4]), expected, rtol=1e-5, atol=1e-5)


def test_evaluation_is_the_same_by_rows() -> None:
    x = torch.randn(20, 3, 16, 16)
    assert torch.equal(by_rows(3).eval()(x), BatchNorm(3).eval()(x))


@pytest.mark.usefixtures("any_number_of_pixels")
def test_a_second_derivative_by_rows_is_refused() -> None:
    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    with pytest.raises(InputError, match="a batch norm with channels last on a CPU has first derivatives only"):
        torch.autograd.grad(by_rows(3)(x).square().sum(), x, create_graph=True)
