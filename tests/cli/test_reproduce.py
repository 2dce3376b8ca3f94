"""A whole table by one command: planned, trained, stopped, continued, reported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from report.records import put_records
from rkcnn.cli.summary import WARNINGS

Run = Callable[..., tuple[int, str, str]]
COMMAND = ["reproduce", "mnist", "--preset", "smoke", "--rows", "RKCNN-R-2@k=2?", "--out"]
MARK = "RKCNN_STARTED_FOR"
ROWS = "Identity*,RKCNN-E-2@k=24,DenseNet*"


@pytest.fixture(scope="session")
def trained(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Three rows trained with the preset smoke, and what the command printed; made once for all workers."""

    def train(folder: Path) -> None:
        words = ["reproduce", "mnist", "--preset", "smoke", "--rows", ROWS, "--out", str(folder / "runs")]
        done = subprocess.run([sys.executable, "-m", "rkcnn", *words], capture_output=True, text=True, check=True)
        (folder / "said").write_text(done.stdout.replace(str(folder / "runs"), "OUT"))

    return once("smoke-rows", train)


@pytest.fixture
def out(trained: Path) -> Path:
    return trained / "runs"


def test_smoke_of_a_table_and_its_report(rkcnn: Run, trained: Path, out: Path, tmp_path: Path) -> None:
    """Some rows of the MNIST table are trained and reported; everything says that it is the preset smoke."""
    said = (trained / "said").read_text()
    assert said.count(WARNINGS["smoke"]) == 2
    assert "3 networks x 1 seed on mnist-mini, recipe smoke in fp32; 0 finished, 0 begun, 3 new" in said
    assert said.count("ends      ") == 3
    assert "next      rkcnn report mnist --from OUT --preset smoke" in said
    code, said, _ = rkcnn("report", "mnist", "--from", str(out), "--preset", "smoke", "-o", str(tmp_path))
    assert code == 0
    assert "SMOKE" in said
    written = {path.name for path in tmp_path.iterdir()}
    assert {"mnist.md", "mnist.csv", "report.html"} <= written
    for name in ("mnist.md", "mnist.csv", "report.html"):
        assert "smoke" in (tmp_path / name).read_text(encoding="utf-8").lower()


def test_what_is_finished_is_not_run_again(rkcnn: Run, out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}
    assert len(before) == 3
    code, said, _ = rkcnn("reproduce", "mnist", "--preset", "smoke", "--rows", ROWS, "--out", str(out))
    assert code == 0
    assert "3 finished, 0 begun, 0 new" in said
    assert "begins" not in said
    assert {path: path.stat().st_mtime_ns for path in out.rglob("result.json")} == before


def test_a_result_that_diverged_is_counted(rkcnn: Run, out: Path, tmp_path: Path) -> None:
    for path in out.rglob("result.json"):
        copy = tmp_path / path.relative_to(out)
        copy.parent.mkdir(parents=True)
        facts = json.loads(path.read_bytes())
        if facts["run"]["network"].startswith("Dense"):
            facts |= {"status": "diverged: the loss is not finite at epoch 1, step 2, lr 0.1", "error": None}
        copy.write_text(json.dumps(facts))
    code, said, _ = rkcnn("reproduce", "mnist", "--preset", "smoke", "--rows", ROWS, "--out", str(tmp_path))
    assert code == 0
    assert "0 of 1, 1 diverged" in said


def test_a_result_that_cannot_be_used_fails_that_run_alone(rkcnn: Run, out: Path, tmp_path: Path) -> None:
    """One is damaged, one was made by another recipe: both are reported, and the rest is trained."""
    for path in out.rglob("result.json"):
        copy = tmp_path / path.relative_to(out)
        copy.parent.mkdir(parents=True)
        text = path.read_text()
        if "DenseNet" in str(path):
            text = text[:100]
        elif "Identity" in str(path):
            facts = json.loads(text)
            facts["run"]["recipe"]["lr"] = 0.05
            text = json.dumps(facts)
        copy.write_text(text)
    code, said, _ = rkcnn("reproduce", "mnist", "--preset", "smoke", "--rows", ROWS, "--out", str(tmp_path))
    assert code == 1
    assert "1 finished, 0 begun, 0 new" in said
    assert "result.json can't be read as a result" in said
    assert "result.json is of another run, made by smoke,lr=0.05; move it away" in said
    assert said.count("FAILS") == 2
    assert "RKCNN-E-2@k=24" in said


def start(out: Path, until: str, *python: str) -> subprocess.Popen[str]:
    """Start to train two rows, and return at the first line that begins with `until`."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", MARK: str(out)}
    process = subprocess.Popen(
        [*(python or (sys.executable, "-m", "rkcnn")), *COMMAND, str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=settings,
    )
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith(until))
    return process


def count_left(out: Path) -> int:
    """Count the processes that inherited the mark of that start, whoever their parent is now."""
    mark, left = f"{MARK}={out}".encode(), 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it ended meanwhile
            left += mark in path.read_bytes().split(b"\0")
    return left


def test_a_closed_pipe_stops_it_with_exit_code_141(tmp_path: Path) -> None:
    process = start(tmp_path, "begins")
    assert count_left(tmp_path) >= 1  # the command, and its workers unless they have ended
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        err = stderr.read()
    assert process.wait(60) == 141
    assert "Traceback" not in err
    assert count_left(tmp_path) == 0


WAITING_WORKER = """#!{python}
import runpy, signal, threading
from rkcnn.fit.trainer import Trainer
stopped, raise_signal, learn = threading.Event(), signal.raise_signal, Trainer.learn
def raise_and_note(number):
    raise_signal(number)
    stopped.set()
def wait_and_learn(trainer, *batch):
    if trainer.step == 2:
        stopped.wait()
    learn(trainer, *batch)
signal.raise_signal, Trainer.learn = raise_and_note, wait_and_learn
runpy.run_module("rkcnn.reproduce.worker", run_name="__main__")
"""


def test_ctrl_c_is_safe(tmp_path: Path) -> None:
    """It prints how far it is and exits with 130; no worker is left behind, and the same command continues.

    Its workers wait in their third step until they are asked to stop, so they can't end before Ctrl-C.
    """
    worker = tmp_path / "worker"
    worker.write_text(WAITING_WORKER.format(python=sys.executable))
    worker.chmod(0o755)
    code = f"import sys; sys.executable = {str(worker)!r}; from rkcnn.cli import main; main()"
    process = start(tmp_path, "begins", sys.executable, "-c", code)
    assert count_left(tmp_path) > 1  # the command and its workers
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.startswith("rkcnn: stopping; every run that has begun keeps a checkpoint\n")
    assert "of 2 runs finished; the same command continues" in err
    assert count_left(tmp_path) == 0
    command = [sys.executable, "-m", "rkcnn", *COMMAND, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert "0 finished, " in done.stdout
    assert done.stdout.count(" 1 of 1") == 2


def test_a_plan_trains_and_fetches_nothing(rkcnn: Run, tmp_path: Path) -> None:
    code, said, _ = rkcnn("reproduce", "mnist", "--plan", "--rows", "RKCNN-?-2@k=32", "--out", str(tmp_path / "runs"))
    assert code == 0
    assert "3 networks x 5 seeds on mnist, recipe paper-mnist in fp32; 0 finished, 0 begun, 15 new" in said
    assert "all" in said.splitlines()[-2]
    assert "right within a factor of two or three" in said
    assert not re.search(r"\d:\d\d", said), "no seconds in an estimate"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["imagenet"], "no table 'imagenet'; tables are mnist"),
        (["mnist", "--rows", "AlexNet"], "no row of mnist matches 'AlexNet'; rows are ResNet"),
        (["mnist", "--preset", "slow"], "--preset slow given; a table is trained by paper, fast, smoke"),
        (["mnist", "--on", "moon"], "--on moon given; a table is trained on local or on ray"),
        (["mnist", "--store", "x"], "--store given with --on local; it goes with --on ray"),
        (["mnist", "--seeds", "0"], "--seeds 0 given"),
        (["mnist", "--rows", "Identity*,RKCN-*"], "no row of mnist matches 'RKCN-*'"),
        (["mnist", "--device", "cuda:9", "--plan"], "device 'cuda:9' can't be used here"),
        (["mnist", "--preset", "smoke", "--device", "cuda:9"], "device 'cuda:9' can't be used here"),
        (["mnist", "--preset", "smoke", "--on", "ray", "--device", "cuda:1"], "say cpu, cuda or auto"),
        (["mnist", "--preset", "smoke", "--engine", "steam"], "no engine 'steam'; engines are auto, eager"),
        (["mnist", "--engine", "steam", "--plan"], "no engine 'steam'; engines are auto, eager"),
    ],
)
def test_bad_input(rkcnn: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    code, _, err = rkcnn("reproduce", *arguments, "--out", str(tmp_path / "runs"))
    assert code == 2
    assert says in err
    assert not list(tmp_path.iterdir())


def test_out_must_be_a_folder(rkcnn: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = rkcnn("reproduce", "mnist", "--preset", "smoke", "--out", str(tmp_path / "file"))
    assert code == 2
    assert "file given, and that is not a folder; name another" in err


def test_a_folder_that_cannot_be_written_is_noticed_before_anything_is_trained(rkcnn: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ("reproduce", "mnist", "--preset", "smoke", "--out")
    code, said, err = rkcnn(*words, str(tmp_path / "file" / "runs"))
    assert (code, said.count("FAILS")) == (2, 0)
    assert err.endswith("given, and a part of it is not a folder; name another\n")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    code, said, err = rkcnn(*words, str(tmp_path / "link"))
    assert (code, said.count("FAILS")) == (2, 0)
    assert err.endswith("link given, and that is not a folder; name another\n")
    code, _, err = rkcnn(*words, str(tmp_path / ("x" * 300)))
    assert code == 2
    assert "File name too long; name another folder" in err


def test_a_finished_table_is_read_from_a_folder_that_cannot_be_written(
    rkcnn: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    words = ("reproduce", "mnist", "--preset", "smoke", "--out", str(out), "--rows")
    code, said, _ = rkcnn(*words, ROWS)
    assert code == 0
    assert "next      rkcnn report mnist" in said
    code, _, err = rkcnn(*words, "ResNet@k=32")
    assert code == 2
    assert "given, and nothing can be written there; name another folder" in err


def test_a_record_of_another_version_fails_that_run_alone(rkcnn: Run, out: Path, tmp_path: Path) -> None:
    """One lacks a field, one has an unknown field."""
    for path in out.rglob("result.json"):
        facts = json.loads(path.read_bytes())
        if "DenseNet" in str(path):
            del facts["run"]["recipe"]["batch"]
        elif "Identity" in str(path):
            facts["run"]["recipe"]["warmth"] = 3
        copy = tmp_path / path.relative_to(out)
        copy.parent.mkdir(parents=True)
        copy.write_text(json.dumps(facts))
    code, said, _ = rkcnn("reproduce", "mnist", "--preset", "smoke", "--rows", ROWS, "--out", str(tmp_path))
    assert code == 1
    assert "the recipe has warmth, which this version doesn't know; move it away" in said
    assert said.count("FAILS") == 2


def test_a_plan_names_a_damaged_result_and_ends_with_1(rkcnn: Run, tmp_path: Path) -> None:
    plan = ("reproduce", "mnist", "--rows", "ResNet@k=32", "--seeds", "2", "--plan", "--device", "cpu", "--out")
    first, _ = put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    assert rkcnn(*plan, str(tmp_path))[0] == 0
    (first / "result.json").write_bytes(b"{}")
    code, said, _ = rkcnn(*plan, str(tmp_path))
    assert (code, said.count("FAILS")) == (1, 1)
    assert "1 finished, 0 begun, 0 new" in said


def test_a_precision_is_in_the_names_of_runs_and_the_next_command(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.004,)}, precision="bf16")
    words = ["reproduce", "mnist", "--rows", "RKCNN-R-2@k=32", "--seeds", "1", "--out", str(tmp_path)]
    code, out, _ = rkcnn(*words, "--precision", "bf16")
    assert code == 0
    assert "recipe paper-mnist in bf16; 1 finished, 0 begun, 0 new" in out
    assert f"next      rkcnn report mnist --from {tmp_path} --precision bf16\n" in out
    code, out, err = rkcnn(*words, "--precision", "half")
    assert (code, out) == (2, "")
    assert "--precision half given; it is one of fp32, tf32, bf16" in err
