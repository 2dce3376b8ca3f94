"""Every engine trains as the plain one does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from fit.bench import RECIPE, trainer
from rkcnn.error import InputError
from rkcnn.fit.engine import Engine, FusedEager, Graph, start_engine
from rkcnn.fit.trainer import Trainer
from rkcnn.model.frame import StemConv
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.model.steps.rkcnn import RKStep

gpu = pytest.mark.gpu
NETWORKS = ("RKCNN-R-2@k=4", "RKCNN-I-2_2@k=8", "ResNet@k=4", "RKNet-rk4_38@k=4", "CliqueNet-2_2@k=4")


def losses(engine: Engine, epochs: int = 2) -> list[float]:
    """The mean loss of every step so far, after each; the steps include kept partial batches."""
    run = engine.trainer
    found = []
    engine.begin()
    for _ in range(epochs):
        run.begin_epoch()
        engine.wait_for_caller()
        for _ in range(run.steps):
            engine.advance()
            engine.wait()
            total, _, seen, _ = run.totals.tolist()
            found.append(total / seen)
        run.epoch += 1
    return found


def test_compiled_gives_the_losses_of_eager() -> None:
    """To 1e-3, relative, over two epochs with a partial batch (rounding grows from 1e-7 by training): two shapes.

    Those of tests/run/test_job.py, so that the kernels, 30 s of a C++ compiler, are made once.
    """
    torch._dynamo.reset()
    recipe = replace(RECIPE, batch=64, padding=4)
    expected = losses(Engine(trainer(count=400, recipe=recipe)))
    assert losses(Engine(trainer(count=400, recipe=recipe), compiled=True)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "spec", "used", "says"),
    [
        ("auto", "RKCNN-R-2@k=4", "eager", ""),
        ("eager", "RKCNN-R-2@k=4", "eager", ""),
        (
            "graph",
            "ODENet-abm@k=4",
            "eager",
            "no CUDA graph: it needs a GPU; not compiled: the number of solver steps depends on the data",
        ),
    ],
)
def test_what_is_missing_is_said(kind: str, spec: str, used: str, says: str) -> None:
    engine = start_engine(kind, trainer(spec))
    assert engine.kind == used
    assert engine.note.startswith(says)


@pytest.mark.parametrize(
    ("spec", "epochs", "kind"),
    [
        ("RKCNN-R-2@k=32", 1, "eager"),
        ("RKCNN-R-2@k=32", 1_500, "eager"),  # 600,000 digits: 1.85e13 FLOPs
        ("RKCNN-R-2@k=32", 1_700, "compile"),
        ("RKCNN-R-2@k=4", 1_700, "eager"),
        ("RKCNN-R-2_2@k=32,stem=odenet", 3_400, "eager"),  # without group norms it is as fast as compiled
        ("ODENet-abm@k=32", 1_700, "eager"),
    ],
)
def test_a_long_run_on_a_cpu_is_compiled_where_that_pays(spec: str, epochs: int, kind: str) -> None:
    engine = start_engine("auto", trainer(spec, count=400, recipe=replace(RECIPE, epochs=epochs, batch=100)))
    assert engine.kind == kind
    assert bool(engine.note) == (spec.startswith("ODENet")), "that it can't be compiled"


def test_an_engine_that_compiles_nothing_undoes_what_another_compiled() -> None:
    run = trainer("Identity@k=2")
    Engine(run, compiled=True)
    assert run.loss != run.forward
    Engine(run)
    assert run.loss == run.forward


class CountingCompiler:
    """Stands in for the compiler, which takes 15 s a network, behind torch's own limits on compiling."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled = 0
        torch._dynamo.reset()
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=self))

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        self.compiled += 1
        return graph.forward


def test_every_network_is_compiled_however_many_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch stops at 8 variants of a function, with a warning; each network is one."""
    compiler = CountingCompiler(monkeypatch)
    for count, k in enumerate(range(2, 12), start=1):
        engine = Engine(trainer(f"Identity@k={k}", recipe=replace(RECIPE, drop_last=True)), compiled=True)
        engine.begin()
        assert compiler.compiled == count
        assert (engine.kind, engine.note) == ("compile", "")


def test_seeds_of_a_network_share_what_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = CountingCompiler(monkeypatch)
    for seed in range(3):
        engine = Engine(trainer("Identity@k=2", seed=seed), compiled=True)
        engine.begin()
        assert compiler.compiled == 2, "a whole batch and a partial one"
        for _ in range(engine.trainer.steps):
            engine.advance()
        assert compiler.compiled == 2, "no step has to wait for the compiler"


def test_compiling_leaves_the_trainer_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    CountingCompiler(monkeypatch)
    run, fresh = (trainer("Identity@k=2", recipe=replace(RECIPE, ema_decay=0.5)) for _ in range(2))
    Engine(run, compiled=True).begin()
    assert (run.epoch, run.step, run.seconds) == (0, 0, 0.0)
    assert all(torch.equal(a, b) for a, b in zip(run.state().values(), fresh.state().values(), strict=True))


@pytest.mark.parametrize("trouble", ["the compiler fails", "torch's limit is reached"])
def test_what_can_not_be_compiled_runs_eagerly_and_says_so(monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    compiler = CountingCompiler(monkeypatch)
    if trouble == "torch's limit is reached":
        monkeypatch.setattr("rkcnn.model.compiling.VERSIONS", 1)
    else:
        monkeypatch.setattr(compiler, "compiled", "no number")  # so that counting raises TypeError
    engine = Engine(trainer(), compiled=True, note="no CUDA graph: it needs a GPU")
    engine.begin()
    assert engine.kind == "eager"
    assert engine.note.startswith("no CUDA graph: it needs a GPU; not compiled: ")
    assert "\n" not in engine.note
    assert losses(engine) == losses(Engine(trainer()))


def test_fused_kernels_that_cant_run_are_noted() -> None:
    engine = start_engine("fused", trainer(recipe=replace(RECIPE, precision="bf16")))
    assert engine.note.startswith("no fused kernels: it needs a GPU; no CUDA graph: it needs a GPU")
    assert engine.kind in ("compile", "eager")


def pretend_gpu(run: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run on a CPU choose its engine as on a GPU; no kernel runs and no triton is needed."""
    functions = {
        "step": "take_step",
        "ode": "take_function",
        "stem": "take_stem",
        "update": "update_parameters",
    }
    for name, function in functions.items():
        monkeypatch.setitem(sys.modules, f"rkcnn.model.fast.{name}", SimpleNamespace(**{function: print}))
    run.device = torch.device("cuda")
    monkeypatch.setattr("rkcnn.model.fast.choose._why_not_on", lambda device: "")
    monkeypatch.setattr("rkcnn.fit.engine.Graph", lambda trainer, note, kind: SimpleNamespace(note=note, kind=kind))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)


@pytest.mark.parametrize(
    ("asked", "precision", "kind"),
    [
        ("auto", "fp32", "graph"),
        ("auto", "tf32", "graph"),  # which is faster in tf32 depends on the width
        ("auto", "bf16", "fused"),
        ("fused", "fp32", "graph"),
        ("fused", "tf32", "fused"),
        ("fused", "bf16", "fused"),
    ],
)
def test_which_precisions_train_in_fused_kernels(
    monkeypatch: pytest.MonkeyPatch, asked: str, precision: str, kind: str
) -> None:
    """As on a GPU, where in fp32 a note says why not if they were asked for."""
    run = trainer(recipe=replace(RECIPE, precision=precision))
    pretend_gpu(run, monkeypatch)
    engine = start_engine(asked, run)
    assert engine.kind == kind
    refused = asked == "fused" != kind
    assert engine.note == ("no fused kernels: they compute in bf16 or tf32, and the recipe in fp32" if refused else "")
    steps = [step for step in run.network.modules() if isinstance(step, RKStep)]
    assert all(bool(step.fused) == (kind == "fused") for step in steps)
    assert all(step.takes_tf32 == (kind == "fused" and precision == "tf32") for step in steps)


@pytest.mark.parametrize(
    ("spec", "asked", "kind"),
    [
        ("RKNet-rk4_38@k=4_4", "auto", "fused"),
        ("ODENet-ab@k=4_4", "auto", "fused"),
        ("RKNN-rk4_38@k=4_4", "fused", "fused"),
        ("ODENet-abm@k=4_4", "auto", "eager"),
        ("ODENet-abm@k=4_4", "fused", "fused"),
        ("ResNet@k=4_4", "auto", "graph"),
        ("ResNet@k=4_4", "fused", "fused"),
    ],
)
def test_ode_networks_with_fixed_steps_train_in_fused_kernels_and_others_where_asked(
    monkeypatch: pytest.MonkeyPatch, spec: str, asked: str, kind: str
) -> None:
    """Without a graph where the data decides how often f is evaluated."""
    run = trainer(spec, recipe=replace(RECIPE, precision="bf16"))
    pretend_gpu(run, monkeypatch)
    engine = start_engine(asked, run)
    assert engine.kind == kind
    assert bool(engine.note) == (kind == "eager")
    assert isinstance(engine, FusedEager) == ("abm" in spec and kind == "fused")
    able = [module for module in run.network.modules() if isinstance(module, OdeFunction | StemConv)]
    assert all(bool(module.fused) == (kind == "fused") for module in able)
    assert bool(run.sgd.fused) == (kind == "fused")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="engines are auto, eager, compile, graph, fused"):
        start_engine("warp", trainer())


def cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")


def on_gpu(spec: str, **changes: object) -> Trainer:
    return trainer(spec, device="cuda", recipe=replace(RECIPE, **changes))  # type: ignore[arg-type]


@gpu
@pytest.mark.parametrize(
    ("spec", "compiled"), [*((spec, False) for spec in NETWORKS), ("RKCNN-R-2@k=4", True), ("RKCNN-I-2_2@k=8", True)]
)
def test_a_graph_gives_the_losses_of_eager(spec: str, compiled: bool) -> None:
    """fp32 without tf32, over two epochs with a partial batch outside the graph: to 1e-3, relative."""
    cuda()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch._dynamo.reset()
    expected = losses(Engine(on_gpu(spec)))
    found = losses(Graph(on_gpu(spec), compiled=compiled))
    assert found == pytest.approx(expected, rel=1e-3)


@gpu
def test_warming_up_leaves_no_trace() -> None:
    """After the first replay the weights are those of one plain step, and the norms saw one batch."""
    cuda()
    plain, graphed = Engine(on_gpu("RKCNN-R-2@k=4")), Graph(on_gpu("RKCNN-R-2@k=4"), compiled=False)
    for engine in (plain, graphed):
        engine.begin()
        engine.advance()
        engine.wait()
    for a, b in zip(plain.trainer.state().values(), graphed.trainer.state().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@gpu
def test_a_graph_begun_at_a_partial_batch_holds_whole_ones() -> None:
    cuda()
    run = on_gpu("RKCNN-R-2@k=4")
    run.step = run.steps - 1
    assert len(run.batches.plan(0, run.step)[0]) < run.recipe.batch
    assert len(Graph(run, compiled=False).indices) == run.recipe.batch


@gpu
def test_dropout_in_a_graph_is_a_function_of_the_step() -> None:
    cuda()
    one, two = (Graph(on_gpu("RKCNN-R-2@k=4", dropout=0.3), compiled=False) for _ in range(2))
    first = losses(one)
    torch.rand(5, device="cuda")
    assert losses(two) == pytest.approx(first, rel=1e-4)
    assert losses(Engine(on_gpu("RKCNN-R-2@k=4", dropout=0.3)))[0] == pytest.approx(first[0], rel=1e-4)


@gpu
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_lower_precision_stays_close(precision: str) -> None:
    """The first step to 2 %, relative: bf16 keeps 8 bits."""
    cuda()
    expected = losses(Engine(on_gpu("RKCNN-I-2_2@k=8")), epochs=1)
    found = losses(Graph(on_gpu("RKCNN-I-2_2@k=8", precision=precision)), epochs=1)
    assert found[0] == pytest.approx(expected[0], rel=0.02)


@gpu
def test_auto_is_fused_or_a_graph_and_says_why_not() -> None:
    cuda()
    for network, precision, kind in (
        ("RKCNN-R-2@k=4", "bf16", "fused"),
        ("RKCNN-R-2@k=4", "fp32", "graph"),
        ("RKNet-rk4_38@k=4", "bf16", "graph"),  # its norms are group norms
        ("ODENet-ab@k=4_4", "bf16", "fused"),
        ("ResNet@k=4", "bf16", "graph"),
    ):
        engine = start_engine("auto", on_gpu(network, precision=precision))
        assert (engine.kind, engine.note) == (kind, "")
    engine = start_engine("auto", on_gpu("ODENet-abm@k=4"))
    assert engine.kind == "eager"
    assert "depends on the data" in engine.note
