"""Trained networks to Hugging Face and back, offline: a stand-in for its API has the signatures of the real one."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rkcnn.error import InputError
from rkcnn.record.result import read_result
from rkcnn.use import hub
from rkcnn.use.load import Classifier, load
from rkcnn.use.train import TrainingResult

huggingface_hub = pytest.importorskip("huggingface_hub")
RealApi = huggingface_hub.HfApi


class Api:
    """Takes what the real `HfApi` takes, and keeps what it was given instead of sending it."""

    calls: list[tuple[str, dict[str, Any]]]
    files: dict[str, bytes]
    fails: Exception | None = None

    def __init__(self, **about: Any) -> None:
        inspect.signature(RealApi).bind(**about)

    def create_repo(self, *args: Any, **kwargs: Any) -> None:
        self._note(RealApi.create_repo, args, kwargs)

    def upload_folder(self, *args: Any, **kwargs: Any) -> None:
        given = self._note(RealApi.upload_folder, args, kwargs)
        Api.files = {path.name: path.read_bytes() for path in Path(given["folder_path"]).iterdir()}

    def _note(self, real: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        if Api.fails is not None:
            raise Api.fails
        given = inspect.signature(real).bind(self, *args, **kwargs).arguments
        given.pop("self")
        Api.calls.append((real.__name__, given))
        return given


def unreachable() -> Exception:
    """Return what the real API raises where the site can't be reached; nothing listens at that port of this machine."""
    try:
        RealApi(endpoint="http://127.0.0.1:9", token="none").create_repo("me/digits")
    except Exception as error:
        return error
    raise AssertionError("something listens there")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> type[Api]:
    Api.calls, Api.files, Api.fails = [], {}, None
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "a token")
    return Api


def test_saved_and_loaded_it_is_the_same(trained: TrainingResult, tmp_path: Path) -> None:
    model = load(trained.folder)
    model.save_pretrained(tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "result.json",
    ]
    for again in (Classifier.from_pretrained(tmp_path / "saved"), load(tmp_path / "saved")):
        assert (again.description, again.result) == (model.description, model.result)
        pixels = torch.randint(256, (3, 1, 28, 28), dtype=torch.uint8)
        torch.testing.assert_close(again(pixels), model(pixels), atol=0, rtol=0)
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert (config["library"], config["network"], config["num_classes"]) == ("rkcnn", "ResNet@k=4", 10)
    model.save_pretrained(tmp_path / "saved")  # again, over what it wrote


def test_weights_without_a_record_can_be_saved(trained: TrainingResult, tmp_path: Path) -> None:
    shutil.copy(trained.folder / "weights.safetensors", tmp_path)
    load(tmp_path / "weights.safetensors").save_pretrained(tmp_path / "saved")
    assert Classifier.from_pretrained(tmp_path / "saved").result is None


def test_a_folder_with_other_files_is_refused(trained: TrainingResult) -> None:
    before = sorted(trained.folder.iterdir())
    with pytest.raises(InputError, match="holds other files already; name an empty folder"):
        load(trained.folder).save_pretrained(trained.folder)
    assert sorted(trained.folder.iterdir()) == before


def test_push_uploads_weights_record_and_card(trained: TrainingResult, api: type[Api]) -> None:
    assert hub.push(trained.folder, "me/digits", private=True) == "https://huggingface.co/me/digits"
    (made, repo), (sent, upload) = api.calls
    assert (made, repo) == ("create_repo", {"repo_id": "me/digits", "private": True, "exist_ok": True})
    assert (sent, upload["repo_id"]) == ("upload_folder", "me/digits")
    assert upload["commit_message"].startswith("ResNet@k=4 by rkcnn ")
    assert set(api.files) == set(hub.FILES)
    assert b'from_pretrained("me/digits")' in api.files["README.md"]
    assert not Path(upload["folder_path"]).exists()


def test_the_record_that_is_pushed_names_no_folder_of_the_user(trained: TrainingResult, tmp_path: Path) -> None:
    run = shutil.copytree(trained.folder, tmp_path / "seed-0")
    result = read_result(run / "result.json")
    own = replace(result, run=replace(result.run, data="folder:/home/me/photos"))
    (run / "result.json").write_bytes(own.to_json())
    other = tmp_path / "seed-1"
    other.mkdir()
    (other / "result.json").write_bytes(replace(own, run=replace(own.run, seed=1)).to_json())
    damaged = tmp_path / "seed-2"
    damaged.mkdir()
    (damaged / "result.json").write_text("{")
    hub.save_run(run, tmp_path / "saved", "me/photos")
    assert read_result(tmp_path / "saved" / "result.json").run.data == "folder:photos"
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert "/home/me" not in card
    assert "With seeds 0, 1 the same run" in card


def test_a_repository_is_fetched_by_name(
    trained: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(trained.folder).save_pretrained(tmp_path / "saved")
    real = inspect.signature(huggingface_hub.snapshot_download)
    asked = {}

    def download(*args: Any, **kwargs: Any) -> str:
        asked.update(real.bind(*args, **kwargs).arguments)
        return str(tmp_path / "saved")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert Classifier.from_pretrained("me/digits", revision="v1").name == "ResNet@k=4"
    assert (asked["repo_id"], asked["revision"]) == ("me/digits", "v1")


def test_what_is_missing_is_one_sentence(
    trained: TrainingResult, api: type[Api], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("digits", "me/digits/more", "me/ digits", "/digits", "me/a--b"):
        with pytest.raises(InputError, match="a repository on Hugging Face is named OWNER/NAME"):
            hub.push(trained.folder, name)
    shutil.copy(trained.folder / "weights.safetensors", tmp_path)
    with pytest.raises(InputError, match=r"has no result\.json beside it, from which the model card is written"):
        hub.push(tmp_path / "weights.safetensors", "me/digits")
    api.fails = OSError("403 Forbidden: you may not write here\nRequest ID 1234")
    with pytest.raises(
        InputError, match=r"can't push to me/digits on Hugging Face: 403 Forbidden: you may not write here$"
    ):
        hub.push(trained.folder, "me/digits")

    api.fails = unreachable()
    with pytest.raises(InputError, match=r"can't push to me/digits on Hugging Face: .*refused"):
        hub.push(trained.folder, "me/digits")

    def offline(*_: Any, **__: Any) -> str:
        raise OSError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(InputError, match="can't fetch me/digits from Hugging Face: no connection"):
        Classifier.from_pretrained("me/digits")
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(InputError, match=r"no token of Hugging Face is stored here; .* hf auth login$"):
        hub.push(trained.folder, "me/digits")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for ask in (lambda: hub.push(trained.folder, "me/digits"), lambda: Classifier.from_pretrained("me/digits")):
        with pytest.raises(
            InputError, match=r"huggingface_hub is not installed; install it with: pip install .*\[hub\]"
        ):
            ask()
    assert api.calls == []


def test_pretrained_weights_of_the_package_can_be_pushed(pretrained: str, tmp_path: Path) -> None:
    model = hub.save_run(pretrained, tmp_path / "pushed", "OWNER/NAME")
    assert model.name == Classifier.from_pretrained(pretrained).name == "RKCNN-E-2@k=4"
    assert sorted(path.name for path in (tmp_path / "pushed").iterdir()) == sorted(hub.FILES)
    assert hub.find_damaged_seeds(Path(pretrained)) == []
