"""rkcnn compare: the table on the terminal, the files, and what can't be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outcome import outcome

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two networks with two seeds each, and one run by another recipe."""
    for spec, errors in {"ResNet@k=4": (0.03, 0.04), "Mine@k=4": (0.02, 0.01)}.items():
        for seed, error in enumerate(errors):
            made = outcome((0.5, error))
            run = replace(made.run, network=spec, seed=seed)
            folder = tmp_path / "runs" / run.folder
            folder.mkdir(parents=True)
            (folder / "result.json").write_bytes(replace(made, run=run).to_json())
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "result.json").write_bytes(outcome((0.5,)).to_json())
    return tmp_path / "runs"


def test_a_table_and_files(rkcnn: Run, runs: Path, tmp_path: Path) -> None:
    code, out, err = rkcnn("compare", str(runs), "--reference", "ResNet@k=4", "-o", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert out.startswith("comparison: 2 networks on mnist-mini; mini,epochs=2 in fp32, 4 runs\n")
    assert "Mine@k=4 and ResNet@k=4 are not separable with 2 seeds: the difference is -2.00 points" in out
    assert f"\nwritten   {tmp_path / 'out' / 'report.html'}\n" in out
    assert (tmp_path / "out" / "comparison.csv").exists()
    assert "written" not in rkcnn("compare", str(runs))[1]


def test_what_cant_be_compared_is_one_sentence_and_writes_nothing(rkcnn: Run, runs: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    code, said, err = rkcnn("compare", str(runs), str(tmp_path / "short"), "-o", out)
    assert (code, said) == (2, "")
    assert err.count("\n") == 1
    assert "can't be compared: their recipes (mini) differ in epochs (2 and 1); name runs" in err
    assert not Path(out).exists()
    code, _, err = rkcnn("compare", str(runs), "--reference", "Mine")
    assert (code, err) == (
        2,
        "rkcnn: --reference Mine given (did you mean Mine@k=4?); the networks are Mine@k=4, ResNet@k=4\n",
    )
    assert rkcnn("compare")[0] == 2
    (tmp_path / "file").write_text("")
    assert rkcnn("compare", str(runs), "-o", str(tmp_path / "file"))[:2] == (2, "")


def test_a_record_that_cant_be_read_is_told(rkcnn: Run, runs: Path) -> None:
    (runs / "bad").mkdir()
    (runs / "bad" / "result.json").write_text("{}")
    code, out, err = rkcnn("compare", str(runs))
    assert code == 1
    assert "4 runs" in out
    assert err.startswith("rkcnn: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "header",
    [b"", b"{'descr': '<i2', 'fortran_order': False, 'shape': (17592186044416,)}", b"(" * 4000],
    ids=["cut off", "huge", "nested"],
)
def test_damaged_predictions_are_told(rkcnn: Run, runs: Path, header: bytes) -> None:
    path = next(path for path in sorted(runs.rglob("result.json")) if b'"seed": 0' in path.read_bytes()).parent
    (path / "predictions.npy").write_bytes(
        b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header if header else b""
    )
    code, out, err = rkcnn("compare", str(runs))
    assert (code, "4 runs" in out) == (1, True)
    assert err.startswith(f"rkcnn: {path / 'predictions.npy'} can't be read as the class of each image")
    assert err.count("\n") == 1


WRONG = {  # by what is wrong: predictions of 200 images of class 0, of which 6 were mistaken
    "has 7 classes, and the result is of 200 images": np.zeros(7, np.int16),
    "has classes from 0 to 77, and those of the result are 0 to 9": np.repeat(np.array([0, 77], np.int16), [194, 6]),
    "has classes from -1 to 0, and those of the result are 0 to 9": np.repeat(np.array([0, -1], np.int16), [194, 6]),
    "has 8 mistakes in 200 images, and the result an error of 3.0000%": np.repeat(np.array([0, 3], np.int16), [192, 8]),
}


@pytest.mark.parametrize("says", WRONG)
def test_readable_predictions_that_contradict_the_result_are_told(rkcnn: Run, runs: Path, says: str) -> None:
    folders = [path.parent for path in sorted(runs.rglob("result.json")) if b'"seed": 0' in path.read_bytes()]
    for folder in folders:
        facts = json.loads((folder / "result.json").read_text())
        facts["data"] |= {"held_out_images": 200, "classes": list("0123456789")}
        (folder / "result.json").write_text(json.dumps(facts))
        wrong = round(200 * facts["error"])
        np.save(folder / "predictions.npy", np.repeat(np.array([0, 3], np.int16), [200 - wrong, wrong]))
        np.save(folder / "labels.npy", np.zeros(200, np.int16))
    code, sound, err = rkcnn("compare", str(runs))
    assert (code, err, "There is no McNemar test" in sound, "McNemar" in sound) == (0, "", False, True)
    mistaken = next(folder for folder in folders if b'"error": 0.03' in (folder / "result.json").read_bytes())
    np.save(mistaken / "predictions.npy", WRONG[says])
    code, out, err = rkcnn("compare", str(runs))
    assert code == 1
    assert err.startswith(f"rkcnn: {mistaken / 'predictions.npy'} {says}, and tests image by image are left out;")
    assert err.count("\n") == 1
    assert "4 runs" in out
    assert "There is no McNemar test" in out
