"""Runs that have begun and not ended are told from their newest checkpoint that can be read."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.begun import Begun, find_begun

HISTORY = tuple(replace(epoch, seconds=2.0) for epoch in outcome().epochs)


def keep(folder: Path, epoch: int, step: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"checkpoint-{epoch:05d}-{step:06d}.json"
    identity = {**outcome().run.as_dict(), "train_sha256": "0" * 64}
    history = [asdict(done) for done in HISTORY[:epoch]]
    path.write_text(json.dumps({"identity": identity, "epoch": epoch, "step": step, "history": history}))
    return path


def test_the_newest_tells_how_far_it_came(tmp_path: Path) -> None:
    keep(tmp_path / "b", 1)
    keep(tmp_path / "b", 2, 7)
    keep(tmp_path / "a", 0)
    keep(tmp_path / "done", 3)
    (tmp_path / "done" / "result.json").write_bytes(outcome().to_json())
    assert list(find_begun(tmp_path)) == [
        (tmp_path / "a", Begun(outcome().run, (), 0)),
        (tmp_path / "b", Begun(outcome().run, HISTORY[:2], 4.0)),
    ]


def test_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, 1)
    keep(tmp_path, 2).write_bytes(b"{")
    assert list(find_begun(tmp_path)) == [(tmp_path, Begun(outcome().run, HISTORY[:1], 2.0))]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"identity": {}, "history": []}', b'{"identity": 3, "history": 4}', b"\xff"]
)
def test_where_none_can_be_read_that_is_said(tmp_path: Path, content: bytes) -> None:
    keep(tmp_path, 1).write_bytes(content)
    ((folder, trouble),) = find_begun(tmp_path)
    assert folder == tmp_path
    assert isinstance(trouble, InputError)
    assert str(trouble) == f"no checkpoint in {tmp_path} can be read; remove them to start anew"
