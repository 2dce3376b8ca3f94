"""The published originals as a whole: what the golden costs can't see."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save
from torch import nn

from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.published.network import Published
from rkcnn.model.published.originals import ORIGINALS

BUILT = [name for name, original in ORIGINALS.items() if original.network]


@pytest.mark.parametrize("name", BUILT)
def test_the_smallest_image_trains_alone_and_one_less_is_refused(name: str) -> None:
    """ResNet-1001 in full, so that a thousand layers are seen to carry a gradient."""
    torch.manual_seed(0)
    network = create_model(name, classes=7, channels=2).train()
    assert isinstance(network, Published)
    out = network(torch.randn(2, 2, network.smallest, network.smallest))
    assert out.shape == (2, 7)
    nn.functional.cross_entropy(out, torch.tensor([0, 1])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert save(network.state_dict())
    with pytest.raises(InputError, match="has no time-steps"):
        network.trajectory(torch.randn(1, 2, 32, 32))
    with pytest.raises(InputError, match="smallest it can take is"):
        network(torch.randn(1, 2, network.smallest - 1, network.smallest))


@pytest.mark.parametrize("name", BUILT)
def test_dropout_reaches_the_blocks_and_not_the_stem(name: str) -> None:
    with torch.device("meta"):
        network = create_model(name, dropout=0.2)
    rates = {path: module.dropout for path, module in network.named_modules() if hasattr(module, "dropout")}
    assert len(rates) > 10
    assert set(rates.values()) == {0.2}
    assert not any(path.startswith("stem") for path in rates)
