"""Where torch.compile can be used, and what is said when it fails."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.compiling import NotCompiled, compiling, why_not_compiled


def test_a_cpu_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert why_not_compiled(torch.device("cpu")) == "torch.compile needs a C++ compiler"
    assert why_not_compiled(torch.device("cuda")) == ""
    monkeypatch.setattr("shutil.which", lambda name: "/clang++" if name == "clang++" else None)
    assert why_not_compiled(torch.device("cpu")) == ""


def test_a_failure_is_one_line() -> None:
    from torch._dynamo.exc import TorchDynamoException

    with pytest.raises(NotCompiled, match=r"^TorchDynamoException, it failed$"), compiling():
        raise TorchDynamoException("it failed\nin many lines")


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), compiling():
        raise ZeroDivisionError
