"""The stem's kernels against torch's convolution, under Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.model.fast import stem as fused
from rkcnn.model.fast.stem import stem


@pytest.mark.parametrize(("channels", "k"), [(3, 20), (1, 5)])
def test_the_stem_computes_what_torchs_convolution_does(monkeypatch: pytest.MonkeyPatch, channels: int, k: int) -> None:
    monkeypatch.setattr(fused, "ROWS", 16)
    monkeypatch.setattr(fused, "PROGRAMS", 2)
    torch.manual_seed(0)
    images = torch.randn(3, channels, 5, 4)
    weights = [torch.randn(k, channels, 3, 3).contiguous(memory_format=torch.channels_last).requires_grad_()]
    weights.append(weights[0].detach().clone().requires_grad_())
    plain = torch.conv2d(images, weights[0], padding=1)
    out = stem(images, weights[1], torch.float32)
    torch.testing.assert_close(out, plain)
    for result in (plain, out):
        (result * torch.sin(torch.arange(result.numel())).view_as(result)).sum().backward()
    assert weights[0].grad is not None
    assert weights[1].grad is not None
    torch.testing.assert_close(weights[1].grad, weights[0].grad)
