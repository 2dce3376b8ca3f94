"""Every example runs, in two steps of training instead of minutes."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from PIL import Image

import rkcnn
from registered import forgotten
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.record.result import find_results, read_result

EXAMPLES = Path(__file__).parents[1] / "examples"


IMAGES = 200  # of mnist-mini, to train on and to test with


def load_few(name: str, *given: Any, **options: Any) -> tuple[Images, Images]:
    """Load a data set; of mnist-mini, the first images alone."""
    training, test = load_data_set(name, *given, **options)
    if name != "mnist-mini":
        return training, test
    few = [replace(each, pixels=each.pixels[:IMAGES], labels=each.labels[:IMAGES]) for each in (training, test)]
    return few[0], few[1]


def briefly(train: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(train)
    def train_briefly(*arguments: Any, **settings: Any) -> Any:
        return train(*arguments, **{**settings, "epochs": 1, "max_steps_per_epoch": 2})

    return train_briefly


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run in; families that an example registers are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rkcnn, "train", briefly(rkcnn.train))
    monkeypatch.setattr("rkcnn.use.images.load_data_set", load_few)
    monkeypatch.setattr("rkcnn.use.held_out.load_data_set", load_few)
    matplotlib.use("Agg")
    with forgotten():
        yield tmp_path


def run(name: str, *arguments: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_own_pictures_to_onnx(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, _ = load_data_set("mnist-mini")
    for label in (0, 1):
        (place / "photos" / f"a {label}").mkdir(parents=True)
        for number, pixels in enumerate(images.pixels[images.labels == label][:30, 0]):
            Image.fromarray(pixels.numpy()).resize((32, 30 + number % 5)).save(
                place / "photos" / f"a {label}" / f"{number}.png"
            )
    run("own_pictures_to_onnx.py", "photos")
    said = capsys.readouterr().out
    assert re.search(r"0\.png: a [01] with probability [01]\.\d\d\n", said)
    assert re.search(r"photos.onnx differs from the network by at most \d", said)
    assert re.search(r"onnxruntime: {'a 0': [01]\.\d\d?, 'a 1': [01]\.\d\d?}", said)


def test_a_new_step(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("new_step.py")
    assert "Gated@k=16,r=2" in capsys.readouterr().out
    sources = {
        result.run.network: result.source for _, result in find_results(place) if not isinstance(result, Exception)
    }
    assert len(sources) == 3
    assert re.fullmatch(r"[0-9a-f]{16}\+[0-9a-f]{16}", sources.pop("Gated@k=16,r=2")), "the hash of the class"
    assert all(re.fullmatch("[0-9a-f]{16}", source) for source in sources.values())
    assert list((place / "gated-and-rkcnn").iterdir())


def test_two_odes(capsys: pytest.CaptureFixture[str]) -> None:
    run("two_odes.py")
    errors = [float(number) for number in re.findall(r"error (\S+)$", capsys.readouterr().out, re.MULTILINE)]
    prey, rk4, dopri5, radau3 = errors
    assert max(prey, dopri5, radau3) < 1e-4
    assert rk4 > 1


def test_features(capsys: pytest.CaptureFixture[str]) -> None:
    run("features.py")
    said = capsys.readouterr().out
    assert len(re.findall(r"^period \d: 16 features, a linear probe errs on [\d.]+ % of the digits$", said, re.M)) == 2
    assert re.search(r"most to the pixel in row \d+, column \d+", said)


def test_the_notebook(place: Path) -> None:
    """Its code, cell by cell in one namespace; what a cell ends with can be shown."""
    notebook = json.loads((EXAMPLES / "rkcnn.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]["name"]) == (4, "python")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["execution_count"], "the outputs of a whole run are kept, for those who only look"
            exec(compile("".join(cell["source"]), f"rkcnn.ipynb, cell {number}", "exec"), names)
    kept = [set(output.get("data", ())) for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert sum("image/svg+xml" in data for data in kept) == 2
    assert (place / "digits.pt2").exists()
    assert read_result(place / "digits-pretrained" / "result.json").finished


def test_the_page_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")]
    assert all(f"({name})" in page for name in files)
    assert len(files) == len(re.findall(r"\]\(\w+\.(?:py|ipynb)\)", page))
