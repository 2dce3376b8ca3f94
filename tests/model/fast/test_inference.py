"""The first half of a stage in one kernel, under Triton's interpreter, against the readable stage with folded norms."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.model.fast import inference
from rkcnn.model.fast.tiles import Stream
from rkcnn.model.fold import fold_norms
from rkcnn.model.layers import Layers
from rkcnn.model.stage import Stage


@torch.no_grad()
@pytest.mark.parametrize("k", [8, 24])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_one_and_two_states(k: int, count: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        inference, "choose_stream", lambda *shape: Stream(16, 16, 4)
    )  # several blocks in every direction
    torch.manual_seed(k + count)
    stage = Stage(count * k, k, Layers("bn"))
    for norm in (stage.norm1, stage.norm2):
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        for values, low, high in (
            (norm.weight, 0.5, 1.5),
            (norm.bias, -0.5, 0.5),
            (norm.running_mean, -1.0, 1.0),
            (norm.running_var, 0.5, 2.0),
        ):
            nn.init.uniform_(values, low, high)
    folded = fold_norms(stage).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    states = tuple(torch.randn(3, k, 5, 4) for _ in range(count))
    expected = stage.eval()(*states)
    folded.narrow.to(dtype)
    found = folded.conv(inference.infer_narrow(folded, states).float())
    assert found.shape == expected.shape
    assert (found - expected).norm() / expected.norm() < (1e-5 if dtype == torch.float32 else 2e-3)
