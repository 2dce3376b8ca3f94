"""Networks by name, with initial weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import rkcnn
from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.families import ORIGINALS
from rkcnn.model.stage import SharedStage
from rkcnn.record.tables import list_models


@pytest.mark.parametrize("name", list_models())
def test_every_listed_network_is_built_under_its_name(name: str) -> None:
    with torch.device("meta"):
        assert rkcnn.create_model(name).name == name
        assert rkcnn.create_model(name.lower()).name == name


def test_every_original_stands_in_a_table() -> None:
    assert set(ORIGINALS) <= set(list_models())


def test_classes_and_channels() -> None:
    network = rkcnn.create_model("RKCNN-E-2@k=8", classes=7, channels=5)
    assert network(torch.randn(2, 5, 12, 14)).shape == (2, 7)


def test_a_seed_gives_the_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        states.append(rkcnn.create_model("RKCNN-I-2_2@k=8").state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("ResNet-1002", {}, "did you mean ResNet-1001?"),
        ("CliqueNet-k80", {}, "did you mean CliqueNet-k80-T18?"),
        ("resnet50", {}, "no network 'resnet50' (did you mean ResNet-1001?); `rkcnn models` lists them"),
        ("nothing", {}, "families are"),
        ("ResNet@k=8", {"classes": 0}, "both must be at least 1"),
        ("ResNet@k=8", {"channels": -1}, "both must be at least 1"),
        ("ResNet@k=8", {"dropout": 1.0}, "below 1"),
    ],
)
def test_bad_input_gets_one_clear_sentence(name: str, settings: dict[str, float], says: str) -> None:
    with pytest.raises(InputError) as caught:
        rkcnn.create_model(name, **settings)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_several_periods_start_as_the_paper_says() -> None:
    torch.manual_seed(0)
    network = create_model("RKCNN-I-2_2@k=64")
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            assert float(module.weight.detach().std()) == pytest.approx(math.sqrt(2 / fan_in), rel=0.1)
        elif isinstance(module, nn.Linear):
            bound = math.sqrt(6 / sum(module.weight.shape))
            assert bound * 0.9 < float(module.weight.detach().abs().max()) <= bound
            assert not module.bias.any()


SHARED = ("CliqueNet-2{}@k=24", "CliqueNet-4{}@k=24", "RKCNN-I-3{}@k=24,shared=on", "RKCNN-R-3{}@k=24,shared=on")


def blocks(network: nn.Module, s: int) -> list[tuple[int, torch.Tensor]]:
    """(fan-in of one state, the weights that read it) of every shared stage, of which there are s in a block."""
    found = []
    for stage in (module for module in network.modules() if isinstance(module, SharedStage)):
        conv = stage.narrow if stage.bottleneck else stage.conv
        k, window = conv.out_channels, conv.kernel_size[0] ** 2
        widths = [conv.in_channels - (s - 1) * k, *[k] * (s - 1)]  # y's first
        found += [(width * window, w) for width, w in zip(widths, conv.weight.split(widths, 1), strict=True)]
    assert found
    return found


@pytest.mark.parametrize("name", SHARED)
def test_shared_stages_have_the_fan_in_of_one_state(name: str) -> None:
    """CliqueNet's own code draws each W_ij by itself: at s = 2, k = 24 the standard deviation is 0.289, not 0.206."""
    torch.manual_seed(0)
    s = int(name[name.index("{") - 1])
    for fan_in, weight in blocks(create_model(name.format(f"_{s}")), s):
        assert float(weight.detach().std()) == pytest.approx(math.sqrt(2 / fan_in), rel=0.15)
    for fan_in, weight in blocks(create_model(name.format(""), channels=1), s):
        assert 0.9 / math.sqrt(fan_in) < float(weight.detach().abs().max()) <= 1 / math.sqrt(fan_in) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "k", "s", "window"), [("CliqueNet-k80-T18", 80, 6, 9), ("CliqueNet-k150-T30", 150, 5, 1)]
)
def test_the_published_cliquenets_too(name: str, k: int, s: int, window: int) -> None:
    """Without bottlenecks the 3x3 convolutions read the states, with a fan-in of 9k; y has 64 or sk channels."""
    torch.manual_seed(0)
    found = blocks(create_model(name), s)
    assert {fan_in for fan_in, _ in found} == {64 * window, k * window, s * k * window}
    for fan_in, weight in found:
        assert float(weight.detach().std()) == pytest.approx(math.sqrt(2 / fan_in), rel=0.05)


def test_other_weights_are_drawn_as_they_were() -> None:
    """The blocks are scaled after drawing, so that what is drawn after them does not change."""
    networks = []
    for name in ("CliqueNet-2_2@k=8", "RKCNN-I-2_2@k=8,y=off,shared=on,merge=concat"):
        torch.manual_seed(0)
        networks.append(create_model(name).state_dict())
    torch.manual_seed(0)
    plain = nn.Conv2d(3, 8, 3, padding=1, bias=False)  # the first that is drawn at construction
    torch.manual_seed(0)
    assert torch.equal(
        create_model("CliqueNet-2_2@k=8", init="torch").state_dict()["preprocessor.weight"], plain.weight
    )
    assert all(torch.equal(a, b) for a, b in zip(networks[0].values(), networks[1].values(), strict=True))


def test_one_period_keeps_torchs_defaults() -> None:
    torch.manual_seed(0)
    network = create_model("RKCNN-I-2@k=32", channels=1)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            bound = 1 / math.sqrt(module.weight[0].numel())  # kaiming_uniform with a = sqrt 5
            assert 0.8 * bound < float(module.weight.detach().abs().max()) <= bound


def test_an_unknown_initialisation_is_refused() -> None:
    with pytest.raises(InputError, match="init 'xx' given; it is one of paper, torch, he"):
        create_model("ResNet@k=4", init="xx")
