"""The frame of all networks, the class of published originals, and features."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.network import Network, period_features
from rkcnn.model.period import Period
from rkcnn.model.spec import norms_of, parse
from rkcnn.model.steps.ode import OdePeriod
from zoo import STATIC, ZOO


def build(name: str, channels: int = 3, dropout: float = 0.0) -> Network:
    torch.manual_seed(0)
    network = create_model(name, classes=10, channels=channels, dropout=dropout)
    assert isinstance(network, Network)
    return network


def images(network: Network, count: int = 3) -> Tensor:
    """Odd sizes, and height unlike width."""
    side = network.smallest + 3
    return torch.randn(count, network.channels, side, side + 2, generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=ZOO)
def network(request: pytest.FixtureRequest) -> Network:
    return build(request.param)


def test_gradients_reach_every_parameter(network: Network) -> None:
    network.train()(images(network)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_bf16_autocast_trains(network: Network) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network.train()(images(network))
        loss = nn.functional.cross_entropy(logits, torch.arange(3))
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_channels_last_changes_nothing(network: Network) -> None:
    x = images(network)
    with torch.no_grad():
        plain = network.eval()(x)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        turned = network(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(turned, plain, rtol=1e-4, atol=1e-4)


# The paper's abm row judges convergence by the whole batch, as torchdiffeq does (docs/spec.md, 4).
@pytest.mark.parametrize("name", [name for name in ZOO if name != "ODENet-abm@k=8"])
def test_a_prediction_does_not_depend_on_its_batch(name: str) -> None:
    network = build(name)
    x = images(network)
    with torch.no_grad():
        together = network.eval()(x)
        alone = torch.cat([network(x[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-4)


def test_weights_travel(network: Network, tmp_path: Path) -> None:
    x = images(network)
    with torch.no_grad():
        expected = network.eval()(x)
        save_file(network.state_dict(), tmp_path / "weights.safetensors")
        other = create_model(network.name).eval()
        other.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert torch.equal(other(x), expected)
        assert torch.equal(pickle.loads(pickle.dumps(copy.deepcopy(network)))(x), expected)


def test_the_smallest_image_trains_alone_and_one_less_is_refused(network: Network) -> None:
    side = network.smallest
    assert network.train()(torch.randn(1, 3, side, side)).shape == (1, 10)
    with pytest.raises(InputError, match=f"smallest it can take is {side}x{side}"):
        network(torch.randn(1, 3, side, side - 1))


def test_trajectory_tells_what_forward_does(network: Network) -> None:
    x = images(network)
    with torch.no_grad():
        seen = network.eval().trajectory(x)
        expected = network(x)
        read = []
        for period, path in zip(network.periods, seen, strict=True):
            assert isinstance(period, Period)
            read.append(period.outputs(path.y[-1], path.e[-1] if path.e else ())[1])
            if network.spec.merge != "concat" and network.spec.family not in ("DenseNet", "CliqueNet"):
                start = path.y[0]
                if isinstance(period, OdePeriod):  # ANODE adds channels, SONODE keeps its velocity to itself
                    start = period.state(period.start(start))
                for before, after, e in zip([start, *path.y[1:]], path.y[1:], path.e, strict=False):
                    torch.testing.assert_close(before + sum(e), after, rtol=1e-4, atol=1e-5)
        outs = [see(out) for see, out in zip(network.readouts, read[-len(network.readouts) :], strict=True)]
        torch.testing.assert_close(network.classifier(torch.cat(outs, 1)), expected)


@pytest.mark.parametrize("norm", ["bn", "paper"])
@pytest.mark.parametrize("name", ZOO)
def test_trajectory_leaves_the_network_as_it_was(name: str, norm: str) -> None:
    """Also in training mode: neither running statistics nor counts of solves move."""
    network = build(name if "norm=" in name else f"{name},norm={norm}", dropout=0.1).train()
    before = copy.deepcopy(network.state_dict())
    network.trajectory(images(network))
    assert network.training
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    stats = [m.solver_stats for m in network.modules() if isinstance(m, Period) and m.solver_stats is not None]
    assert all(each.sums()[0] == 0 for each in stats)
    network(images(network))
    moved = [key for key, value in network.state_dict().items() if not torch.equal(before[key], value)]
    assert bool(moved) == any("running_mean" in key for key in before)


def test_trajectory_has_its_times() -> None:
    for name, times in {"RKNet-rk4_38@k=8,r=4": [0, 0.25, 0.5, 0.75, 1], "ResNet@k=8,r=2": [0, 1, 2]}.items():
        network = build(name)
        (path,) = network.trajectory(images(network))
        assert path.t == times
    network = build("RKNet-dopri5@k=8,tol=0.001")
    (path,) = network.eval().trajectory(images(network))
    last = path.t[-1]
    assert isinstance(last, Tensor)
    assert last.tolist() == [1, 1, 1]
    assert len(path.t) == len(path.y)


def test_an_adjoint_solve_shows_all_its_states() -> None:
    network = build("ODENet-ab@k=8,adjoint=on")
    assert [len(path.y) for path in network.trajectory(images(network))] == [5]


@pytest.mark.parametrize("name", STATIC)
def test_compiles_whole(name: str) -> None:
    """Dynamo traces it without a break; what Inductor makes of such a trace is compared below and by the engines."""
    network = build(name).train()
    state = copy.deepcopy(network.state_dict())
    x = images(network)
    torch._dynamo.reset()
    compiled = torch.compile(network, fullgraph=True, backend="eager")
    found = compiled(x)
    found.sum().backward()
    gradient = [p.grad for p in network.parameters()]
    network.load_state_dict(state)  # the pass above moved the running statistics
    network.zero_grad()
    expected = network(x)
    expected.sum().backward()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for found_gradient, parameter in zip(gradient, network.parameters(), strict=True):
        torch.testing.assert_close(found_gradient, parameter.grad, rtol=1e-3, atol=1e-3)


def test_inductor_agrees_with_eager() -> None:
    network = build("RKCNN-I-2_2@k=8").train()
    state = copy.deepcopy(network.state_dict())
    x = images(network)
    torch._dynamo.reset()
    found = torch.compile(network, fullgraph=True)(x)
    network.load_state_dict(state)
    torch.testing.assert_close(found, network(x), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_no_images_give_no_logits(network: Network) -> None:
    for mode in (True, False):
        before = copy.deepcopy(network.train(mode).state_dict())
        assert network(images(network, 0)).shape == (0, 10)
        assert [path.y[-1].shape[0] for path in network.trajectory(images(network, 0))] == [0] * len(network.periods)
        assert all(
            torch.equal(before[key], value) for key, value in network.state_dict().items() if "batches" not in key
        )
    assert network.fused()(images(network, 0)).shape == (0, 10)


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_half_precision_without_autocast(network: Network, precision: torch.dtype) -> None:
    x = images(network)
    with torch.no_grad():
        expected = network.eval()(x)
        found = network.to(precision)(x.to(precision))
        assert found.dtype == precision
        states = [y for path in network.trajectory(x.to(precision)) for y in path.y]
        assert {y.dtype for y in states} == {precision}
        torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
        fused = network.fused(images=3)(x.to(precision))
        torch.testing.assert_close(fused, expected, rtol=0.05, atol=0.05)
    network.train()(x.to(precision)).float().square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == precision, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("name", ["RKCNN-R-2@k=8", "RKNet-rk4_38@k=8,norm=bn", "CliqueNet-k80-T18"])
def test_images_in_another_precision_than_the_weights_are_refused(name: str) -> None:
    network = create_model(name).eval()
    x = torch.randn(2, 3, 32, 32)
    words = r"images of torch.float64 given, and its weights are torch.float32; give images.to\(torch.float32\)"
    for refuse in (network, lambda given: period_features(network, given), network.fused(), network.fused("bf16")):
        with pytest.raises(InputError, match=words):
            refuse(x.double())
    with pytest.raises(InputError, match=r"images of torch\.float16 given"):
        network(x.half())
    with pytest.raises(InputError, match=r"convert the weights by network.to\(torch.float32\)"):
        network.double()(x)


def test_autocast_takes_images_in_every_precision_but_float64() -> None:
    network = build("RKCNN-R-2@k=8").eval()
    x = images(network)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for given in (x.half(), x.bfloat16()):
            torch.testing.assert_close(network(given), network(x), rtol=0.05, atol=0.05)
        with pytest.raises(InputError, match=r"images of torch\.float64 given"):
            network(x.double())


@pytest.mark.parametrize("given", [None, [1.0], "cat.png"])
def test_what_is_no_tensor_is_refused(given: Any) -> None:
    network = build("ResNet@k=8")
    words = rf"images of type {type(given).__name__} given; it takes a tensor \(batch, 3, height, width\)"
    for refuse in (network, network.trajectory, network.fused()):
        with pytest.raises(InputError, match=words):
            refuse(given)


def test_wrong_images_get_one_clear_sentence() -> None:
    network = build("ResNet@k=8", channels=1)
    with pytest.raises(InputError, match=r"it takes \(batch, 1, height, width\)"):
        network(torch.randn(2, 3, 28, 28))
    with pytest.raises(InputError, match="it takes"):
        network(torch.randn(1, 28, 28))
    with pytest.raises(InputError, match=r"images of torch\.uint8 given; it takes floats"):
        network.trajectory(torch.zeros(2, 1, 28, 28, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("name", "norms"),
    [
        ("RKCNN-R-2@k=32", ("gn", "bn")),
        ("DenseNet-2@k=32", ("gn", "bn")),
        ("CliqueNet-2@k=32", ("gn", "bn")),
        ("ResNet@k=32", ("gn", "gn")),
        ("SONODE@k=32", ("gn", "gn")),
        ("RKCNN-R-2@k=32,norm=gn", ("gn", "gn")),
        ("ResNet@k=32,norm=bn", ("bn", "bn")),
        ("ODENet-ab@k=120_120_120", ("bn", "bn")),
    ],
)
def test_norms_follow_the_decision(name: str, norms: tuple[str, str]) -> None:
    """docs/spec.md, 3.5."""
    assert norms_of(parse(name)) == norms


def test_dropout_stands_behind_block_and_transition_convolutions_alone() -> None:
    """docs/spec.md, 5: not after the stem, none at the classifier."""
    network = build("RKCNN-I-2_2@k=8", dropout=0.2)
    rates = {name: module.dropout for name, module in network.named_modules() if hasattr(module, "dropout")}
    assert set(rates.values()) == {0.2}
    assert len(rates) == 2 * 8 + 1
    assert not any(name.startswith(("preprocessor", "classifier")) for name in rates)
    x = images(network)
    assert not torch.equal(network.train()(x), network(x))
    assert torch.equal(network.eval()(x), network(x))


@pytest.mark.parametrize("name", ZOO)
def test_the_classifier_reads_them(name: str) -> None:
    torch.manual_seed(0)
    network = create_model(name).eval()
    assert isinstance(network, Network)
    images = torch.randn(2, 3, network.smallest, network.smallest)
    with torch.no_grad():
        features = period_features(network, images)
        assert len(features) == network.spec.periods
        read = [see(each) for see, each in zip(network.readouts, features[-len(network.readouts) :], strict=True)]
        torch.testing.assert_close(network.classifier(torch.cat(read, 1)), network(images), rtol=1e-4, atol=1e-4)


def test_gradients_flow_and_nothing_moves_in_training_mode() -> None:
    network = create_model("RKCNN-R-2_2@k=8").train()
    before = copy.deepcopy(network.state_dict())
    images = torch.randn(2, 3, 12, 12, requires_grad=True)
    first, last = period_features(network, images)
    assert (first.shape, last.shape) == ((2, 8, 12, 12), (2, 8, 6, 6))
    last.square().sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not any(module._forward_hooks for module in network.modules()), "hooks are removed"


def test_a_published_original_gives_what_its_classifier_reads() -> None:
    with torch.device("meta"):
        network = create_model("CliqueNet-k80-T18")
        (features,) = period_features(network, torch.empty(2, 3, 32, 32))
    assert features.shape == (2, network.classifier.in_features)
