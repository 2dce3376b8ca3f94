"""The paper's step against an independent, naive writing of Algorithm 1."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.create import create_model
from rkcnn.model.layers import Layers, trains_fused
from rkcnn.model.network import Network
from rkcnn.model.steps.rkcnn import RKStep


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = x.mean((0, 2, 3), keepdim=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    return (x - mean) / (variance + 1e-3).sqrt() * weight[:, None, None] + bias[:, None, None]


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """A sum over the taps of a centred kernel, written without a convolution."""
    out = torch.zeros(x.shape[0], weight.shape[0], *x.shape[2:], dtype=x.dtype)
    reach = weight.shape[2] // 2
    padded = torch.zeros(*x.shape[:2], x.shape[2] + 2 * reach, x.shape[3] + 2 * reach, dtype=x.dtype)
    padded[:, :, reach : reach + x.shape[2], reach : reach + x.shape[3]] = x
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            window = padded[:, :, i : i + x.shape[2], j : j + x.shape[3]]
            out += torch.einsum("nchw,oc->nohw", window, weight[:, :, i, j])
    return out


def subnetwork(weights: dict[str, Tensor], prefix: str, inputs: list[Tensor]) -> Tensor:
    """E or I of the paper: norm, ReLU, 1x1, norm, ReLU, 3x3 of the concatenated inputs."""
    x = batch_norm(torch.cat(inputs, 1), weights[f"{prefix}.norm1.weight"], weights[f"{prefix}.norm1.bias"])
    x = convolve(x.clamp(min=0), weights[f"{prefix}.narrow.weight"])
    x = batch_norm(x, weights[f"{prefix}.norm2.weight"], weights[f"{prefix}.norm2.bias"])
    return convolve(x.clamp(min=0), weights[f"{prefix}.conv.weight"])


def algorithm_1(weights: dict[str, Tensor], y: Tensor, s: int, kind: str, sweeps: int) -> Tensor:
    """Line by line; another sweep takes the last one's e for its x."""
    x: dict[int, Tensor] = {}
    i = 1
    while i <= s:
        x[i] = subnetwork(weights, f"guess.{i - 1}", [y] + [x[j] for j in range(1, i)])
        i += 1
    e = dict(x)
    for _ in range(sweeps):
        before = dict(e)
        i = 1
        while i <= s:
            if kind == "I":
                others = [e[j] for j in range(1, i)] + [before[j] for j in range(i + 1, s + 1)]
            else:
                others = [before[j] for j in range(1, i)] + [before[j] for j in range(i + 1, s + 1)]
            e[i] = subnetwork(weights, f"refine.{i - 1}", [y, *others])
            i += 1
    following = y
    for i in range(1, s + 1):
        following = following + e[i]
    return following


CASES = [("E", s, 0) for s in range(1, 6)] + [(kind, s, n) for kind in "IR" for s in range(2, 6) for n in (1, 2)]


@pytest.mark.parametrize(("kind", "s", "sweeps"), CASES)
def test_the_step_is_algorithm_1(kind: str, s: int, sweeps: int) -> None:
    torch.manual_seed(s)
    step = RKStep(s, 4, Layers("bn"), newest=kind == "I", sweeps=sweeps).double()
    for parameter in step.parameters():
        torch.nn.init.normal_(parameter)  # norms too: their defaults would hide a swap
    y = torch.randn(2, 4, 5, 6, dtype=torch.float64)
    _, e = step(y)
    expected = algorithm_1(step.state_dict(), y, s, kind, sweeps)
    torch.testing.assert_close(y + sum(e), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("s", [1, 2, 5])
def test_parameters_follow_the_formula(s: int) -> None:
    """E: k^2 (9s + s(s+1)/2) + k (2s + s(s+1)); I and R add k^2 (9s + s^2) + k (2s^2 + 2s)."""
    k = 8
    explicit = k * k * (9 * s + s * (s + 1) // 2) + k * (2 * s + s * (s + 1))
    refined = explicit + k * k * (9 * s + s * s) + k * (2 * s * s + 2 * s)
    for sweeps, expected in ((0, explicit), (1, refined), (3, refined)):
        step = RKStep(s, k, Layers("bn"), sweeps=sweeps)
        assert sum(p.numel() for p in step.parameters()) == expected


def test_without_rules_4_and_5_and_concatenated_it_is_a_clique_block() -> None:
    """The ablation ends at CliqueNet exactly: same parameters, same function."""
    torch.manual_seed(0)
    ours = create_model("RKCNN-I-2_3@k=8,y=off,shared=on,merge=concat").eval()
    clique = create_model("CliqueNet-2_3@k=8").eval()
    weights = {name.replace("steps.0", "step"): value for name, value in ours.state_dict().items()}
    clique.load_state_dict(weights)
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(ours(x), clique(x))


def test_concatenated_e_is_a_dense_block() -> None:
    torch.manual_seed(0)
    ours = create_model("RKCNN-E-2_3@k=8,merge=concat").eval()
    dense = create_model("DenseNet-2_3@k=8").eval()
    dense.load_state_dict({name.replace("steps.0", "step"): value for name, value in ours.state_dict().items()})
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(ours(x), dense(x))


def test_steps_have_weights_of_their_own() -> None:
    one, two = (create_model(f"RKCNN-R-2@k=8,r={r}").get_submodule("periods") for r in (1, 2))
    assert 2 * sum(p.numel() for p in one.parameters()) == sum(p.numel() for p in two.parameters())


def test_fused_kernels_take_a_step_only_in_training_with_autocast() -> None:
    """In evaluation, for a trajectory and where norms are computed anew, the plain step runs."""
    network = create_model("RKCNN-I-2@k=4,stem=conv", channels=1)
    assert isinstance(network, Network)
    taken = []

    def take(step: RKStep, y: Tensor) -> Tensor:
        taken.append(step)
        return y

    steps = [module for module in network.modules() if isinstance(module, RKStep)]
    for step in steps:
        step.fused = take
    images = torch.randn(2, 1, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        network(images)
        assert taken == steps
        network.trajectory(images)
        network.eval()(images)
        for norm in network.train().modules():
            if isinstance(norm, BatchNorm):
                norm.momentum = None
        network(images)
    network(images)
    assert taken == steps


def test_fused_kernels_take_float32_only_where_tf32_is_allowed() -> None:
    step, y = RKStep(1, 4, Layers("bn")), torch.randn(2, 4, 3, 3)
    assert not trains_fused(step, y, step.takes_tf32)
    step.takes_tf32 = True
    assert trains_fused(step, y, step.takes_tf32)
    assert not trains_fused(step, y.double(), step.takes_tf32)
    assert not trains_fused(step.eval(), y, step.takes_tf32)
