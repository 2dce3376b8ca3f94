"""Damages are decided by the seed alone, and every way of damaging can be chosen."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from fuzz.mutations import BYTES, KINDS, Damage, damage, put

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the harness reads /proc")


def make_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(8))
    return file.getvalue()


def make_npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, x_train=np.zeros((2, 3, 3), np.uint8), y_train=np.arange(2))
    return file.getvalue()


SOUND = {
    "bytes": bytes(range(256)),
    "json": json.dumps({"a": [1, {"b": "c"}], "d": 0.5, "e": None}).encode(),
    "npy": make_npy(),
    "safetensors": save({"w": torch.zeros(3)}, {"rkcnn": json.dumps({"network": "ResNet@k=4"})}),
}


@pytest.mark.parametrize("form", SOUND)
def test_a_seed_decides_the_damage(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.mutations.MANY", (30, 60, 150))  # thousands of names take seconds
    made = [damage(Random(seed), SOUND[form], form) for seed in range(60)]
    assert made == [damage(Random(seed), SOUND[form], form) for seed in range(60)]
    assert sum(each.content == SOUND[form] for each in made) < 6
    assert len({each.about for each in made}) > 10


def test_damages_of_arrays_that_can_be_read() -> None:
    for form, about in (("npy", "npy values"), ("safetensors", "safetensors values"), ("npz", "npz sizes")):
        sound = make_npz() if form == "npz" else SOUND[form]
        seed = next(seed for seed in range(500) if damage(Random(seed), sound, form).about == about)
        made = damage(Random(seed), sound, form).content
        assert made is not None
        assert made != sound
        if form == "npz":
            with np.load(io.BytesIO(made)) as arrays:
                assert sum(array.nbytes for array in arrays.values()) > 40e6 > 40 * len(made)
        elif form == "npy":
            assert np.load(io.BytesIO(made)).dtype == np.int16
        else:
            assert not all(abs(value) < 1e9 for value in load(made)["w"].tolist())


@pytest.mark.parametrize(("form", "about"), [("json", "many names"), ("safetensors", "safetensors entries")])
def test_damages_of_many_entries(form: str, about: str) -> None:
    assert any(damage(Random(seed), SOUND[form], form).about == about for seed in range(500))


def test_every_way_is_chosen() -> None:
    said = {damage(Random(seed), SOUND["bytes"], "bytes").about for seed in range(2000)}
    assert set(KINDS) < said
    assert set(BYTES) == {way for about in said - set(KINDS) for way in about.split(" + ")}


@pytest.mark.parametrize("content", [b"", b"x"])
def test_an_empty_file_can_be_damaged_too(content: bytes) -> None:
    for seed in range(300):
        damage(Random(seed), content, "bytes")


def test_kinds_of_files_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    for kind in KINDS:
        path = tmp_path / kind.replace("/", "-")
        path.write_text("sound")
        put(path, Damage(kind, None), tmp_path / "outside")
        assert path.exists() or path.is_symlink() or kind == "missing"
    assert (tmp_path / "FIFO").is_fifo()
    assert (tmp_path / "huge and sparse").stat().st_size == 8 << 30
