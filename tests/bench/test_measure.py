"""A plan that is carried out, and the matrix product."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.peers.stand_ins import write_authors
from rkcnn.bench import measure
from rkcnn.bench.measure import Measuring, Product, Progress
from rkcnn.bench.memory import PeakMemory
from rkcnn.bench.plan import CannotRun, PeerChoice, make_plan
from rkcnn.error import InputError


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_flops_of_a_product(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.SIZES, "cpu", 8)
    times = iter([0.0, 9.0, 10.0, 12.0])  # the warm-up takes 9 s, the turn 2
    monkeypatch.setattr("rkcnn.bench.measure.time.perf_counter", lambda: next(times))
    assert Product(precision, torch.device("cpu")).take_turn() == 2 * 8**3 * 3 / 2


@pytest.fixture(autouse=True)
def small_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.SIZES, "cpu", 16)


def test_every_contender_takes_its_turn_in_each_round() -> None:
    plan = make_plan("train", ["RKCNN-E-1@k=2"], batch="2,3", engine="eager", rounds=2, steps=1, device="cpu")
    measuring = Measuring(plan, "a note")
    progress = list(measuring.run())
    record = measuring.record
    assert [each.done for each in progress] == [None] * 4 + list(range(10))
    turns = [each.what for each in progress[4:]]
    assert [turn.replace("round 1", "round 2") for turn in turns[:5]] == turns[5:]
    assert progress[5] == Progress("round 1 of 2: RKCNN-E-1@k=2, batch 2, rkcnn eager, fp32", 1, 10)
    assert [(each.batch, each.code, len(each.seconds)) for each in record.measurements] == [
        (2, "rkcnn", 2),
        (2, "naive", 2),
        (3, "rkcnn", 2),
        (3, "naive", 2),
    ]
    assert (record.complete, record.note, len(record.products["fp32"])) == (True, "a note", 2)
    assert record.versions.keys() >= {"rkcnn", "torch", "python", "torchdiffeq"}


def test_a_peer_that_computes_something_else_is_said_before_any_turn(tmp_path: Path) -> None:
    peer = f"authors={write_authors(tmp_path, factor=2)}"
    for kind in ("train", "infer", "memory"):
        plan = make_plan(kind, ["RKCNN-E-1@k=2"], batch="2", engine="eager", device="cpu", peers=[peer])
        seen: list[Progress] = []
        with pytest.raises(InputError, match="authors was not timed"):
            seen.extend(Measuring(plan).run())
        assert not [each for each in seen if each.done is not None or " rkcnn " in each.what]


def test_infer_and_solve() -> None:
    infer = Measuring(make_plan("infer", ["ResNet@k=2"], batch="1", engine="eager", rounds=1, steps=1, device="cpu"))
    list(infer.run())
    assert [(each.work, each.code) for each in infer.record.measurements] == [("forward pass", "rkcnn")]
    solve = Measuring(make_plan("solve", ["RKNN-euler@k=2"], batch="2", rounds=1, steps=1, device="cpu"))
    list(solve.run())
    assert [(each.work, each.label) for each in solve.record.measurements] == [
        ("training step", "rkcnn eager"),
        ("training step", "torchdiffeq eager"),
        ("solve", "rkcnn.solve eager"),
        ("solve", "torchdiffeq eager"),
    ]


def test_memory_is_measured_in_turns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def peak(network: str, batch: int, precision: str, engine: str, device: str, peer: PeerChoice | None) -> PeakMemory:
        asked.append(f"{engine} {peer or 'rkcnn'}")
        if engine == "graph":
            raise CannotRun("no GPU")
        return PeakMemory(7, 3)

    monkeypatch.setattr(measure, "measure_peak", peak)
    measuring = Measuring(make_plan("memory", ["RKCNN-E-1@k=2"], engine="eager,graph", rounds=2, device="cpu"))
    list(measuring.run())
    assert asked == ["eager rkcnn", "graph rkcnn", "eager naive", "eager rkcnn", "eager naive"]
    assert [each.memory_bytes for each in measuring.record.measurements] == [[7, 7], [7, 7]]
    assert measuring.record.left_out == ["rkcnn graph of RKCNN-E-1@k=2, fp32: no GPU"]


def test_what_can_not_run_is_left_out_once() -> None:
    plan = make_plan(
        "train",
        ["ResNet@k=2"],
        batch="2,3",
        precision="fp32,tf32",
        engine="eager",
        rounds=1,
        steps=1,
        device="cpu",
        peers=["naive"],
    )
    measuring = Measuring(plan)
    list(measuring.run())
    assert [each.batch for each in measuring.record.measurements] == [2, 3]
    naive, tf32 = measuring.record.left_out  # not once for each batch
    assert naive.startswith("naive eager of ResNet@k=2, fp32: there is no naive writing")
    assert tf32 == "rkcnn eager of ResNet@k=2, tf32: tf32 is a precision of GPUs"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", ["train", "infer", "solve"])
def test_on_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine runs, and has kernels, memory and a share of the product."""
    monkeypatch.setitem(measure.SIZES, "cuda", 512)
    network = "RKNet-rk4_38@k=8" if kind == "solve" else "RKCNN-R-2@k=8"
    plan = make_plan(kind, [network], batch="4", precision="fp32,bf16", rounds=2, steps=3, device="cuda")
    measuring = Measuring(plan)
    list(measuring.run())
    assert not measuring.record.left_out
    for each in measuring.record.measurements:
        assert (each.kernels or 0) > 1, each.label
        assert (each.peak_bytes or 0) > 0, each.label
        assert each.work == "solve" or measuring.record.share_of_product(each), each.label


def test_nothing_to_measure_is_an_error() -> None:
    measuring = Measuring(make_plan("train", ["ResNet@k=2"], engine="graph", rounds=1, device="cpu", peers=["none"]))
    with pytest.raises(InputError, match="nothing can be measured: rkcnn graph of ResNet@k=2, fp32: no CUDA graph"):
        list(measuring.run())
