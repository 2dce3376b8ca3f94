"""config.json: the settings of a run, as a file that repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rkcnn.data.options import OwnOptions
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.config import Config, read_config

CONFIG = Config("ResNet@k=4", "folder:photos", OwnOptions(32, 0.2), 10, find_recipe("mini", {"milestones": "3_5"}), 7)


def write(folder: Path, **changes: Any) -> Path:
    facts = json.loads(CONFIG.to_json()) | changes
    path = folder / "config.json"
    path.write_text(json.dumps({name: value for name, value in facts.items() if value is not None}))
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(CONFIG.to_json())
    assert read_config(path) == CONFIG
    assert json.loads(path.read_bytes())["recipe"]["weight_decay"] == 0, "every field is there, also a default"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": None}, "the file has no seed; give a run's config.json"),
        ({"seed": "7"}, "the file's seed is of type str"),
        ({"colour": 1}, "the file has colour, which this version doesn't know"),
        ({"recipe": {"name": "mini", "epochs": 3}}, "missing 2 required positional arguments: 'batch' and 'lr'"),
        (
            {"recipe": {"name": "mini", "epochs": 3, "batch": 8, "lr": 9e9}},
            "lr=9000000000.0 given; it must be",
        ),
        ({"recipe": {"lrr": 3}}, "the recipe has lrr, which this version doesn't know"),
        ({"own": {"sizes": 3}}, r"own images have no option 'sizes' \(did you mean size\?\)"),
        ({"own": {"split": 3}}, "`split=3` must be a share between 0 and 1"),
        ({"data": "arrays-12345678"}, "trained on arrays, which no file holds"),
    ],
)
def test_a_file_with_other_settings_is_one_sentence(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(InputError, match=said) as error:
        read_config(path)
    assert str(error.value).startswith(str(path))


def test_a_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json: can't be read \(there is no such file\)"):
        read_config(tmp_path / "config.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InputError, match=r"list\.json can't be read as the settings of a run: it holds a JSON list"):
        read_config(tmp_path / "list.json")
