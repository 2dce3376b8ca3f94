"""The layout in memory that is chosen for a network on a device."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.create import create_model
from rkcnn.model.layout import choose_layout, set_layout


@pytest.mark.parametrize(
    ("name", "device", "layout"),
    [
        ("RKCNN-R-2@k=4", "cpu", torch.contiguous_format),  # group norms in its stem
        ("RKCNN-R-2@k=4", "cuda", torch.channels_last),
        ("RKCNN-R-2@k=4,norm=bn", "cpu", torch.channels_last),
        ("RKCNN-R-2_2@k=4,stem=odenet", "cpu", torch.channels_last),
        ("RKCNN-I-2_2_2@k=4", "cpu", torch.channels_last),
        ("ResNet@k=4_4,norm=gn", "cpu", torch.contiguous_format),
    ],
)
def test_channels_come_last_but_with_group_norms_on_a_cpu(name: str, device: str, layout: torch.memory_format) -> None:
    assert choose_layout(create_model(name), torch.device(device)) == layout


@pytest.mark.parametrize("name", ["RKCNN-R-2@k=4", "RKCNN-R-2_2@k=4"])
def test_weights_and_batch_norms_have_the_layout(name: str) -> None:
    network = create_model(name)
    layout = set_layout(network, torch.device("cpu"))
    assert all(weight.is_contiguous(memory_format=layout) for weight in network.parameters() if weight.dim() == 4)
    norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
    assert norms
    assert all(norm.by_rows == (layout == torch.channels_last) for norm in norms)
