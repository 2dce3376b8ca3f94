"""The hash is of what can change a number, and of nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rkcnn.record import source


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "rkcnn"
    shutil.copytree(source.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    monkeypatch.setattr(source, "PACKAGE", copy)
    return copy


def test_it_does_not_depend_on_the_place(package: Path) -> None:
    assert source.source_hash.__wrapped__() == source.source_hash()
    assert len(source.source_hash()) == 16


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        ("fit/sgd.py", True),
        ("model/steps/rkcnn.py", True),
        ("run/job.py", True),
        ("data/new.py", True),
        ("cli/train.py", False),
        ("report/curves.py", False),
        ("record/run.py", False),
    ],
)
def test_what_matters(package: Path, changed: str, matters: bool) -> None:
    with (package / changed).open("a") as file:
        file.write("\n# changed\n")
    assert (source.source_hash.__wrapped__() != source.source_hash()) is matters


def test_outside_a_checkout_there_is_no_commit_but_what_is_said(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RKCNN_COMMIT", raising=False)
    assert source.commit.__wrapped__() is None
    monkeypatch.setenv("RKCNN_COMMIT", "0123456789ab")  # a copy of a checkout, on a machine without git
    assert source.commit.__wrapped__() == "0123456789ab"


def test_the_commit_of_another_project_is_not_ours(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed below a repository that ignores it, as a .venv is; tracked there, it is ours."""
    monkeypatch.delenv("RKCNN_COMMIT", raising=False)

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        command = ["git", "-C", str(package.parent), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "theirs")
    assert source.commit.__wrapped__() is None
    git("add", "rkcnn")
    git("commit", "-m", "ours")
    assert source.commit.__wrapped__() == git("rev-parse", "--short=12", "HEAD")
    (package / "new.py").write_text("")
    assert source.commit.__wrapped__() == git("rev-parse", "--short=12", "HEAD") + "+"
