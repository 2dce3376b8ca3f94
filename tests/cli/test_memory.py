"""rkcnn memory: measured row by row, kept, continued."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluation.gpu_stand_in import UUID, StandIn
from report.records import put_records
from rkcnn.record.source import find_commit

Run = Callable[..., tuple[int, str, str]]
MEASURE = ("memory", "mnist", "--rows", "ResNet@k=32")


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    folder = tmp_path / "stand-in"
    folder.mkdir()
    monkeypatch.setenv("RKCNN_COMMIT", "abc")
    monkeypatch.setattr("rkcnn.cli.memory._uuid_of", lambda device: UUID)
    find_commit.cache_clear()
    yield StandIn(folder, monkeypatch)
    find_commit.cache_clear()


def test_rows_and_identity_beside_the_papers(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "results"
    code, said, err = rkcnn(*MEASURE, "--out", str(out))
    assert (code, err) == (0, "")
    assert gpu.asked == ["Identity@k=32 10 1 28 28 cuda", "ResNet@k=32 10 1 28 28 cuda"]
    assert said.startswith("measured  Identity@k=32: 612 MiB\nmeasured  ResNet@k=32: 612 MiB\n\nMemory: the paper's")
    rows = [line.split() for line in said.splitlines()]
    assert ["pre-act", "ResNet", "767", "612", "+0", "2", "0.67"] in rows
    assert ["Identity@k=32", "-", "612", "+0", "2", "0.67"] in rows
    record = json.loads((out / "mnist" / "ResNet@k=32" / "memory.json").read_text())
    assert (record["driver_bytes"], record["gpu"], record["commit"]) == (612 << 20, "NVIDIA H200", "abc")
    assert record["versions"]["driver"] == "580.65.06"


def test_what_is_measured_is_kept_until_the_code_changes(
    rkcnn: Run, gpu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rkcnn(*MEASURE, "--out", str(tmp_path))
    gpu.set(asked="")
    _, said, _ = rkcnn("memory", "mnist", "--rows", "ResNet@k=32,RKNN-*", "--out", str(tmp_path))
    assert "recorded  ResNet@k=32: 612 MiB\n" in said
    assert gpu.asked == ["RKNN-rk4_38@k=32 10 1 28 28 cuda"]
    monkeypatch.setattr("rkcnn.record.source.source_hash", lambda entry: "another")
    rkcnn(*MEASURE, "--out", str(tmp_path))
    assert len(gpu.asked) == 3


def test_a_record_of_another_gpu_of_this_machine_is_not_current(
    rkcnn: Run, gpu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has an H200, which cuda names, and an A100, which cuda:1 names."""
    rkcnn(*MEASURE, "--out", str(tmp_path))
    gpu.set(asked="")
    monkeypatch.setattr("rkcnn.cli.memory._uuid_of", lambda device: UUID.replace("f", "e"))
    _, said, _ = rkcnn(*MEASURE, "--device", "cuda:1", "--out", str(tmp_path))
    assert "recorded " not in said
    assert gpu.asked == ["Identity@k=32 10 1 28 28 cuda:1", "ResNet@k=32 10 1 28 28 cuda:1"]


def test_a_record_is_not_current_where_torch_has_no_such_gpu(
    rkcnn: Run, gpu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rkcnn(*MEASURE, "--out", str(tmp_path))

    def fail(device: str) -> str:
        raise RuntimeError("no NVIDIA driver")

    monkeypatch.setattr("rkcnn.cli.memory._uuid_of", fail)
    assert "recorded " not in rkcnn(*MEASURE, "--out", str(tmp_path))[1]


def test_the_driver_is_asked_once_for_what_is_kept(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    rkcnn(*MEASURE, "--out", str(tmp_path))
    smi = gpu.folder / "nvidia-smi"
    smi.write_text(smi.read_text().replace("#!/bin/sh", f"#!/bin/sh\necho asked >> {gpu.folder}/smi"))
    _, said, _ = rkcnn(*MEASURE, "--out", str(tmp_path))
    assert said.count("recorded ") == 2
    assert (gpu.folder / "smi").read_text() == "asked\n"


def test_one_that_fails_does_not_stop_the_others(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    rkcnn(*MEASURE, "--out", str(tmp_path))
    gpu.set(leaves=900)
    code, said, err = rkcnn("memory", "mnist", "--rows", "RKNN-*,RKCNN-E-*32", "--out", str(tmp_path))
    assert code == 1
    assert err.startswith("rkcnn: something else changed the memory of NVIDIA H200 while RKNN-rk4_38@k=32 was measured")
    assert "recorded  Identity@k=32" in said
    assert "while RKCNN-E-2@k=32 was measured" in err
    assert not (tmp_path / "mnist" / "RKNN-rk4_38@k=32").exists()


@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b'{"schema": 1}', b"\xff"])
def test_a_damaged_record_is_named_and_measured_again(rkcnn: Run, gpu: StandIn, tmp_path: Path, content: bytes) -> None:
    rkcnn(*MEASURE, "--out", str(tmp_path))
    damaged = [tmp_path / "mnist" / name / "memory.json" for name in ("Identity@k=32", "ResNet@k=32")]
    for path in damaged:
        path.write_bytes(content)
    gpu.set(asked="")
    code, said, err = rkcnn(*MEASURE, "--out", str(tmp_path))
    assert code == 0, "nothing is missing"
    assert len(gpu.asked) == 2
    assert "measured  ResNet@k=32: 612 MiB\n" in said
    assert [line.split(" can't be read")[0] for line in err.splitlines()] == [f"rkcnn: {path}" for path in damaged]
    assert rkcnn(*MEASURE, "--out", str(tmp_path))[::2] == (0, "")


def test_a_damaged_record_of_another_row_is_named_and_left_out(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    other = tmp_path / "mnist" / "RKNN-rk4_38@k=32" / "memory.json"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"{}")
    code, said, err = rkcnn(*MEASURE, "--out", str(tmp_path))
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"rkcnn: {other} can't be read as a record of memory")
    assert "measured  ResNet@k=32: 612 MiB\n" in said
    assert "\nMemory: the paper's" in said
    assert other.read_bytes() == b"{}"


def test_a_table_without_identity_takes_that_of_its_data(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    code, said, _ = rkcnn("memory", "sota-cifar100", "--rows", "RKCNN-E*80", "--out", str(tmp_path))
    assert code == 0
    assert gpu.asked == ["Identity@k=120_120_120 100 3 32 32 cuda", "RKCNN-E-5_5_5@k=80 100 3 32 32 cuda"]
    assert ["Identity@k=120_120_120", "612", "+0", "2", "0.67"] in [line.split() for line in said.splitlines()]


def test_the_report_reads_them(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "Memory" not in rkcnn("report", "mnist", "--from", str(tmp_path))[1]
    rkcnn(*MEASURE, "--out", str(tmp_path))
    (tmp_path / "memory.json").write_text("{}")
    code, said, err = rkcnn("report", "mnist", "--from", str(tmp_path))
    assert code == 1, "one can't be read"
    assert "\nMemory: the paper's, and ours of a fresh process that infers one image (MiB)\n" in said
    assert err.count("\n") == 1
    assert "memory.json can't be read" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("mnist",),
            "nvidia-smi, which reports a GPU's memory, is not installed here; measure on a machine with an NVIDIA GPU",
        ),
        (("imagenet",), "no table 'imagenet'; tables are mnist"),
        (("mnist", "--rows", "X*"), "no row of mnist matches 'X*'; rows are ResNet-bottleneck@k=32"),
    ],
)
def test_bad_input_is_one_sentence(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, said, err = rkcnn("memory", *words, "--out", str(tmp_path))
    assert (code, said) == (2, "")
    assert err.startswith(f"rkcnn: {message}")
    assert err.count("\n") == 1


def test_torch_without_a_gpu_is_one_sentence(rkcnn: Run, gpu: StandIn, tmp_path: Path) -> None:
    gpu.set(complaint="torch 2.11.0 sees 0 GPUs here; name one of them, or measure on another machine")
    code, said, err = rkcnn(*MEASURE, "--out", str(tmp_path))
    assert (code, said) == (2, "")
    assert err.startswith("rkcnn: Identity@k=32 can't be measured on cuda: torch 2.11.0 sees 0 GPUs here; ")
    assert err.count("\n") == 1


def test_it_needs_neither_matplotlib_nor_jinja2(gpu: StandIn, tmp_path: Path) -> None:
    """A GPU machine may have torch and little else."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys(("matplotlib", "jinja2", "markupsafe", "PIL", "ray")))
from rkcnn.evaluation import memory
memory.CHILD = ("sh", {str(gpu.folder / "child")!r})
from rkcnn.cli import main
main({[*MEASURE, "--out", str(tmp_path)]!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
