"""Torch's settings for products and convolutions: a run has its own, and a caller's come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from precisions import newer_precisions, torch_as_it_starts
from rkcnn.model.backends import backends_set_to

backends: Any = torch.backends

CALLERS = {
    "nothing": "None",
    "all": "backends.fp32_precision = 'tf32'",
    "all exact": "backends.fp32_precision = 'ieee'",
    "convolutions on a GPU": "backends.cudnn.conv.fp32_precision = 'ieee'",
    "a GPU": "backends.cudnn.fp32_precision = 'tf32'",
    "products on a GPU": "backends.cuda.matmul.fp32_precision = 'tf32'",
    "products on a CPU": "backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "convolutions on a CPU": "backends.mkldnn.conv.fp32_precision = 'bf16'",
    "medium, by the older name": "torch.set_float32_matmul_precision('medium')",
    "high, by the older name": "torch.set_float32_matmul_precision('high')",
}
"""What a caller may have set."""


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("precision", "on_gpu"), [("fp32", "ieee"), ("tf32", "tf32"), ("bf16", "tf32")])
def test_a_run_has_its_own_precision_whatever_the_caller_has_set(caller: str, precision: str, on_gpu: str) -> None:
    with torch_as_it_starts():
        exec(CALLERS[caller])
        before = newer_precisions()
        with backends_set_to(precision):
            assert newer_precisions()[3:] == ["ieee", "ieee", on_gpu, on_gpu, on_gpu]
            assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is (on_gpu == "tf32")
            assert torch.get_float32_matmul_precision() == ("high" if on_gpu == "tf32" else "highest")
        assert newer_precisions() == before


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_older_names_come_back(precision: str) -> None:
    with torch_as_it_starts():
        torch.set_float32_matmul_precision(precision)
        with suppress(KeyboardInterrupt), backends_set_to("tf32"):
            raise KeyboardInterrupt
        assert torch.get_float32_matmul_precision() == precision
        assert backends.cuda.matmul.allow_tf32 is (precision != "highest")


def test_a_part_follows_the_whole_as_before() -> None:
    with torch_as_it_starts():
        backends.fp32_precision = "tf32"
        with backends_set_to("fp32"):
            pass
        backends.fp32_precision = "ieee"
        assert set(newer_precisions()) == {"ieee"}


def test_exact_products_on_a_cpu() -> None:
    """With `medium`, a CPU that has units for bfloat16 rounds to it; others have nothing to show here."""
    torch.manual_seed(0)
    one, two = torch.randn(256, 256), torch.randn(256, 256)
    exact = one @ two
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("medium")
        with backends_set_to("tf32"):
            assert torch.equal(one @ two, exact)


@contextmanager
def convolutions_set_to(deterministic: bool, benchmark: bool) -> Iterator[None]:
    cudnn = backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = deterministic, benchmark
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before


def choice() -> tuple[bool, bool]:
    return backends.cudnn.deterministic, backends.cudnn.benchmark


def test_blocks_may_lie_in_each_other() -> None:
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("medium")
        with backends_set_to("tf32"):
            with backends_set_to("fp32"):
                with backends_set_to("tf32"):
                    assert backends.cuda.matmul.allow_tf32
                assert not backends.cuda.matmul.allow_tf32
            assert backends.cuda.matmul.allow_tf32
            assert backends.mkldnn.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "medium"


def test_a_block_that_says_nothing_of_convolutions_leaves_them_as_around_it() -> None:
    with torch_as_it_starts(), convolutions_set_to(False, True):
        with backends_set_to("fp32"):
            assert choice() == (False, True)
        with backends_set_to("fp32", deterministic=True, benchmark=False):
            with backends_set_to("tf32"):
                assert choice() == (True, False)
            with backends_set_to("tf32", benchmark=True):
                assert choice() == (True, True)
            assert choice() == (True, False)
        assert choice() == (False, True)


def test_the_last_of_several_threads_brings_the_callers_settings_back() -> None:
    """The first enters and leaves while the second is inside, whose settings then hold on."""
    with torch_as_it_starts(), convolutions_set_to(False, True):
        torch.set_float32_matmul_precision("medium")
        one, two = (backends_set_to(precision, deterministic=True, benchmark=False) for precision in ("tf32", "fp32"))
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        assert backends.mkldnn.matmul.fp32_precision == "ieee"
        assert not backends.cuda.matmul.allow_tf32
        assert choice() == (True, False)
        two.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "medium"
        assert choice() == (False, True)


def test_a_block_that_ends_is_not_taken_for_another_of_its_precision() -> None:
    with torch_as_it_starts():
        one, two, three = (backends_set_to(precision) for precision in ("tf32", "fp32", "tf32"))
        for block in (one, two, three):
            block.__enter__()
        three.__exit__(None, None, None)
        assert not backends.cuda.matmul.allow_tf32, "the last that is still entered is fp32"
        two.__exit__(None, None, None)
        assert backends.cuda.matmul.allow_tf32
        one.__exit__(None, None, None)
        assert not backends.cuda.matmul.allow_tf32


def test_a_block_that_could_not_be_entered_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("high")
        with monkeypatch.context() as patched:
            patched.setattr("rkcnn.model.backends.set_precision", Mock(side_effect=RuntimeError("torch refuses")))
            with pytest.raises(RuntimeError, match="torch refuses"), backends_set_to("fp32"):
                pass
        assert torch.get_float32_matmul_precision() == "high"
        with backends_set_to("fp32"):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
