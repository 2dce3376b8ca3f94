"""rkcnn bench through its entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rkcnn.bench import measure
from rkcnn.bench.measure import Measuring
from rkcnn.error import InputError
from rkcnn.record.bench import Bench, read_bench

Run = Callable[..., tuple[int, str, str]]
TINY = ("bench", "train", "--network", "RKCNN-E-1@k=2", "--batches", "2,4", "--engine", "eager", "--device", "cpu")
BRIEF = ("--rounds", "2", "--steps", "1")


@pytest.fixture(autouse=True)
def small_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.SIZES, "cpu", 16)
    monkeypatch.setattr("rkcnn.run.device.keep_freed_memory", lambda: None)  # it would affect the tests after this


def test_a_bench(rkcnn: Run, tmp_path: Path) -> None:
    file, folder = tmp_path / "bench.json", tmp_path / "new" / "figures"
    code, out, err = rkcnn(*TINY, *BRIEF, "--json", str(file), "-o", str(folder), "--note", "a test")
    assert code == 0
    record = read_bench(file)
    assert (record.kind, record.complete, record.note) == ("train", True, "a test")
    assert [(each.batch, each.code) for each in record.measurements] == [
        (2, "rkcnn"),
        (2, "naive"),
        (4, "rkcnn"),
        (4, "naive"),
    ]
    assert "training step, RKCNN-E-1@k=2, batch 4\n  contender " in out
    assert f"written   {file}\n" in out
    assert sorted(path.name for path in folder.iterdir()) == ["bench.png", "bench.svg"]
    assert err.startswith("preparing RKCNN-E-1@k=2, batch 2, naive eager, fp32\n")  # peers first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("trian",), "no bench 'trian' (did you mean train?)"),
        (("train", "--batch", "0"), "--batch 0 given; it is a whole number from 1 to 65536"),
        (("train", "--device", "cuda:99"), "device 'cuda:99' can't be used here"),
        (("train", "--at-once", "x"), "--at-once x given; it is a whole number"),
        (("train", "--peer", "authors=nowhere"), "nowhere is no checkout of ZhuMai/RKCNN"),
        (("train", "--network", "RKCN-E-1@k=2"), "did you mean RKCNN?"),
        (("train", "--rounds", "0"), "--rounds 0 given"),
        (("train", "--note", "x" * 301), "a note of 301 characters given"),
        (("train", "--json", "nowhere/bench.json"), "there is no folder nowhere"),
        (("train", "--json", "."), "which is a folder; name a file in it"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], says: str, rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = () if "--network" in words else ("--network", "RKCNN-E-1@k=2")
    code, out, err = rkcnn("bench", *words, *more, "--engine", "eager")
    said = [line for line in err.splitlines() if not line.startswith("preparing")]
    assert (code, out, len(said)) == (2, "", 1)
    assert said[0].startswith("rkcnn: ")
    assert says in said[0]
    assert not list(tmp_path.iterdir())


def interrupt_after(
    monkeypatch: pytest.MonkeyPatch, turns: int, error: type[BaseException] = KeyboardInterrupt
) -> None:
    run = Measuring.run

    def interrupted(self: Measuring) -> Iterator[Any]:
        for progress in run(self):
            if progress.done == turns:
                raise error("too little memory")
            yield progress

    monkeypatch.setattr(Measuring, "run", interrupted)


def test_a_record_that_can_not_be_written_is_said_before_anything_is_measured(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measuring, "run", lambda self: pytest.fail("it measured"))
    code, _, err = rkcnn(*TINY, "--json", "/proc/self/bench.json")
    assert code == 2
    assert "can't write to /proc/self/bench.json: it is a device or an open file of a process; name another" in err


def test_a_disk_that_becomes_full_loses_no_measurement(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr("rkcnn.disk.write_output", fail)
    code, out, err = rkcnn(*TINY, *BRIEF, "--json", str(tmp_path / "bench.json"))
    assert (code, err.splitlines()[-1]) == (2, "rkcnn: the disk is full")
    assert "training step, RKCNN-E-1@k=2, batch 4" in out


def test_a_reader_that_leaves_loses_no_measurement(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(record: Bench) -> str:
        raise BrokenPipeError

    monkeypatch.setattr("rkcnn.report.bench.bench_text", leave)
    assert rkcnn(*TINY, *BRIEF, "--json", str(tmp_path / "bench.json"))[0] == 141
    assert read_bench(tmp_path / "bench.json").complete


def test_ctrl_c_keeps_what_was_measured(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, 7)
    code, out, _ = rkcnn(*TINY, *BRIEF, "--json", str(tmp_path / "bench.json"))
    record = read_bench(tmp_path / "bench.json")
    assert code == 130
    assert [len(each.seconds) for each in record.measurements] == [2, 1, 1, 1]
    assert not record.complete
    assert "interrupted: 2 were asked for" in out


def test_ctrl_c_before_the_first_turn_writes_nothing(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(monkeypatch, 0)
    code, out, _ = rkcnn(*TINY, *BRIEF, "--json", str(tmp_path / "bench.json"))
    assert (code, out) == (130, "")
    assert not list(tmp_path.iterdir())


def test_an_error_keeps_what_was_measured(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, 7, InputError)
    code, out, err = rkcnn(*TINY, *BRIEF, "--json", str(tmp_path / "bench.json"))
    assert code == 2
    assert "too little memory" in err
    assert "ms" in out
    assert read_bench(tmp_path / "bench.json").measurements
