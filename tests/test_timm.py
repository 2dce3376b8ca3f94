"""The networks in timm. Where timm is installed: it is in no extra that the tests install (pyproject.toml)."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model
from rkcnn.record.tables import to_identifier
from rkcnn.use.hub import save_pretrained
from rkcnn.use.load import Classifier, load
from rkcnn.use.pretrained.catalogue import read_catalogue

needs_timm = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
LIBRARY: list[Any] = []  # the stand-ins exist as long as this does


@pytest.fixture(scope="module")
def timm() -> Any:
    """timm with our networks. A torchvision for another torch lacks two operators, which nothing here calls."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        LIBRARY.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            LIBRARY[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    importlib.import_module("rkcnn.timm")
    return importlib.import_module("timm")


def images(channels: int = 3, size: int = 32) -> torch.Tensor:
    return torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(0))


@needs_timm
def test_it_lists_the_networks_of_the_paper(timm: Any) -> None:
    names = timm.list_models("rkcnn*")
    assert {"rkcnn", "rkcnn_i_2_2_2_k120", "rkcnn_resnet_k32", "rkcnn_rknet_64"} <= set(names)
    assert "rkcnn_resnet_1001" not in names, "it has no periods"
    known = {f"{to_identifier(each.network)}.{each.data}" for each in read_catalogue()}
    assert set(timm.list_pretrained("rkcnn*")) == known
    with torch.device("meta"):
        network = timm.create_model("rkcnn_i_2_2_2_k120", num_classes=100)
        ours = create_model("RKCNN-I-2_2_2@k=120", classes=100)
    theirs = network.state_dict()
    assert {name: value.shape for name, value in ours.state_dict().items()} == {n: v.shape for n, v in theirs.items()}


@needs_timm
@pytest.mark.parametrize("size", [32, 27])
@pytest.mark.parametrize(
    "name",
    ["RKCNN-R-2_2_2@k=8", "RKCNN-I-2@k=8", "ResNet@k=8_12,multiscale=off", "RKCNN-I-2_2@k=8,merge=concat", "RKNet-64"],
)
def test_it_computes_what_ours_does(timm: Any, name: str, size: int) -> None:
    torch.manual_seed(0)
    ours = create_model(name, classes=7, channels=1).eval()
    torch.manual_seed(0)
    theirs = timm.create_model("rkcnn", network=name, num_classes=7, in_chans=1).eval()
    x = images(1, size)
    with torch.no_grad():
        logits, features = ours(x), theirs.forward_features(x)
        torch.testing.assert_close(theirs(x), logits)
        torch.testing.assert_close(theirs.forward_head(features), logits)
        pooled = theirs.forward_head(features, pre_logits=True)
    assert features.dim() == 4
    assert pooled.shape == (2, theirs.num_features)
    assert (theirs.num_classes, theirs.get_classifier().out_features) == (7, 7)


@needs_timm
def test_a_new_classifier_takes_the_place_of_the_old(timm: Any) -> None:
    network = timm.create_model("rkcnn", network="RKCNN-R-2_2@k=8").double()
    before = {name: value.clone() for name, value in network.periods.state_dict().items()}
    network.reset_classifier(3)
    x = images().double()
    assert network.eval()(x).shape == (2, 3)
    assert all(torch.equal(before[name], value) for name, value in network.periods.state_dict().items())
    network.reset_classifier(0)
    assert network(x).shape == (2, network.num_features)
    network.reset_classifier(0, "")
    assert network(x).shape == (2, network.num_features, 16, 16)
    assert timm.create_model("rkcnn", network="RKCNN-R-2_2@k=8", num_classes=0)(images()).shape == (2, 16)
    with pytest.raises(InputError, match="global_pool='max' given"):
        network.reset_classifier(3, "max")


@needs_timm
@pytest.mark.parametrize(
    ("name", "stride"), [("RKCNN-R-2_2_2@k=8_12_16", 1), ("CliqueNet-2_3@k=8", 1), ("ResNet@k=8", 4)]
)
def test_features_of_every_period(timm: Any, name: str, stride: int) -> None:
    network = timm.create_model("rkcnn", network=name, features_only=True)
    x = images()
    maps = network(x)
    assert [each.shape[1] for each in maps] == network.feature_info.channels()
    assert network.feature_info.reduction() == [stride * 2**i for i in range(len(maps))]
    if stride == 1:
        assert [32 // each.shape[2] for each in maps] == network.feature_info.reduction()
    sum(each.square().mean() for each in maps).backward()
    assert all(p.grad is not None for n, p in network.named_parameters() if "transitions.1.attention" not in n)


@needs_timm
def test_features_of_some_periods(timm: Any) -> None:
    torch.manual_seed(0)
    whole = timm.create_model("rkcnn", network="RKCNN-R-2_2_2@k=8").eval()
    torch.manual_seed(0)
    first = timm.create_model("rkcnn", network="RKCNN-R-2_2_2@k=8", features_only=True, out_indices=(1, 0)).eval()
    x = images()
    wanted = whole.forward_intermediates(x, [1, 0], intermediates_only=True, stop_early=True)
    for one, other in zip(first(x), wanted, strict=True):
        torch.testing.assert_close(one, other)
    assert len(first.model.periods) == 2
    features, normed = whole.forward_intermediates(x, norm=True)
    torch.testing.assert_close(features, whole.forward_features(x))
    torch.testing.assert_close(normed[-1], features[:, -8:])
    with pytest.raises(InputError, match=r"out_indices=\[3\] given; this network has 3 periods"):
        whole.forward_intermediates(x, [3])


@needs_timm
def test_it_has_a_configuration(timm: Any) -> None:
    network = timm.create_model("rkcnn_resnet_k32", num_classes=5)
    cfg = network.pretrained_cfg
    assert (cfg["input_size"], cfg["classifier"], cfg["first_conv"]) == (
        (3, 32, 32),
        "classifier",
        "preprocessor.conv1",
    )
    assert network.get_submodule(cfg["first_conv"]).in_channels == 3
    assert importlib.import_module("timm.data").resolve_data_config(model=network)["input_size"] == (3, 32, 32)
    groups = importlib.import_module("timm.optim").param_groups_layer_decay(network, layer_decay=0.5)
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))
    assert len({group["lr_scale"] for group in groups}) >= 3


@needs_timm
def test_it_loads_what_rkcnn_saved(timm: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    network = create_model("RKCNN-R-2@k=8", classes=3, channels=3).eval()
    description = NetworkDescription(network.name, 3, (28, 28), ("a", "b", "c"), (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    save_pretrained(Classifier(network, description), tmp_path / "saved")
    theirs = timm.create_model(f"local-dir:{tmp_path / 'saved'}", pretrained=True).eval()
    x = images(3, 28)
    torch.testing.assert_close(theirs(x), network(x))
    assert (theirs.pretrained_cfg["mean"], theirs.pretrained_cfg["input_size"]) == ([0.5, 0.5, 0.5], [3, 28, 28])
    grey = timm.create_model(f"local-dir:{tmp_path / 'saved'}", pretrained=True, num_classes=5, in_chans=1)
    assert grey(images(1)).shape == (2, 5)
    before = network.state_dict()["preprocessor.conv1.weight"]
    torch.testing.assert_close(grey.state_dict()["preprocessor.conv1.weight"], before.sum(1, keepdim=True))


@needs_timm
def test_what_cant_be_built_is_refused(timm: Any) -> None:
    with pytest.raises(InputError, match="ResNet-1001 is a published original without periods"):
        timm.create_model("rkcnn", network="ResNet-1001")
    with pytest.raises(InputError, match="gradient checkpointing"):
        timm.create_model("rkcnn", network="ResNet@k=8").set_grad_checkpointing()


def test_without_timm_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rkcnn.timm", raising=False)
    for name in ("timm", "timm.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"^timm is not installed; install it with: pip install .*\.\[timm\]"):
        importlib.import_module("rkcnn.timm")


@needs_timm
def test_pretrained_weights_are_loaded(timm: Any, pretrained: str) -> None:
    from rkcnn.timm import list_configurations

    ((name, about),) = list_configurations("rkcnn_e_2_k4", "RKCNN-E-2@k=4")
    assert name == "rkcnn_e_2_k4.mnist-mini"
    settings = {"network": "RKCNN-E-2@k=4", "pretrained": True, "pretrained_cfg": about}
    network = timm.create_model("rkcnn", **settings).eval()
    x = images(1, 28)
    with torch.no_grad():
        torch.testing.assert_close(network(x), load(pretrained).network(x))
    assert network.pretrained_cfg["label_names"] == tuple("0123456789")
    assert timm.create_model("rkcnn", num_classes=3, **settings)(x).shape == (2, 3)


@needs_timm
def test_the_weights_of_the_package_are_loaded(timm: Any) -> None:
    for each in read_catalogue():
        model = load(each.name)
        network = timm.create_model(f"{to_identifier(each.network)}.{each.data}", pretrained=True)
        stored = model.network.state_dict()
        assert all(torch.equal(value, stored[name]) for name, value in network.state_dict().items())
