"""The stem's kernels against torch's convolution, under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

import model.fast.interpreted  # noqa: F401  skips these tests without triton
from rkcnn.model.fast import stem as fused
from rkcnn.model.fast.stem import take_stem
from rkcnn.model.fast.tiles import Window
from rkcnn.model.frame import ConvStem, OdeNetStem, StemConv
from rkcnn.model.layers import Layers

CONVOLUTIONS: dict[str, Callable[[], StemConv]] = {
    "3 colours": lambda: ConvStem(3, 20),
    "grey": lambda: ConvStem(1, 5),
    "grey, without padding": lambda: StemConv(1, 20, 3),
    "every second pixel": lambda: StemConv(20, 20, 4, stride=2, padding=1),
    "every second pixel, fewer channels than a block": lambda: StemConv(8, 16, 4, stride=2, padding=1),
    "taps that are no multiple of the stride": lambda: StemConv(5, 6, 3, stride=2, padding=1),
    "without a bias, every third pixel": lambda: StemConv(4, 3, 4, stride=3, bias=False),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks in every direction."""
    monkeypatch.setattr(fused, "choose_window", lambda *shape: Window(16, 32, 16, 4))


def results(take: Callable[[nn.Module, Tensor], Tensor], module: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The result and all gradients, by name."""
    module, x = deepcopy(module), x.clone().requires_grad_()
    out = take(module, x)
    (out.float() * torch.sin(torch.arange(out.numel())).view_as(out)).sum().backward()
    assert x.grad is not None
    found = {name: value.grad for name, value in module.named_parameters() if value.grad is not None}
    assert len(found) == len(list(module.parameters()))
    return found | {"out": out.detach(), "x": x.grad}


def plain(module: nn.Module, x: Tensor) -> Tensor:
    return module(x)


def fused_convolution(module: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(module, nn.Conv2d)
    return take_stem(module, x)


def plain_half(module: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.float16):
        return module(x)


def fused_half(module: nn.Module, x: Tensor) -> Tensor:
    for conv in module.modules():
        if isinstance(conv, StemConv):
            conv.fused = take_stem
    return plain_half(module, x)


def fused_tf32(module: nn.Module, x: Tensor) -> Tensor:
    for conv in module.modules():
        if isinstance(conv, StemConv):
            conv.fused, conv.takes_tf32 = take_stem, True
    return module(x)


def mean_distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Without biases before a batch norm, which removes them: their gradients are zero but for rounding."""
    counted = {key: value for key, value in expected.items() if key not in ("conv1.bias", "conv2.bias")}
    distances = [float((found[key].float() - value).norm() / value.norm()) for key, value in counted.items()]
    return sum(distances) / len(distances)


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("size", [(7, 6), (8, 9)])
def test_a_convolution_computes_what_torchs_does(name: str, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    conv = CONVOLUTIONS[name]()
    x = torch.randn(3, conv.in_channels, *size)
    expected, found = results(plain, conv, x), results(fused_convolution, conv, x)
    assert take_stem(conv, x).is_contiguous(memory_format=torch.channels_last)
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "k", "norm"), [(3, 20, ""), (1, 20, "bn"), (3, 8, "torch")])
def test_in_float16_a_stem_is_as_close_to_float32_as_the_plain_one(channels: int, k: int, norm: str) -> None:
    torch.manual_seed(0)
    stem = OdeNetStem(channels, k, Layers(norm)) if norm else ConvStem(channels, k)
    x = torch.randn(2, channels, 13, 14)
    expected = results(plain, stem, x)
    rounded, found, again = (results(take, stem, x) for take in (plain_half, fused_half, fused_half))
    assert mean_distance(found, expected) < 1.2 * mean_distance(rounded, expected) + 1e-4
    assert found["out"].dtype == torch.float16
    assert all(torch.equal(again[key], value) for key, value in found.items())


def test_where_tf32_is_allowed_a_stem_takes_float32() -> None:
    """The interpreter multiplies float32 in full, so that all agrees with the plain stem."""
    torch.manual_seed(0)
    stem, x = OdeNetStem(1, 20, Layers("bn")), torch.randn(2, 1, 13, 14)
    expected, found = results(plain, stem, x), results(fused_tf32, stem, x)
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-3, atol=1e-3)


def test_torch_compile_sees_one_operator_for_each_convolution() -> None:
    """With the shapes and layouts that the operators say beforehand, and the same bits."""
    torch.manual_seed(0)
    stem, x = OdeNetStem(1, 8, Layers("bn")), torch.randn(2, 1, 13, 14)
    torch._dynamo.reset()
    compiled = torch.compile(fused_half, backend="aot_eager", fullgraph=True)
    expected, found = results(fused_half, stem, x), results(compiled, stem, x)
    assert all(torch.equal(found[key], value) for key, value in expected.items())


@pytest.mark.parametrize("name", ["grey", "every second pixel"])
def test_what_the_operators_say_of_their_results_is_so(name: str) -> None:
    conv = CONVOLUTIONS[name]()
    x = torch.randn(2, conv.in_channels, 8, 8)
    gradient = take_stem(conv, x).detach()
    stride, padding = conv.stride[0], int(conv.padding[0])
    torch.library.opcheck(fused.stem, (x, conv.weight, conv.bias, stride, padding, torch.float32))
    torch.library.opcheck(fused.stem_input, (gradient, conv.weight.detach(), 8, 8, stride, padding))
    torch.library.opcheck(fused.stem_weights, (gradient, x, conv.kernel_size[0], stride, padding))
