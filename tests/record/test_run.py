"""Runs and their settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.options import OwnOptions
from rkcnn.error import InputError
from rkcnn.fit.recipe import RECIPES, find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.run import Config, Run, folder_name, name_data, read_config, read_run


def run(data: str = "mnist-mini", spec: str = "RKCNN-R-2@k=32", seed: int = 0, **changes: str) -> Run:
    return Run(data, spec, replace(find_recipe("mini"), **read_changes(changes)), seed)


@pytest.mark.parametrize(
    ("made", "folder"),
    [
        (run(), "mnist-mini/RKCNN-R-2@k=32/mini/seed-0"),
        (run(epochs="2", lr="0.05", seed=3), "mnist-mini/RKCNN-R-2@k=32/mini,epochs=2,lr=0.05/seed-3"),
        (run(epochs="18"), "mnist-mini/RKCNN-R-2@k=32/mini/seed-0"),
        (run(milestones="3_4"), "mnist-mini/RKCNN-R-2@k=32/mini,milestones=3_4/seed-0"),
        (run("npz:/a b/c.npz"), "npz~~a~b~c.npz/RKCNN-R-2@k=32/mini/seed-0"),
        (run("mnist~validation-50"), "mnist~validation-50/RKCNN-R-2@k=32/mini/seed-0"),
    ],
)
def test_folder_names(made: Run, folder: str) -> None:
    assert made.folder.as_posix() == folder


@given(st.text(min_size=1, max_size=30).map(lambda text: f"folder:{text}"))
def test_no_name_leaves_the_folder(data: str) -> None:
    folder = run(data).folder
    assert len(folder.parts) == 4
    assert ".." not in folder.parts
    assert not folder.is_absolute()


def test_what_it_is_goes_through_json_unchanged() -> None:
    made = run(milestones="3_4").as_dict()
    assert json.loads(json.dumps(made)) == made
    assert made["recipe"]["milestones"] == [3, 4]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_in_words(name: str) -> None:
    assert str(RECIPES[name]) == name
    made = Run("mnist", "ResNet@k=4", RECIPES[name], 0)
    assert read_run(made.as_dict()) == made


def test_a_recipe_that_is_gone_keeps_its_name() -> None:
    assert str(replace(RECIPES["mini"], name="older")).startswith("older,epochs=18,batch=128,")


@pytest.mark.parametrize(
    ("name", "options", "data"),
    [
        ("mnist", {}, "mnist"),
        ("mnist", {"validation": 50}, "mnist~validation-50"),
        ("folder:photos", {"size": 64, "split": 0.2}, "folder:photos~size-64~split-0.2"),
        ("npz:a.npz", {"split": 1e-05, "validation": 5}, "npz:a.npz~split-1e-05~validation-5"),
        ("folder:a", {"size": 8, "split": 0.5, "channels": 1}, "folder:a~size-8~channels-1~split-0.5"),
        ("folder:a~size-3", {"size": 32}, "folder:a~size-3~size-32"),
    ],
)
def test_what_was_chosen_about_the_images_is_in_the_name(name: str, options: dict[str, float], data: str) -> None:
    assert name_data(name, **options) == data  # type: ignore[arg-type]
    made = run(data)
    assert (made.data_set, made.validation) == (name, options.get("validation", 0))


def test_what_errors_are_measured_on() -> None:
    assert run("mnist").held_out == "test"
    assert run("mnist~validation-50").held_out == "validation"


def test_a_name_that_is_too_long_for_a_folder_ends_with_a_hash() -> None:
    short, long, other = "x" * 255, "x" * 256, "x" * 255 + "y"
    assert folder_name(short) == short
    assert len(folder_name(long)) == len(folder_name("ü" * 300).encode()) == 255
    assert folder_name(long) != folder_name(other)
    assert folder_name(long) == folder_name(long)


CONFIG = Config(
    "ResNet@k=4", "folder:photos", OwnOptions(32, 0.2), 10, replace(find_recipe("mini"), milestones=(3, 5)), 7
)


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
