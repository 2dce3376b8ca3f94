"""One run: what is broken off goes on, bit for bit, and its files are those of the last epoch."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.evaluation.metrics import Predictor
from rkcnn.evaluation.weights import read_weights
from rkcnn.record.result import Stretch
from rkcnn.record.source import Source, current_source, source_hash
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import Stopped
from run.tiny_run import Count, Notes, Stop, StopAfter, go, only, start, wait_for


@pytest.mark.parametrize("engine", ["eager", "compile"])
def test_killed_at_any_step_it_ends_with_the_same_weights(digits: str, tmp_path: Path, engine: str) -> None:
    """Bit for bit the run that was never killed; with a checkpoint a step, so also at the partial batch.

    Each compilation takes seconds, so the compiled run has no partial batch and is killed once.
    """
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    changes = {"drop_last": "on"} if engine == "compile" else {}
    torch._dynamo.reset()
    one = go(digits, whole, engine=engine, checkpoint_interval=0.0, changes=changes)
    random.seed(engine)
    for kill in range(3 if engine == "eager" else 1):
        process = start(digits, broken, engine, changes=changes)
        target = random.randint(1, 6) + 7 * kill

        def reached(target: int = target, process: subprocess.Popen[str] = process) -> bool:
            names = sorted(path.stem for path in broken.rglob("checkpoint-*.json"))
            done = [int(epoch) * 7 + int(step) for _, epoch, step in (name.split("-") for name in names)]
            return process.poll() is not None or any(n >= target for n in done)

        wait_for(reached)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=600)
        assert process.returncode in (-signal.SIGKILL, 0)  # 0: done before the signal came
    torch._dynamo.reset()
    two = go(digits, broken, engine=engine, checkpoint_interval=0.0, changes=changes)
    assert one.engine == two.engine == engine
    assert only(broken, "weights.safetensors").read_bytes() == only(whole, "weights.safetensors").read_bytes()
    assert only(broken, "predictions.npy").read_bytes() == only(whole, "predictions.npy").read_bytes()
    assert [e.loss for e in one.epochs] == [e.loss for e in two.epochs]
    assert [e.held_out_error for e in one.epochs] == [e.held_out_error for e in two.epochs]


def test_broken_off_again_and_again_by_the_same_code_is_one_stretch(digits: str, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(Stopped):
            go(digits, tmp_path, observer=Stop())
    (stretch,) = go(digits, tmp_path).stretches
    assert stretch.epochs == 3


def test_a_start_that_finished_no_epoch_leaves_no_stretch(
    digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopAtOnce(Observer):
        def steps_done(self, jobs: Sequence[Job]) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as other:
        other.setattr("rkcnn.run.job.current_source", lambda network: Source("abc", "0123456789abcdef", 1))
        with pytest.raises(Stopped):
            go(digits, tmp_path, observer=StopAtOnce())
    (stretch,) = go(digits, tmp_path).stretches
    assert (stretch.epochs, stretch.source) == (3, source_hash())


def test_a_repetition_repeats_every_epoch_also_beside_a_shorter_run(digits: str, tmp_path: Path) -> None:
    go(digits, tmp_path, changes={"epochs": "1"})
    for again, epochs in ((False, 1), (True, 2)):
        count = Count()
        go(digits, tmp_path, changes={"epochs": "2"}, again=again, observer=count)
        assert count.epochs == epochs


def test_a_repetition_broken_off_at_its_first_checkpoint_continues_from_no_shorter_run(
    digits: str, tmp_path: Path
) -> None:
    class Interrupt(Observer):
        def checkpoint_written(self, job: Job) -> None:
            raise KeyboardInterrupt

    for epochs in ("1", "2"):
        go(digits, tmp_path, changes={"epochs": epochs})
    with pytest.raises(KeyboardInterrupt):
        go(digits, tmp_path, changes={"epochs": "2"}, again=True, observer=Interrupt())
    count = Count()
    go(digits, tmp_path, changes={"epochs": "2"}, observer=count)
    assert count.epochs == 2


@pytest.mark.parametrize(
    "history",
    [
        {"epochs": []},
        {"epochs": [{"number": 0}], "stretches": []},
        {"epochs": 3, "stretches": []},
        {"held_out_error": 7.0},
        {"seconds": -1.0},
    ],
)
def test_a_newest_checkpoint_with_a_history_that_cant_be_is_passed_over(
    digits: str, tmp_path: Path, history: dict[str, Any]
) -> None:
    """Also where its checksums agree; without a sound one before it, that is one sentence."""
    whole = go(digits, tmp_path / "whole")
    with pytest.raises(Stopped):
        go(digits, tmp_path, observer=StopAfter(2), checkpoint_interval=0.0)
    newest, before = sorted(tmp_path.glob("npz*/**/checkpoint-*.json"), reverse=True)
    facts = json.loads(newest.read_bytes())
    del facts["check"]
    if "epochs" in history:
        facts["history"] = history
    else:
        facts["history"]["epochs"][-1] |= history
    facts["check"] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    newest.write_text(json.dumps(facts))
    notes = Notes()
    shutil.copytree(newest.parent, tmp_path / "kept")
    result = go(digits, tmp_path, observer=notes)
    assert f"skipped damaged checkpoints: {newest.name}" in notes.said
    assert result.epochs[-1].held_out_error == whole.epochs[-1].held_out_error
    weights = [path.read_bytes() for path in tmp_path.rglob("weights.safetensors")]
    assert len(weights) == 2
    assert weights[0] == weights[1]
    shutil.rmtree(newest.parent)
    shutil.copytree(tmp_path / "kept", newest.parent)
    before.unlink()
    with pytest.raises(InputError, match=r"every checkpoint in .* is damaged"):
        go(digits, tmp_path)


def read_metrics(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(only(out, "metrics.csv").read_text(encoding="utf-8").splitlines()))


def test_metrics_have_each_epoch_once_also_where_the_run_was_broken_off(digits: str, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(digits, tmp_path, observer=Stop())
    assert len(read_metrics(tmp_path)) == 1
    with only(tmp_path, "metrics.csv").open("ab") as file:
        file.write(b"14,2,0.3")  # a row that was cut off, of an epoch that no checkpoint has
    result = go(digits, tmp_path)
    rows = read_metrics(tmp_path)
    assert [(row["step"], row["epoch"]) for row in rows] == [("7", "1"), ("14", "2"), ("21", "3")]
    assert [float(row["test/error"]) for row in rows] == [epoch.held_out_error for epoch in result.epochs]
    with pytest.raises(Stopped):
        go(digits, tmp_path, again=True, observer=Stop())
    assert len(read_metrics(tmp_path)) == 1, "a repetition begins anew"


def test_a_run_that_goes_on_has_its_whole_time_and_says_whose_source(
    digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr("rkcnn.run.job.current_source", lambda network: Source("abc", "0123456789abcdef", 1))
        with pytest.raises(Stopped):
            go(digits, tmp_path, observer=Stop())
    count = Count()
    result = go(digits, tmp_path, observer=count)
    assert "1 of its epochs were computed by a different version of the code" in count.notes[0]
    here = current_source()
    assert result.stretches == (
        Stretch(commit="abc", source="0123456789abcdef", hash_version=1, epochs=1),
        Stretch(commit=here.commit, source=here.source, hash_version=2, epochs=2),
    )
    assert result.images_per_second == pytest.approx(1200 / sum(epoch.seconds for epoch in result.epochs))


def test_more_epochs_go_on_where_the_schedule_allows(digits: str, tmp_path: Path) -> None:
    go(digits, tmp_path)
    longer, alone = Count(), Count()
    result = go(digits, tmp_path, changes={"epochs": "4"}, observer=longer)
    whole = go(digits, tmp_path / "alone", changes={"epochs": "4"}, observer=alone)
    assert (longer.epochs, alone.epochs) == (1, 4)
    assert "continues from the 3 epochs" in longer.notes[0]
    assert [e.loss for e in result.epochs] == [e.loss for e in whole.epochs]
    assert result.stretches == whole.stretches, "one stretch, with the shorter run's epochs"
    triangle = Count()
    go(digits, tmp_path, changes={"schedule": "triangle"})
    go(digits, tmp_path, changes={"schedule": "triangle", "epochs": "4"}, observer=triangle)
    assert triangle.epochs == 4


def test_a_loss_that_is_not_finite_is_a_result(digits: str, tmp_path: Path) -> None:
    result = go(digits, tmp_path, changes={"lr": "10000"}, checkpoint_interval=0.0)
    assert result.status.startswith("diverged: the loss is not finite at epoch 1, step ")
    assert result.error is None
    bad = int(result.status.split("step ")[1].split(",")[0])  # counted from 1
    kept = [int(path.stem.split("-")[2]) for path in tmp_path.rglob("checkpoint-*.json")]
    assert max(kept) == bad - 1  # the last good one
    assert not list(tmp_path.rglob("weights.safetensors"))


def test_a_record_says_what_made_it(digits: str, tmp_path: Path) -> None:
    result = go(digits, tmp_path)
    assert result.data["verified"] is False
    assert result.source == source_hash()
    assert result.versions["torch"] == torch.__version__
    assert result.run.recipe.epochs == 3
    assert result.error_best == min(epoch.held_out_error for epoch in result.epochs)


def test_a_damaged_record_beside_it_never_stops_training(digits: str, tmp_path: Path) -> None:
    go(digits, tmp_path, changes={"epochs": "1"})
    recipe_folder = only(tmp_path, "result.json").parent.parent
    for name, content in (("seed-8", b"[" * 200_000), ("seed-9", b"{}")):
        (recipe_folder / name).mkdir()
        (recipe_folder / name / "result.json").write_bytes(content)
    last = max(recipe_folder.glob("seed-0/checkpoint-*.json"))
    facts = json.loads(last.read_bytes())
    last.write_text(json.dumps(facts | {"seconds": 77}))  # the tensors agree with it, but not its own checksum
    longer = Count()
    assert go(digits, tmp_path, changes={"epochs": "2"}, observer=longer).finished
    assert longer.epochs == 2
    assert "starts anew: every checkpoint in" in longer.notes[0] or "skipped damaged checkpoints" in longer.notes[0]


def test_the_weights_are_the_running_average_and_the_predictions_are_theirs(digits: str, tmp_path: Path) -> None:
    result = go(digits, tmp_path, changes={"epochs": "1", "ema_decay": "0.9"})
    path = only(tmp_path, "weights.safetensors")
    weights, state = load_file(path), load_file(max(tmp_path.rglob("checkpoint-*.safetensors")))
    averages = {name.removeprefix("average."): value for name, value in state.items() if name.startswith("average.")}
    assert "classifier.weight" in averages
    for name, average in averages.items():
        assert torch.equal(weights[name], average), name
    assert not torch.equal(averages["classifier.weight"], state["network.classifier.weight"])
    test = load_data_set(digits)[1]
    predictions = Predictor(test, torch.device("cpu")).predictions(read_weights(path)[0])
    assert np.array_equal(np.load(only(tmp_path, "predictions.npy")), predictions)
    assert result.error == float((predictions != test.labels).double().mean())


EVALUATED = {"epochs": "2", "ema_decay": "0.9", "recompute_norms": "on"}


def test_held_out_images_are_predicted_once_an_epoch(
    digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Predictor] = []
    predictions = Predictor.predictions

    def count(self: Predictor, network: nn.Module) -> torch.Tensor:
        asked.append(self)
        return predictions(self, network)

    monkeypatch.setattr(Predictor, "predictions", count)
    result = go(digits, tmp_path, changes=EVALUATED)
    assert len(asked) == 2
    wrong = np.load(only(tmp_path, "predictions.npy")) != np.load(only(tmp_path, "labels.npy"))
    assert result.error == wrong.mean()


def test_a_run_broken_off_between_its_last_epoch_and_its_result_has_the_same_files(digits: str, tmp_path: Path) -> None:
    class Interrupt(Observer):
        def checkpoint_written(self, job: Job) -> None:
            if job.trainer.finished:
                raise KeyboardInterrupt

    whole, broken, count = tmp_path / "whole", tmp_path / "broken", Count()
    expected = go(digits, whole, changes=EVALUATED)
    with pytest.raises(KeyboardInterrupt):
        go(digits, broken, changes=EVALUATED, observer=Interrupt())
    assert not list(broken.rglob("weights.safetensors"))
    result = go(digits, broken, changes=EVALUATED, observer=count)
    assert (count.epochs, result.error) == (0, expected.error)
    for name in ("weights.safetensors", "predictions.npy", "labels.npy"):
        assert only(broken, name).read_bytes() == only(whole, name).read_bytes()
