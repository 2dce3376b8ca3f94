"""rkcnn export: what it prints and writes. tests/use/test_export.py has the other formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_it_says_what_the_file_takes_and_how_it_was_checked(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    code, out, _ = rkcnn("export", str(trained), "-o", str(path))
    assert code == 0
    assert "takes     images, uint8 (batch, 1, 28, 28); normalised inside\n" in out
    assert "returns   probabilities, float32 (batch, 10)\n" in out
    assert "checked   on 100 images of npz:" in out, "the run's own test images"
    assert f"wrote     {path}, " in out


def test_json(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    code, out, _ = rkcnn("export", str(trained), "--to", "safetensors", "-o", str(path), "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["path"], found["to"], found["images"], found["difference"]) == (str(path), "safetensors", 100, 0)
    assert "weights alone" in rkcnn("export", str(trained), "-o", str(path))[1]


def test_bad_input_gets_one_sentence(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("--to", "tflite", "-o", str(tmp_path / "a")), "--to tflite given; formats are onnx, pt2, safetensors"),
        (("-o", str(tmp_path / "a")), "say which format, as in --to onnx"),
        (("-o", "/dev/null/a.safetensors"), "name another file with --output"),
    ):
        code, out, err = rkcnn("export", str(trained), *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
