"""Runs for loggers: TensorBoard's files are written and read back, the other two are stand-ins."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.result import Result
from rkcnn.use import log
from rkcnn.use.log import log_runs

NAME = "mnist-mini/ResNet@k=4/mini,epochs=3/seed-0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of three epochs of three steps."""
    return put(tmp_path / "run", outcome((0.5, 0.02, 0.03)))


def put(folder: Path, made: Result) -> Path:
    epochs = tuple(replace(epoch, images=300, seconds=2.0) for epoch in made.epochs)
    folder.mkdir()
    (folder / "result.json").write_bytes(replace(made, epochs=epochs).to_json())
    return folder


def test_tensorboard_files_are_read_back(run: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "tb"
    for _ in range(2):  # the second time replaces the first
        assert list(log_runs([run], "tensorboard", out)) == [(NAME, str(out / NAME))]
    assert len(list((out / NAME).iterdir())) == 1
    events = EventAccumulator(str(out / NAME)).Reload()
    assert set(events.Tags()["scalars"]) == {"epoch", "train/loss", "train/error", "test/error", "lr", "seconds"}
    errors = events.Scalars("test/error")
    assert [each.step for each in errors] == [3, 6, 9]
    assert [each.value for each in errors] == pytest.approx([0.5, 0.02, 0.03])
    assert errors[2].wall_time == pytest.approx((run / "result.json").stat().st_mtime)
    assert errors[1].wall_time - errors[0].wall_time == pytest.approx(2, abs=1e-3)
    assert "_hparams_/session_start_info" in events.summary_metadata


def test_a_run_without_an_epoch_can_be_logged(tmp_path: Path) -> None:
    folder = put(tmp_path / "run", outcome((), status="diverged: the loss is nan", error=None))
    ((_, where),) = log_runs([folder], "tensorboard", tmp_path / "tb")
    assert list(Path(where).iterdir())


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a stand-in where a package would be imported from."""

    def put_module(name: str, **content: Any) -> None:
        made = ModuleType(name)
        made.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)

    return put_module


def test_weights_and_biases_offline(run: Path, tmp_path: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As wandb 0.31 took it, tried by hand."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    started: list[Any] = []

    class Started:
        def __init__(self, **settings: Any) -> None:
            self.settings, self.summary = settings, dict[str, float]()
            self.rows: list[tuple[int, dict[str, float]]] = []
            self.dir = str(tmp_path / "wandb" / settings["id"] / "files")
            started.append(self)

        def log(self, values: dict[str, float], step: int) -> None:
            self.rows.append((step, values))

        def finish(self, exit_code: int) -> None:
            self.exit_code = exit_code

    module("wandb", init=Started, Settings=lambda **settings: settings)
    ((name, where),) = log_runs([run], "wandb", tmp_path, "digits")
    (one,) = started
    assert name == NAME
    assert where == str(tmp_path / "wandb" / one.settings["id"])
    assert (one.settings["mode"], one.settings["project"], one.settings["name"]) == ("offline", "digits", NAME)
    assert one.settings["config"]["network"] == "ResNet@k=4"
    assert one.settings["config"]["milestones"] == "9_14"
    assert [step for step, _ in one.rows] == [3, 6, 9]
    assert one.rows[2][1]["test/error"] == 0.03
    assert one.summary["test/error_best"] == 0.02
    assert one.exit_code == 0
    list(log_runs([run], "wandb", tmp_path))
    assert started[1].settings["id"] == one.settings["id"], "so that a second upload replaces the first"


def test_mlflow(run: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As MLflow 3.17 took it, tried by hand."""
    monkeypatch.setattr(log, "MOST_METRICS", 7)
    batches: list[dict[str, Any]] = []
    ended: list[Any] = []
    deleted: list[str] = []
    made: list[dict[str, Any]] = []

    class Client:
        tracking_uri = "sqlite:///mlflow.db"

        def get_experiment_by_name(self, name: str) -> None:
            return None

        def create_experiment(self, name: str) -> str:
            return f"experiment of {name}"

        def search_runs(self, experiments: list[str], filter_string: str) -> list[Any]:
            return [SimpleNamespace(info=SimpleNamespace(run_id="old"))]

        def create_run(self, experiment: str, **settings: Any) -> Any:
            made.append({"experiment": experiment, **settings})
            return SimpleNamespace(info=SimpleNamespace(run_id="new"))

        def log_batch(self, run: str, **values: Any) -> None:
            batches.append(values)

        def set_terminated(self, run: str, status: str, end_time: int) -> None:
            ended.append((run, status, end_time - made[0]["start_time"]))

        def delete_run(self, run: str) -> None:
            deleted.append(run)

    module("mlflow", MlflowClient=Client)
    module("mlflow.entities", Metric=lambda *values: values, Param=lambda *values: values)
    assert list(log_runs([run], "mlflow")) == [(NAME, "experiment rkcnn, run new, in sqlite:///mlflow.db")]
    assert (made[0]["experiment"], made[0]["run_name"]) == ("experiment of rkcnn", NAME)
    assert ("batch", "128") in batches[0]["params"]
    metrics = [each for batch in batches[1:] for each in batch["metrics"]]
    assert all(len(batch["metrics"]) <= 7 for batch in batches[1:])
    assert [(value, step) for name, value, _, step in metrics if name == "test/error"] == [
        (0.5, 3),
        (0.02, 6),
        (0.03, 9),
    ]
    assert ended == [("new", "FINISHED", 6000)]
    assert deleted == ["old"]


@pytest.mark.parametrize(
    ("to", "options", "said"),
    [
        (
            "tensorbord",
            {},
            r"no logger 'tensorbord' \(did you mean tensorboard\?\); loggers are tensorboard, wandb, mlf",
        ),
        ("wandb", {}, "wandb is not installed here; install it with pip install wandb"),
        ("mlflow", {}, "mlflow is not installed here; install it with pip install mlflow"),
        ("tensorboard", {"project": "x"}, "`project=x` given with tensorboard, which has none"),
    ],
)
def test_what_cant_be_logged_to_is_one_sentence(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, options: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(log, "find_spec", lambda name: None if name in ("wandb", "mlflow") else object())
    with pytest.raises(InputError, match=said):
        list(log_runs([run], to, **options))


def test_where_mlflow_keeps_runs_is_its_own_setting(run: Path, module: Any) -> None:
    module("mlflow")
    with pytest.raises(
        InputError, match="`output=x` given with mlflow; say where it keeps runs by MLFLOW_TRACKING_URI"
    ):
        list(log_runs([run], "mlflow", Path("x")))


def test_a_folder_that_cant_be_written_is_one_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"can't write to .*; name another folder with `output=\.\.\.`"):
        list(log_runs([run], "tensorboard", tmp_path / "file"))
