"""The clique block against a plain writing of its two phases."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.clique import CliqueNet


def test_two_phases_with_one_set_of_weights() -> None:
    """CliqueNet, section 3.1: x_j <- W_j g(sum_i W_ij g(x_i)) over the newest x_i, y left out of Phase II."""
    torch.manual_seed(0)
    s, k = 3, 4
    block = CliqueNet(parse(f"CliqueNet-{s}@k={k}"), 0, Layers("bn")).double().eval()
    weights = block.state_dict()
    y = torch.randn(2, k, 5, 5, dtype=torch.float64)

    def column(j: int, i: int) -> slice:
        """Where source i (0 is y) stands among the inputs of layer j."""
        place = i if i < j else i - 1
        return slice(k * place, k * (place + 1))

    def layer(j: int, phase: int, sources: dict[int, Tensor]) -> Tensor:
        name = f"step.both.{j - 1}"
        hidden = torch.zeros_like(y)
        for order, (i, x) in enumerate(sources.items()):
            scale = weights[f"{name}.norm1_{phase}.weight"][k * order : k * (order + 1), None, None]
            active = F.relu(x / (1 + 1e-3) ** 0.5 * scale)
            hidden = hidden + F.conv2d(active, weights[f"{name}.narrow.weight"][:, column(j, i)])
        active = F.relu(hidden / (1 + 1e-3) ** 0.5)
        return F.conv2d(active, weights[f"{name}.conv.weight"], padding=1)

    x: dict[int, Tensor] = {0: y}
    for j in range(1, s + 1):
        x[j] = layer(j, 1, dict(x))
    del x[0]
    for j in range(1, s + 1):
        x[j] = layer(j, 2, {i: x[i] for i in range(1, s + 1) if i != j})

    onward, readout = block(y)
    torch.testing.assert_close(onward, torch.cat([x[1], x[2], x[3]], 1))
    torch.testing.assert_close(readout, torch.cat([y, x[1], x[2], x[3]], 1))
    assert (block.transition_channels, block.classifier_channels, block.evaluations) == (12, 16, 6)
