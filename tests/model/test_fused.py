"""Networks fused for inference: the same answers in every precision, however the images are divided into batches."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from model.after_training import build, distance, images
from rkcnn.error import InputError
from rkcnn.model import fused
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.fused import choose_engine
from rkcnn.use.other_solver import SolverChoice, solve_by
from zoo import ZOO

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
BF16 = 0.05  # of the largest logit: what two ways of rounding to 8 bits, in a dozen layers, may differ by


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A compiler that returns what it is given, and the shapes it compiled for: the real one takes half a minute."""
    made: list[Any] = []

    def compile_nothing(compute: Any, dynamic: bool) -> Any:
        def first(x: Tensor) -> Tensor:
            made.append(tuple(x.shape)) if tuple(x.shape) not in made else None
            return compute(x)

        return first

    monkeypatch.setattr("torch.compile", compile_nothing)
    monkeypatch.setattr("shutil.which", lambda name: "/c++")
    return made


@torch.no_grad()
@pytest.mark.parametrize("name", ZOO)
def test_every_family_is_fused_by_its_name(name: str) -> None:
    network = build(name)
    x = images(network, 5)
    plain = network(x)
    assert distance(network.fused()(x), plain) < (1e-5 if network.spec.tol is None else 1e-2)
    rounded = network.fused("bf16")(x)
    assert rounded.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        expected = network(x).float()
    assert distance(rounded, expected) < (BF16 if network.spec.tol is None else 0.2)


@torch.no_grad()
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33])
def test_batches_are_padded_and_cut(
    compiler: list[Any], monkeypatch: pytest.MonkeyPatch, channels: int, count: int
) -> None:
    monkeypatch.setattr(fused, "BATCHES", (1, 4, 8))
    network = build("RKCNN-I-2_2@k=8", channels)
    x = images(network, count)
    found = network.fused(engine="compile")
    expected = network(x)
    for _ in range(2):
        assert found(x).shape == (count, 10)
        assert distance(found(x), expected) < 1e-5
    assert {shape[0] for shape in compiler} <= {1, 4, 8}
    assert max(shape[0] for shape in compiler) == next(size for size in (1, 4, 8, 8, 8) if size >= min(count, 8))


@torch.no_grad()
def test_a_run_of_known_length_compiles_once(compiler: list[Any]) -> None:
    network = build("RKCNN-R-2@k=8", 1)
    found = network.fused(engine="compile", images=9)
    for count in (4, 1, 4):
        assert distance(found(images(network, count)), network(images(network, count))) < 1e-5
    assert [shape[0] for shape in compiler] == [4], "the size of its first batch"


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_whether_compiling_pays_follows_the_size_of_the_images(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """RKCNN-R-2_2_2 with ODE-Net's stem, the default for images of 48 pixels or more, can't take 32."""
    monkeypatch.setattr("shutil.which", lambda name: "/c++")
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    network = build("RKCNN-R-2_2_2@k=8,stem=odenet")
    assert network.smallest > 32
    few, enough = (round(share * 60 * 15e9 / cost(network, 64).flops) for share in (0.9, 1.1))
    assert network.fused(precision, images=few, size=(64, 64)).engine == "eager"
    assert network.fused(precision, images=enough, size=(64, 64)).engine == "compile"
    assert network.fused(precision, images=enough).engine == "eager", "at its smallest size it takes less"


def test_the_choice_imports_no_compiler() -> None:
    code = """
import sys, rkcnn
found = rkcnn.create_model("RKCNN-R-2@k=8").fused(images=1)
assert found.engine == "eager"
sys.exit("torch._dynamo" in sys.modules or "sympy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_no_images_have_no_logits(compiler: list[Any]) -> None:
    network = build("ResNet@k=8")
    assert network.fused(engine="compile")(images(network, 3)[:0]).shape == (0, 10)


@torch.no_grad()
def test_inference_mode_and_an_autocast_around_it_change_nothing() -> None:
    network = build("RKCNN-R-2@k=8")
    x = images(network)
    found = network.fused()
    plain = found(x)
    with torch.inference_mode():
        assert torch.equal(found(x.clone()), plain)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(found(x), plain)


@torch.no_grad()
def test_it_is_a_copy_that_can_move() -> None:
    network = build("RKCNN-R-2@k=8")
    x = images(network)
    found = network.fused()
    before = found(x)
    for parameter in network.parameters():
        parameter.zero_()
    assert torch.equal(found(x), before)
    assert distance(found.double()(x.double()).float(), before) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_in_bf16_converted_weights_are_as_others(dtype: torch.dtype) -> None:
    network, images = create_model("RKCNN-R-2@k=8", channels=1).eval().to(torch.float16), torch.randn(2, 1, 28, 28)
    converted = copy.deepcopy(network).to(dtype).fused("bf16", engine="eager")
    assert torch.equal(converted(images), network.float().fused("bf16", engine="eager")(images))


def test_it_is_for_inference_alone() -> None:
    found = build("RKCNN-R-2@k=8").fused()
    assert not found.training
    assert not found.eval().training
    with pytest.raises(InputError, match="fused for inference and can't be trained"):
        found.train()
    with pytest.raises(InputError, match="is not saved; save the network"):
        found.state_dict()
    assert not found(images(build("RKCNN-R-2@k=8"))).requires_grad


def test_bad_input_is_one_sentence() -> None:
    network = build("RKCNN-R-2@k=8")
    with pytest.raises(InputError, match="`precision=fp16` given; it is one of fp32, tf32, bf16"):
        network.fused("fp16")
    with pytest.raises(InputError, match="`engine=fast` given; it is one of auto, eager, compile, graph"):
        network.fused(engine="fast")
    with pytest.raises(InputError, match="it takes \\(batch, 3, height, width\\)"):
        network.fused()(torch.zeros(2, 1, 28, 28))


def test_a_published_original_is_fused() -> None:
    torch.manual_seed(0)
    network = create_model("CliqueNet-k80-T18").eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        assert distance(network.fused()(x), network(x)) < 1e-4


@torch.no_grad()
def test_another_solver_is_fused_and_counted() -> None:
    network = solve_by(build("ODENet-ab@k=8", 1), SolverChoice("euler", 3))
    x = images(network, 4)
    found = network.fused(engine="compile")
    assert (found.engine, found.note) == ("eager", "the number of solver steps depends on the data, or is counted")
    assert distance(found(x), network(x)) < 1e-5


@pytest.mark.parametrize(
    ("name", "device", "wanted", "count", "engine"),
    [
        ("RKCNN-R-2@k=32", CPU, "auto", None, "eager"),
        ("RKCNN-R-2@k=32", CPU, "auto", 10_000, "eager"),
        ("RKCNN-R-2@k=32", CPU, "auto", 80_000, "eager"),  # 27 s are saved, and compiling takes 30
        ("RKCNN-R-2@k=32", CPU, "auto", 100_000, "compile"),  # 34 s are saved
        ("RKCNN-R-2@k=32", CPU, "graph", None, "compile"),
        ("RKCNN-R-2@k=32", CUDA, "auto", None, "graph"),
        ("RKCNN-R-2@k=32", CUDA, "auto", 10_000, "eager"),
        ("RKCNN-R-2@k=32", CUDA, "auto", 10**9, "graph"),
        ("RKCNN-R-2@k=32", CUDA, "compile", 1, "compile"),
        ("RKNet-radau3@k=8", CUDA, "auto", None, "eager"),
        ("RKNet-radau3@k=8", CUDA, "graph", None, "eager"),
    ],
)
def test_the_engine_is_the_fastest_for_so_many_images(
    monkeypatch: pytest.MonkeyPatch, name: str, device: torch.device, wanted: str, count: int | None, engine: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/c++")
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    assert choose_engine(build(name, 1), device, wanted, count)[0] == engine


def test_without_a_compiler_it_is_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    found = build("RKCNN-R-2@k=8").fused(engine="compile")
    assert (found.engine, found.note) == ("eager", "torch.compile needs a C++ compiler")


on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


class TestOnGpu:
    """Compiled CUDA graphs beside the plain network on the same GPU."""

    pytestmark = on_gpu

    @torch.no_grad()
    @pytest.mark.parametrize(("precision", "bound"), [("fp32", 1e-4), ("tf32", 1e-2), ("bf16", BF16)])
    def test_replays_are_as_the_plain_network(self, precision: str, bound: float) -> None:
        network = build("RKCNN-I-2_2@k=24").cuda()
        found = network.fused(precision)
        assert (found.engine, found.note) == ("graph", "")
        for count in (1, 7, 512, 1, 520, 700, 1024):
            x = torch.randn(count, 3, 32, 32, device="cuda")
            with (
                torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"),
                torch.backends.cudnn.flags(enabled=True, allow_tf32=precision != "fp32"),
            ):
                expected = network(x).float()
            logits = found(x)
            assert distance(logits, expected) < bound
            assert torch.equal(found(x), logits)  # a replay gives the same bits
            kept = logits.clone()
            found(torch.randn_like(x))
            assert torch.equal(logits, kept)  # what was returned is not overwritten by the next
        assert found.note == ""

    @torch.no_grad()
    def test_weights_that_change_later_and_a_move_to_the_cpu(self) -> None:
        network = build("RKCNN-R-2@k=8").cuda()
        x = torch.randn(8, 3, 28, 28, device="cuda")
        found = network.fused("bf16")
        before = found(x)
        for parameter in network.parameters():
            parameter.zero_()
        assert torch.equal(found(x), before)
        moved = found.cpu()
        assert moved.engine == "eager"
        assert distance(moved(x.cpu()), before.cpu()) < BF16
        assert distance(moved.cuda()(x), before) < BF16

    @torch.no_grad()
    @pytest.mark.parametrize("name", ["RKNet-rk4_38@k=8", "RKNet-radau3@k=8", "CliqueNet-3@k=8", "Leapfrog@k=8_8"])
    def test_other_families(self, name: str) -> None:
        network = build(name).cuda()
        x = torch.randn(5, 3, 28, 28, device="cuda")
        for engine in ("eager", "auto"):
            assert distance(network.fused(engine=engine)(x), network(x)) < (1e-3 if network.spec.tol is None else 1e-2)

    @torch.no_grad()
    def test_two_networks_of_one_name_keep_their_own_weights(self) -> None:
        first, second = build("RKCNN-R-2@k=8").cuda(), build("RKCNN-R-2@k=8", seed=1).cuda()
        x = torch.randn(8, 3, 28, 28, device="cuda")
        one, two = first.fused(), second.fused()
        for _ in range(2):
            assert distance(one(x), first(x)) < 1e-4
            assert distance(two(x), second(x)) < 1e-4

    @torch.no_grad()
    def test_inference_mode_before_and_after(self) -> None:
        network = build("RKCNN-R-2@k=8").cuda()
        found = network.fused()
        x = torch.randn(8, 3, 28, 28, device="cuda")
        with torch.inference_mode():
            first = found(x.clone())
        assert torch.equal(found(x), first)
        with torch.inference_mode():
            assert torch.equal(found(x.clone()), first)


def test_a_copy_of_a_fused_network_is_one_too() -> None:
    network = build("RKCNN-R-2@k=8")
    x = images(network)
    found = network.fused()
    assert torch.equal(copy.deepcopy(found)(x), found(x))


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 8, 40, 80])
def test_replays_of_one_graph_are_kept(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """A graph has one result, which its next replay overwrites: for more images than its batch, and in the next call.

    A stand-in for a CUDA graph, as there is none on a CPU.
    """

    def capture(compute: Callable[[Tensor], Tensor], batch: Tensor) -> Callable[[], Tensor]:
        result = compute(batch).clone()
        return lambda: result.copy_(compute(batch))

    monkeypatch.setattr(fused, "capture_graph", capture)
    monkeypatch.setattr(fused, "choose_engine", lambda *_: ("graph", ""))
    monkeypatch.setattr(fused.FusedNetwork, "_compile", lambda self, _: self._compute)
    monkeypatch.setattr(fused, "BATCHES", (1, 8, 32))
    network = build("RKCNN-R-2@k=4")
    found, x = network.fused(), torch.randn(count, 3, 28, 28)
    logits = found(x)
    assert distance(logits, network(x)) < 1e-4
    kept = logits.clone()
    found(torch.randn_like(x))
    assert torch.equal(logits, kept)
