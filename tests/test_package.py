"""The package as Python sees it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import rkcnn
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.result import Result


def test_train_is_the_room_and_called_the_function(tmp_path: Path) -> None:
    assert import_module("rkcnn.fit.recipe").recipe_of is recipe_of  # the room's files are still found
    recipe = recipe_of("mini", {"epochs": "1", "batch": "1000"})
    result = rkcnn.train("ResNet@k=4", data="mnist-mini", recipe=recipe, seed=3, out=tmp_path)
    assert isinstance(result, Result)
    assert result.finished
    assert result.run.seed == 3
    assert (tmp_path / "mnist-mini/ResNet@k=4/mini,epochs=1,batch=1000/seed-3/weights.safetensors").exists()


def test_importing_it_is_light() -> None:
    code = "import rkcnn, sys; callable(rkcnn.train) and sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
