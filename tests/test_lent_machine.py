"""benchmarks/lent_machine.py: data sets and runs come back as they went."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import read_file
from rkcnn.run_folder import checkpoint_path, tensors_of

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "lent_machine.py"


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    """The script as a module, which its worker processes import by its name."""
    sys.path.insert(0, str(SCRIPT.parent))
    yield importlib.import_module(SCRIPT.stem)
    sys.path.remove(str(SCRIPT.parent))


@settings(deadline=None)
@given(arrays(np.uint8, st.tuples(st.integers(1, 3), st.sampled_from([1, 3]), st.integers(1, 6), st.integers(1, 6))))
def test_pixels_come_back(script: Any, pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    assert np.array_equal(script.decompress(script.compress(pixels)), pixels)


def test_a_data_set_comes_back(script: Any, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (90, 6, 5, 3), dtype=np.uint8)
    np.savez(
        tmp_path / "set.npz", x_train=noise[:70], y_train=np.arange(70) % 7, x_test=noise[70:], y_test=np.arange(20) % 7
    )
    load_data_set(f"npz:{tmp_path / 'set.npz'}", Sources(data_dir=tmp_path))
    (description,) = tmp_path.rglob("set.json")
    script.pack(description.parent, tmp_path / "parts")
    script.unpack(tmp_path / "parts", tmp_path / "back")
    assert _contents(tmp_path / "back") == _contents(description.parent)
    (tmp_path / "parts" / "test.pixels.0000.xz").unlink()
    with pytest.raises(SystemExit, match="lacks some of the files"):
        script.unpack(tmp_path / "parts", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    with pytest.raises(SystemExit, match="holds no decoded data set"):
        script.pack(tmp_path, tmp_path / "more")


def test_of_runs_the_newest_checkpoint_or_the_result_comes_back(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = tmp_path / "runs" / "a@k=2" / "seed-0", tmp_path / "runs" / "b" / "seed-0"
    for folder in (begun, ended):
        folder.mkdir(parents=True)
        (folder / ".lock").touch()
        (folder / ".result.json.7.part").touch()
        for epoch in (1, 2):
            path = checkpoint_path(folder, epoch, 3)
            path.write_text(f"{epoch}")
            tensors_of(path).write_bytes(bytes(1000))
    (ended / "result.json").write_text("{}")
    monkeypatch.setattr(script, "PIECE", 4096)
    script.collect(tmp_path / "runs", tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) > 1
    script.restore(tmp_path / "out", tmp_path / "home")
    newest = checkpoint_path(Path("runs/a@k=2/seed-0"), 2, 3)
    assert set(_contents(tmp_path / "home")) == {newest, tensors_of(newest), Path("runs/b/seed-0/result.json")}
    with pytest.raises(SystemExit, match="there is no folder"):
        script.collect(tmp_path / "nowhere", tmp_path / "out")
    monkeypatch.setattr(script, "PIECE", 512)
    with pytest.raises(SystemExit, match="collect fewer"):
        script.collect(tmp_path / "runs", tmp_path / "out")


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): read_file(path, 1 << 20) for path in folder.rglob("*") if path.is_file()}
