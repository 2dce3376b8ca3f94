"""Which networks train in fused kernels, and what is said of the others."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.create import create_model
from rkcnn.model.fast import choose
from rkcnn.model.fast.choose import fuse_network
from rkcnn.model.frame import StemConv, Transition
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.model.steps.rkcnn import RKStep

CPU = torch.device("cpu")


def test_a_cpu_keeps_the_plain_steps() -> None:
    network = create_model("RKCNN-I-2_2@k=8")
    assert fuse_network(network, CPU) == "it needs a GPU"
    assert not any(step.fused for step in network.modules() if isinstance(step, RKStep))


@pytest.mark.parametrize(
    ("spec", "dropout", "reason"),
    [
        ("DenseNet-2_2@k=4", 0.2, "it has dropout"),  # of which a transition that pools first would drop other pixels
        ("RKNet-rk4_38@k=4", 0.0, "a norm is not a batch norm of its own"),
        ("RKNN-rk4_38@k=4_4", 0.2, "it has dropout"),
        ("ODENet-ab@k=4_160", 0.0, "it has too many channels"),
        ("RKNet-radau3@k=4_4", 0.0, "its norms are frozen while it is solved"),
        ("RKNet-rk4_38@k=4_4,adjoint=on", 0.0, "its norms are frozen while it is solved"),
        ("RKCNN-I-2@k=4,merge=concat", 0.0, "its steps end in a concatenation"),
        ("RKCNN-I-2@k=4,shared=on", 0.0, "both phases share their convolutions"),
        ("RKCNN-I-2@k=4,norm=gn", 0.0, "a norm is not a batch norm of its own"),
        ("RKCNN-I-2@k=4", 0.2, "it has dropout"),
        ("RKCNN-E-8@k=4", 0.0, "it has too many states or channels"),
    ],
)
def test_what_can_not_be_fused_says_why(
    monkeypatch: pytest.MonkeyPatch, spec: str, dropout: float, reason: str
) -> None:
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    network = create_model(spec, dropout=dropout)
    assert fuse_network(network, CPU) == reason
    assert not any(step.fused for step in network.modules() if isinstance(step, RKStep | OdeFunction | StemConv))
    assert not any(module.pools_first for module in network.modules() if isinstance(module, Transition))


def test_fp32_keeps_the_plain_steps_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    network = create_model("RKCNN-I-2@k=4")
    assert fuse_network(network, CPU, "fp32") == "they compute in bf16 or tf32, and the recipe in fp32"
    assert not any(step.fused for step in network.modules() if isinstance(step, RKStep))


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
@pytest.mark.parametrize(
    ("spec", "channels", "fused"),
    [
        ("RKCNN-R-2@k=32", 1, ["conv1", "conv2", "conv3"]),
        ("RKCNN-R-2@k=64", 3, ["conv1", "conv2", "conv3"]),
        ("RKCNN-R-2@k=80", 3, ["conv1"]),
        ("RKCNN-R-2@k=16,stem=odenet", 5, ["conv1", "conv2", "conv3"]),
        ("RKCNN-R-2@k=80,stem=odenet", 5, []),
        ("RKCNN-R-2@k=128,stem=conv", 3, [""]),
        ("RKCNN-R-2@k=128,stem=conv", 5, []),
    ],
)
def test_the_stem_is_fused_where_its_channels_are_few(
    monkeypatch: pytest.MonkeyPatch, precision: str, spec: str, channels: int, fused: list[str]
) -> None:
    pytest.importorskip("triton", reason="triton is not installed: make test-kernels")
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    network = create_model(spec, channels=channels)
    assert fuse_network(network, CPU, precision) == ""
    stem = network.get_submodule("preprocessor")
    found = [name for name, module in stem.named_modules() if isinstance(module, StemConv) and module.fused]
    assert found == fused
    takers = [module for module in network.modules() if isinstance(module, StemConv | RKStep) and module.fused]
    assert all(module.takes_tf32 == (precision == "tf32") for module in takers)


@pytest.mark.parametrize("spec", ["RKNN-rk4_38@k=4_4", "RKNet-rk4_38@k=4_4", "ODENet-ab@k=4_4", "SONODE@k=4_4"])
def test_f_of_ode_networks_is_fused(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    pytest.importorskip("triton", reason="triton is not installed: make test-kernels")
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    network = create_model(spec)
    assert fuse_network(network, CPU, "tf32") == ""
    functions = [module for module in network.modules() if isinstance(module, OdeFunction)]
    assert functions
    assert all(f.fused and f.takes_tf32 for f in functions)


@pytest.mark.parametrize("spec", ["ResNet@k=4_4", "DenseNet-2_2@k=4", "CliqueNet-2_2@k=4", "Identity@k=4_4"])
def test_of_other_networks_the_stem_and_the_transitions_are_fused(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    pytest.importorskip("triton", reason="triton is not installed: make test-kernels")
    monkeypatch.setattr(choose, "_why_not_on", lambda device: "")
    network = create_model(spec)
    assert fuse_network(network, CPU) == ""
    frame = [module for module in network.modules() if isinstance(module, StemConv | Transition)]
    assert [bool(m.fused) if isinstance(m, StemConv) else m.pools_first for m in frame] == [True, True]
