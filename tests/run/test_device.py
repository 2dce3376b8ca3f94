"""The device that runs are trained on."""

from __future__ import annotations

import ctypes
import sys
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from precisions import torch_as_it_starts
from rkcnn.error import InputError
from rkcnn.run import device
from rkcnn.run.device import (
    describe_machine,
    forget_peak,
    keep_freed_memory,
    peak_bytes,
    pick_device,
    usual_torch,
)


@pytest.mark.parametrize("name", ["cuda:7", "toaster", "hpu", "cpu:x", torch.device("cuda:7"), torch.device("hpu")])
def test_a_device_that_is_not_here_is_a_sentence(name: str | torch.device) -> None:
    with pytest.raises(InputError, match=f"{name}.*"):
        pick_device(name)


def test_a_device_is_given_by_its_name() -> None:
    nothing: Any = None
    with pytest.raises(InputError, match="`device=None` given; give its name: cpu, cuda, cuda:N or auto"):
        pick_device(nothing)


def test_torch_is_as_usual_for_a_while() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode(), usual_torch("fp32"):
            weight = torch.ones(1, requires_grad=True)
            (weight * 2).backward()
            assert weight.grad is not None
            assert weight.dtype == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_an_autocast_of_the_caller_is_off_for_a_while() -> None:
    one = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        with usual_torch("fp32"):
            assert (one @ one).dtype == torch.float32
        assert (one @ one).dtype == torch.bfloat16


def test_a_default_device_of_the_caller_is_left_out_for_a_while() -> None:
    torch.set_default_device("meta")
    try:
        with usual_torch("fp32"):
            assert torch.ones(1).is_cpu
        assert torch.ones(1).is_meta
    finally:
        torch.set_default_device(None)
    with torch.device("meta"):
        with usual_torch("fp32"):
            assert torch.ones(1).is_cpu
        assert torch.ones(1).is_meta


def test_products_are_exact_for_a_while() -> None:
    backends: Any = torch.backends
    with torch_as_it_starts():
        torch.set_float32_matmul_precision("medium")
        with usual_torch("fp32"):
            assert backends.mkldnn.matmul.fp32_precision == "ieee"
            assert not backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "medium"


def test_convolutions_of_a_run_give_the_same_bits_whatever_the_caller_set() -> None:
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = False, True
    try:
        with usual_torch("fp32"):
            assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
        with pytest.raises(ZeroDivisionError), usual_torch("fp32"):
            print(1 / 0)
        assert (cudnn.deterministic, cudnn.benchmark) == (False, True)
    finally:
        cudnn.deterministic, cudnn.benchmark = before


def test_cpu_is_always_here() -> None:
    assert pick_device("cpu") == pick_device(torch.device("cpu")) == torch.device("cpu")
    assert describe_machine(torch.device("cpu"))["gpu"] is None
    assert peak_bytes(torch.device("cpu")) > 1 << 20


def test_the_peak_of_a_gpu_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reset = Mock()
    monkeypatch.setattr(torch.cuda, "init", Mock())
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
    forget_peak(torch.device("cpu"))
    reset.assert_not_called()
    forget_peak(torch.device("cuda:1"))
    reset.assert_called_once_with(torch.device("cuda:1"))


def test_freed_memory_is_kept_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Glibc:
        def mallopt(self, parameter: int, value: int) -> int:
            asked.append((parameter, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Glibc())
    monkeypatch.setattr(device.sys, "platform", "linux")  # type: ignore[attr-defined]
    keep_freed_memory()
    assert asked == [(-3, 1 << 30), (-1, 1 << 30)]
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())  # musl has no such switch
    keep_freed_memory()
    assert len(asked) == 2


class WindowsKernel:
    """Stands in for kernel32: a process whose largest working set was 123 MB."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.GetCurrentProcess = Mock(return_value=7)

    def K32GetProcessMemoryInfo(self, process: ctypes.c_void_p, counters: Any, size: int) -> int:  # noqa: N802 (its name there)
        assert (process.value, size) == (7, ctypes.sizeof(device._MemoryCounters))
        counters._obj.PeakWorkingSetSize = 123_000_000
        return int(self.answers)


@pytest.mark.parametrize(("answers", "peak"), [(True, 123_000_000), (False, 0)])
def test_the_peak_on_windows_where_there_is_no_resource(
    monkeypatch: pytest.MonkeyPatch, answers: bool, peak: int
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: WindowsKernel(answers), raising=False)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_bytes(torch.device("cpu")) == peak
