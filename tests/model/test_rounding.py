"""Rounding of float32 in products: a run has its own, and a caller's comes back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import torch

from precisions import newer_precisions, torch_as_it_starts
from rkcnn.model.rounding import precision_set_to

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
        with precision_set_to(precision):
            assert newer_precisions()[3:] == ["ieee", "ieee", on_gpu, on_gpu, on_gpu]
            assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is (on_gpu == "tf32")
            assert torch.get_float32_matmul_precision() == ("high" if on_gpu == "tf32" else "highest")
        assert newer_precisions() == before


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_older_names_come_back(precision: str) -> None:
    with torch_as_it_starts():
        torch.set_float32_matmul_precision(precision)
        with suppress(KeyboardInterrupt), precision_set_to("tf32"):
            raise KeyboardInterrupt
        assert torch.get_float32_matmul_precision() == precision
        assert backends.cuda.matmul.allow_tf32 is (precision != "highest")


def test_a_part_follows_the_whole_as_before() -> None:
    with torch_as_it_starts():
        backends.fp32_precision = "tf32"
        with precision_set_to("fp32"):
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
        with precision_set_to("tf32"):
            assert torch.equal(one @ two, exact)


def test_blocks_may_lie_in_each_other() -> None:
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("medium")
        with precision_set_to("tf32"):
            with precision_set_to("fp32"):
                assert not backends.cuda.matmul.allow_tf32
            assert backends.cuda.matmul.allow_tf32
            assert backends.mkldnn.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "medium"


def test_the_last_of_several_threads_brings_the_callers_settings_back() -> None:
    """The first enters and leaves while the second is inside: a CPU doesn't round for the second then."""
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("medium")
        one, two = precision_set_to("tf32"), precision_set_to("fp32")
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        assert backends.mkldnn.matmul.fp32_precision == "ieee"
        assert not backends.cuda.matmul.allow_tf32
        two.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "medium"
