"""Several ranks train as one does with the same global batch; every process is alone on one thread."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch._C._distributed_c10d import HashStore

from fit.bench import trainer
from fit.rank import CPU, GRADIENTS, RECIPE, RESUMED, RUNS, gradients, train
from rkcnn.cli import main
from rkcnn.error import InputError
from rkcnn.fit.ranks import Ranks, join

TESTS = Path(__file__).parents[1]
SCRIPT = str(TESTS / "fit" / "rank.py")
TIMEOUT = 600  # of a group of processes; seen: 13 s at most on two free cores


def environment(**more: object) -> dict[str, str]:
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in more.items()}}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def together(commands: Sequence[Sequence[str]], environments: Sequence[dict[str, str]]) -> list[tuple[int, str]]:
    """Run processes side by side to their ends: exit code and output of each; none outlives the test."""
    running = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command, env in zip(commands, environments, strict=True)
    ]
    try:
        return [(process.wait(), out) for process in running for out, _ in [process.communicate(timeout=TIMEOUT)]]
    finally:
        for process in running:
            process.kill()
            process.communicate()


def two_ranks(*task: str) -> list[tuple[int, str]]:
    """Without torchrun, whose agent would hide how each rank ended."""
    port = free_port()
    ranks = [
        environment(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        for rank in (0, 1)
    ]
    return together([[sys.executable, SCRIPT, *task]] * 2, ranks)


def torchrun(*options: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *options, SCRIPT]


def only_result(out: Path, spec: str) -> Path:
    (folder,) = (found.parent for found in out.rglob("result.json") if spec in found.parts)
    return folder


@pytest.fixture(scope="module")
def compared(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """What two ranks on one machine made of every case, one launch for all."""

    def compare(out: Path) -> None:
        command = [*torchrun("--nproc-per-node", "2", "--master-port", str(free_port())), "compare", str(out)]
        ((code, said),) = together([command], [environment()])
        assert code == 0, said

    return once("ranks", compare)


@pytest.mark.parametrize("spec", GRADIENTS)
def test_loss_gradient_and_running_statistics_are_those_of_one_rank(spec: str, compared: Path) -> None:
    """Shares of 2 and 3 images, batch norm synchronised. Measured: 2e-15 at most."""
    found, expected = torch.load(compared / "gradients.pt")[spec], gradients(spec, Ranks())
    assert list(found) == list(expected)
    far = {name: float((found[name] - value).abs().max()) for name, value in expected.items()}
    assert max(far.values()) < 1e-12, far


@pytest.mark.parametrize("spec", RUNS[:3])
def test_a_run_has_the_losses_and_weights_of_one_rank(spec: str, compared: Path, tmp_path: Path) -> None:
    """Two epochs in float32, each with a kept partial batch.

    Measured: losses within 2e-7; weights within 7e-5 on one processor. On another a ReLU that rounding opens moved
    those of a convolution by up to 9e-4, 0.3 % of their norm; in float64 the gradients agree (above).
    """
    expected = train(spec, tmp_path)
    folder = only_result(compared, spec)
    result = json.loads((folder / "result.json").read_text())
    assert (result["status"], result["machine"]["ranks"]) == ("finished", 2)
    for ours, theirs in zip(result["epochs"], expected.epochs, strict=True):
        assert ours["loss"] == pytest.approx(theirs.loss, rel=1e-5)
        assert (ours["training_error"], ours["evaluations"]) == pytest.approx(
            (theirs.training_error, theirs.evaluations)
        )
    weights = load_file(only_result(tmp_path, spec) / "weights.safetensors")
    for name, value in load_file(folder / "weights.safetensors").items():
        expected_norm = torch.linalg.vector_norm(weights[name].double()).clamp(min=0.1)
        assert torch.linalg.vector_norm(value.double() - weights[name].double()) < 0.01 * expected_norm, name


def test_an_implicit_solver_finishes_with_synchronised_norms(compared: Path) -> None:
    """Its float32 gradient solve has no digits to compare: the float64 one is compared above."""
    result = json.loads((only_result(compared, RUNS[3]) / "result.json").read_text())
    assert (result["status"], len(result["epochs"])) == ("finished", 2)


def test_stopped_then_killed_then_resumed_on_two_machines_nothing_is_lost(compared: Path, tmp_path: Path) -> None:
    """A signal to one rank stops both after the same step; two launchers without a common disk go on, bit for bit."""
    spec, out, elsewhere = RUNS[0], tmp_path / "out", tmp_path / "elsewhere"
    assert two_ranks("interrupt", str(out), spec, "1", "SIGTERM", "3") == [
        (3, "rank 0: another rank was stopped; threads of its group left: 0\n"),
        (3, "rank 1: SIGTERM; threads of its group left: 0\n"),
    ]
    (first,) = (json.loads(path.read_text()) for path in sorted(out.rglob("checkpoint-*.json"))[-1:])
    assert (first["epoch"], first["step"]) == (0, 3)
    killed, other = two_ranks("interrupt", str(out), spec, "0", "SIGKILL", "5")
    assert killed[0] == -9
    assert other[0] not in (0, 3)
    (second,) = (json.loads(path.read_text()) for path in sorted(out.rglob("checkpoint-*.json"))[-1:])
    assert (second["epoch"], second["step"]) == (1, 1)
    nodes = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    commands = [
        [*torchrun(*nodes, "--node-rank", str(node)), "train", spec, str(folder)]
        for node, folder in enumerate((out, elsewhere))
    ]
    for code, said in together(commands, [environment()] * 2):
        assert code == 0, said
    assert not elsewhere.exists()  # only rank 0 wrote
    one, two = only_result(compared, spec), only_result(out, spec)
    assert (one / "weights.safetensors").read_bytes() == (two / "weights.safetensors").read_bytes()
    losses = [[epoch["loss"] for epoch in json.loads((f / "result.json").read_text())["epochs"]] for f in (one, two)]
    assert losses[0] == losses[1]


def test_an_epoch_that_was_broken_off_has_the_solver_numbers_of_all_ranks(compared: Path) -> None:
    """Stopped between the two steps of its second epoch, after which the ranks had counted different evaluations."""
    folders = [only_result(compared / name, RESUMED) for name in ("whole", "resumed")]
    whole, resumed = (json.loads((folder / "result.json").read_text())["epochs"] for folder in folders)
    for ours, theirs in zip(resumed, whole, strict=True):
        for name in ("loss", "evaluations", "backward_evaluations", "unconverged"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-12), name


def test_all_ranks_take_as_many_iterations_or_synchronised_norms_would_not_finish(compared: Path) -> None:
    """Ranks that disagree ask for different sums, and fail or wait for ever."""
    assert len({path.read_text() for path in compared.glob("evaluations-*")}) == 1
    assert 0 not in {code for code, _ in two_ranks("disagree")}


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="without RANK, LOCAL_RANK"), join(CPU):
        pass
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "0")
    for name in ("LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match=r"2 ranks given for the 1 GPU\(s\)"), join(torch.device("cuda")):
        pass


@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT", "LOCAL_WORLD_SIZE"])
@pytest.mark.parametrize("value", ["abc", "", "-1", "1.5"])
def test_a_variable_that_is_no_number(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    given = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_PORT": "1", "LOCAL_WORLD_SIZE": "2"}
    for known, sound in {**given, "MASTER_ADDR": "127.0.0.1", name: value}.items():
        monkeypatch.setenv(known, sound)
    with pytest.raises(InputError, match=f"^{name}={value} given; it must be a whole number.* torchrun$"), join(CPU):
        pass


def test_a_rank_that_is_not_in_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "0")
    with pytest.raises(InputError, match="WORLD_SIZE=0 given"), join(CPU):
        pass
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "2")
    with pytest.raises(InputError, match=r"RANK=2 given of WORLD_SIZE=2; it must be .* from 0 to 1"), join(CPU):
        pass


@pytest.mark.parametrize("rank", [0, 1])
def test_bad_input_is_said_once_a_machine(
    rank: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    with pytest.raises(SystemExit) as ended:
        main(["describe", "nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1 - rank


def test_a_rank_without_an_image_is_refused() -> None:
    """97 images leave one for the last batch of 16."""
    with pytest.raises(InputError, match="the last batch of an epoch has 1 images for 2 ranks"):
        trainer(count=97, recipe=RECIPE, ranks=Ranks(0, 2))
    run = trainer(count=97, recipe=replace(RECIPE, drop_last=True))
    assert run.steps == 6


def test_one_process_asks_nobody() -> None:
    ranks = Ranks()
    with join(CPU) as (joined, device):
        assert (joined, device) == (ranks, CPU)
    network = trainer().network
    assert ranks.wrap(network, sync_norm=True) is network
    values = torch.ones(2)
    assert ranks.sum(values) is values
    assert (ranks.largest(1), ranks.from_rank_0(lambda: 7)) == (1, 7)


@pytest.mark.parametrize(
    ("backend", "device"), [("gloo", "cpu"), pytest.param("cpu:gloo,cuda:nccl", "cuda", marks=pytest.mark.gpu)]
)
@pytest.mark.parametrize("spec", [RUNS[0], RUNS[2]])
def test_a_group_of_one_rank_trains_as_a_process_alone_does(
    backend: str, device: str, spec: str, tmp_path: Path
) -> None:
    """All that ranks exchange goes through a group that the caller made; with one GPU no more of NCCL can be tried."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    bound = torch.device("cuda", 0) if device == "cuda" else None
    dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1, device_id=bound)
    try:
        train(spec, tmp_path / "group", device=device)
    finally:
        dist.destroy_process_group()
    train(spec, tmp_path / "alone", device=device, engine="eager")  # as several ranks are
    found, expected = (
        load_file(only_result(tmp_path / name, spec) / "weights.safetensors") for name in ("group", "alone")
    )
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=5e-4)
