"""Being asked to stop by Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rkcnn.run.side_by_side import stop_signals
from run.tiny_run import go, only


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the process its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_collected_and_the_second_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as received:
        os.kill(os.getpid(), number)
        assert received == [number.name]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_what_the_caller_has_set_in_torch_changes_no_weight(digits: str, tmp_path: Path) -> None:
    go(digits, tmp_path / "usual", changes={"epochs": "1"})
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            go(digits, tmp_path / "other", changes={"epochs": "1"})
    finally:
        torch.set_default_dtype(torch.float32)
    one, two = (load_file(only(tmp_path / name, "weights.safetensors")) for name in ("usual", "other"))
    assert all(torch.equal(one[name], two[name]) and one[name].dtype == two[name].dtype for name in one)
