"""rkcnn push, without a network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rkcnn.record.result import read_result
from rkcnn.use import hub

Run = Callable[..., tuple[int, str, str]]


def test_a_dry_run_writes_what_would_be_pushed(
    rkcnn: Run, trained: Path, digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # it isn't needed
    folder = tmp_path / "pushed"
    code, said, err = rkcnn("push", str(trained), "me/digits", "--dry-run", str(folder), "--licence", "cc0-1.0")
    assert (code, err) == (0, "")
    assert said == (
        f"{folder}: what would be pushed of ResNet@k=4 to me/digits: README.md, config.json, model.safetensors, "
        "result.json\n"
    )
    assert (folder / "README.md").read_text(encoding="utf-8").startswith('---\nlicense: "cc0-1.0"\n')
    code, _, err = rkcnn("push", str(trained), "me/digits", "--dry-run", str(trained))
    assert (code, err.endswith("holds other files already; name an empty folder, or one that doesn't exist\n")) == (
        2,
        True,
    )
    error = read_result(trained / "result.json").error
    assert error is not None
    code, said, _ = rkcnn("evaluate", str(folder), "--data", digits, "-o", str(tmp_path))
    assert (code, f"error        {100 * error:.2f} %" in said) == (0, True)


def test_it_says_where_it_was_pushed_to(rkcnn: Run, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def push(run: Path, name: str, *, private: bool, licence: str) -> str:
        return f"https://huggingface.co/{name}#{run == trained}-{private}-{licence}"

    monkeypatch.setattr(hub, "push", push)
    code, said, err = rkcnn("push", str(trained), "me/digits", "--private")
    assert (code, said, err) == (0, "pushed to https://huggingface.co/me/digits#True-True-mit\n", "")


def test_bad_input_is_one_sentence(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pushed"
    for run, name in ((trained, "digits"), (tmp_path / "none", "me/digits"), (tmp_path, "me/digits")):
        code, said, err = rkcnn("push", str(run), name, "--dry-run", str(folder))
        assert (code, said, err.count("\n")) == (2, "", 1)
    assert not folder.exists()
