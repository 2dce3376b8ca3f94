"""rkcnn runs: every result below a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from outcome import outcome, write_checkpoint

Run = Callable[..., tuple[int, str, str]]


def put(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "result.json").write_bytes(content)


def test_a_table_by_name_that_cuts_nothing_off(rkcnn: Run, tmp_path: Path) -> None:
    far = outcome(
        status="diverged: at step 3",
        error=None,
        error_best=None,
        epochs=(),
        stretches=(replace(outcome().stretches[0], epochs=0),),
    )
    far = replace(far, run=replace(far.run, data="npz:/a/very/long/path/" + "x" * 100))
    put(tmp_path / "b", far.to_json())
    put(tmp_path / "a" / "seed-0", outcome().to_json())
    code, out, err = rkcnn("runs", "--from", str(tmp_path))
    assert (code, err) == (0, "")
    head, first, second, footnote = out.splitlines()
    assert footnote == "* the lowest error of any epoch, chosen on the test set"
    assert " ".join(head.split()) == "data network recipe precision seed error best* epochs time params state folder"
    assert (
        " ".join(first.split())
        == f"mnist-mini ResNet@k=4 mini,epochs=3 fp32 0 3.00 % 2.00 % 3 1:05 1,234 finished {tmp_path}/a/seed-0"
    )
    assert (
        " ".join(second.split())
        == f"{far.run.data} ResNet@k=4 mini,epochs=3 fp32 0 - - 0 1:05 1,234 diverged {tmp_path}/b"
    )


def test_a_run_that_has_begun_is_there_too(rkcnn: Run, tmp_path: Path) -> None:
    put(tmp_path / "b", outcome().to_json())
    run = {**outcome().run.as_dict(), "train_sha256": "0" * 64, "seed": 7}
    history = [asdict(replace(epoch, seconds=40.0)) for epoch in outcome().epochs[:2]]
    stretches = [asdict(replace(outcome().stretches[0], epochs=2))]
    write_checkpoint(tmp_path / "a", 2, 5, run, {"epochs": history, "stretches": stretches})
    code, out, err = rkcnn("runs", "--from", str(tmp_path))
    assert (code, err) == (0, "")
    _, first, second, _ = (" ".join(line.split()) for line in out.splitlines())
    assert first == f"mnist-mini ResNet@k=4 mini,epochs=3 fp32 7 - 2.00 % 2 of 3 1:20 - begun {tmp_path}/a"
    assert second.endswith(f" 3 1:05 1,234 finished {tmp_path}/b")
    (found,) = json.loads(rkcnn("runs", "--from", str(tmp_path), "--json")[1])
    assert found["folder"] == str(tmp_path / "b"), "whole results only"


def test_errors_of_validation_images_are_not_called_test_errors(rkcnn: Run, tmp_path: Path) -> None:
    result = outcome()
    put(tmp_path / "a", replace(result, run=replace(result.run, data="mnist-mini~validation-50")).to_json())
    said = rkcnn("runs", "--from", str(tmp_path))[1]
    assert said.endswith("\n* the lowest error of any epoch, chosen on the validation set\n")
    put(tmp_path / "b", result.to_json())
    said = rkcnn("runs", "--from", str(tmp_path))[1]
    assert said.endswith(", chosen on the test set (~validation-N: the validation set)\n")


def test_only_runs_that_have_begun(rkcnn: Run, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 0, 0, outcome().run.as_dict(), {"epochs": [], "stretches": []})
    code, out, _ = rkcnn("runs", "--from", str(tmp_path))
    assert code == 0
    assert out.splitlines()[1].split()[5:] == ["-", "-", "0", "of", "3", "0:00", "-", "begun", str(tmp_path)]
    (tmp_path / "checkpoint-00000-000001.json").write_text("{")
    code, out, err = rkcnn("runs", "--from", str(tmp_path))
    assert (code, "begun" in out, err.count("\n")) == (1, True, 1)
    assert err.startswith(f"rkcnn: {tmp_path}/checkpoint-00000-000001.json or its tensors are damaged; the checkpoint")
    (tmp_path / "checkpoint-00000-000001.json").unlink()
    (tmp_path / "checkpoint-00000-000000.json").write_text("{")
    code, out, err = rkcnn("runs", "--from", str(tmp_path))
    assert (code, out) == (1, f"no results below {tmp_path}\n")
    assert err == f"rkcnn: no checkpoint in {tmp_path} can be read; remove them to start anew\n"


def test_json_is_whole_results(rkcnn: Run, tmp_path: Path) -> None:
    put(tmp_path / "a", outcome().to_json())
    code, out, _ = rkcnn("runs", "--from", str(tmp_path), "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert found == {"folder": str(tmp_path / "a"), **json.loads(outcome().to_json())}


def test_one_that_cant_be_read_hides_no_other(rkcnn: Run, tmp_path: Path) -> None:
    put(tmp_path / "a", b"[" * 200_000)
    put(tmp_path / "b", outcome().to_json())
    code, out, err = rkcnn("runs", "--from", str(tmp_path))
    assert code == 1
    assert len(out.splitlines()) == 3
    assert err.startswith(f"rkcnn: {tmp_path / 'a' / 'result.json'} can't be read as a result")


def test_nothing_there(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rkcnn("runs", "--from", str(tmp_path)) == (0, f"no results below {tmp_path}\n", "")
    assert rkcnn("runs", "--from", str(tmp_path), "--json")[1] == "[]\n"
    monkeypatch.chdir(tmp_path)
    code, out, err = rkcnn("runs")
    assert (code, out) == (2, "")
    assert err == "rkcnn: no folder runs here; train something first (rkcnn train) or name another with --from\n"
