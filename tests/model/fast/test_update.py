"""SGD in one kernel does what SGD by lists of tensors does, under Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.fit.trainer import SGD
from rkcnn.model.fast import update
from rkcnn.model.fast.update import update_parameters


@pytest.mark.parametrize("decayed", [None, [True, False, False, True, True]])
@pytest.mark.parametrize("nesterov", [False, True])
def test_it_moves_the_parameters_as_the_lists_do(
    monkeypatch: pytest.MonkeyPatch, nesterov: bool, decayed: list[bool] | None
) -> None:
    """With gradients in one buffer, in buffers of their own, in another layout and missing."""
    monkeypatch.setattr(update, "BLOCK", 16)
    torch.manual_seed(0)
    first = [torch.randn(3, 4, 3, 3).contiguous(memory_format=torch.channels_last), torch.randn(5), torch.randn(7)]
    first += [torch.randn(4, 2, 1, 1).contiguous(memory_format=torch.channels_last), torch.randn(2, 3, 3, 3)]
    both = [[p.clone() for p in first] for _ in range(2)]
    plain, fused = (SGD(parameters, 0.9, nesterov, 1e-2, decayed) for parameters in both)
    fused.fused = update_parameters
    for step in range(3):
        flat = torch.randn(30)
        grads = [torch.randn(3, 4, 3, 3), flat[4:9], flat[16:23], torch.randn(4, 2, 1, 1), None]
        for sgd in (plain, fused):
            for p, grad in zip(sgd.parameters, grads, strict=True):
                p.grad = grad
            sgd.step(torch.tensor(0.1 + step))
    for a, b in zip([*plain.parameters, *plain.buffers], [*fused.parameters, *fused.buffers], strict=True):
        torch.testing.assert_close(b, a, rtol=1e-6, atol=1e-6)
