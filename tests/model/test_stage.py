"""Stage networks."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.layers import Layers
from rkcnn.model.stage import SharedStage, Stage


@pytest.mark.parametrize(("c", "k"), [(8, 8), (24, 8)])
def test_stage_parameters(c: int, k: int) -> None:
    assert sum(p.numel() for p in Stage(c, k, Layers("bn")).parameters()) == 2 * c + c * k + 2 * k + 9 * k * k


def test_shared_stage_reads_the_same_weights_in_both_phases() -> None:
    """Phase II without y on (x_2) equals a plain stage made of that part of the weights."""
    torch.manual_seed(0)
    k = 4
    shared = SharedStage(0, 2, k, Layers("bn"), y=False)
    plain = Stage(k, k, Layers("bn"))
    plain.narrow.weight.data = shared.narrow.weight[:, k:].clone()
    plain.conv.weight.data = shared.conv.weight.clone()
    x = torch.randn(2, k, 5, 5)
    assert torch.equal(shared(2, x), plain(x))
    plain.narrow.weight.data = shared.narrow.weight[:, :k].clone()
    assert torch.equal(shared(1, x), plain(x))


def test_clique_block_parameters() -> None:
    """k0 = k, T = 2: 22 k^2 + 18 k (docs/spec.md, 3.1)."""
    k = 8
    block = [SharedStage(i, 2, k, Layers("bn"), y=False) for i in range(2)]
    assert sum(p.numel() for stage in block for p in stage.parameters()) == 22 * k * k + 18 * k
