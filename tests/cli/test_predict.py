"""rkcnn predict: answers, exit codes, and what can't be asked."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.load import load_data_set

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, pixels in enumerate(load_data_set("mnist-mini")[1].pixels[:3, 0].numpy()):
        Image.fromarray(pixels).save(folder / f"{number}.png")
    Image.fromarray(255 - pixels).resize((90, 60)).convert("RGB").save(folder / "paper.jpg")
    return folder


def test_each_picture_gets_a_line(rkcnn: Run, trained: Path, pictures: Path) -> None:
    code, out, err = rkcnn("predict", str(trained), str(pictures), str(pictures / "0.png"), "--top", "2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == [
        str(pictures / name) for name in ("0.png", "1.png", "2.png", "paper.jpg", "0.png")
    ]
    best = np.load(trained / "predictions.npy")[:3]
    for line, label in zip(lines[:3], best, strict=True):
        assert line.split()[1] == str(label)
        assert line.count(" %") == 2
    assert [line.endswith("(dark on light: inverted)") for line in lines] == [False, False, False, True, False]
    assert "inverted" not in rkcnn("predict", str(trained), str(pictures), "--no-invert")[1]
    for line in rkcnn("predict", str(trained), str(pictures), "--invert")[1].splitlines():
        assert line.endswith(" %  (inverted)"), "not by how the picture looks"


def test_files_that_are_left_out_are_counted(rkcnn: Run, trained: Path, pictures: Path) -> None:
    (pictures / "more").mkdir()
    for name in ("notes.txt", "more/a.gif", "more/B.GIF", "more/c", ".hidden"):
        (pictures / name).write_text("")
    code, out, err = rkcnn("predict", str(trained), str(pictures))
    assert (code, len(out.splitlines())) == (0, 4)
    assert err == (
        f"rkcnn: {pictures}: 4 files left out (2 .gif, 1 without a suffix, 1 .txt); .png, .jpg, .jpeg, .webp, .bmp are "
        "read\n"
    )


def test_json_and_standard_input(rkcnn: Run, trained: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO((pictures / "1.png").read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=content))
    code, out, _ = rkcnn("predict", str(trained), "-", str(pictures / "1.png"), "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["network"], found["unreadable"]) == ("ResNet@k=4", [])
    first, second = found["predictions"]
    assert (first["picture"], first["inverted"]) == ("standard input", False)
    assert first["top"] == second["top"]
    assert len(first["top"]) == 3
    assert first["top"][0]["class"] == str(np.load(trained / "predictions.npy")[1])


class Endless(io.RawIOBase):
    """A stream without an end, as /dev/zero is, that begins with some bytes; it counts what was read."""

    def __init__(self, beginning: bytes) -> None:
        self.beginning, self.given = beginning, 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "all of it was asked for"
        self.given += size
        return self.beginning.ljust(size, b"\0") if self.given == size else bytes(size)


@pytest.mark.parametrize(
    ("beginning", "says"),
    [(b"", "standard input: can't be read as PNG"), (b"BM", "standard input: holds more than 4,194,304 bytes")],
)
def test_standard_input_without_an_end(
    rkcnn: Run, trained: Path, monkeypatch: pytest.MonkeyPatch, beginning: bytes, says: str
) -> None:
    monkeypatch.setattr("rkcnn.data.picture.MOST_STREAMED", 4 << 20)
    stream = Endless(beginning)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    code, out, err = rkcnn("predict", str(trained), "-")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert stream.given <= 5 << 20


def test_standard_input_that_is_closed_or_a_folder(rkcnn: Run, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int) -> bytes:
        raise IsADirectoryError(21, "Is a directory")

    for stdin, says in (
        (None, "standard input: there are no bytes"),
        (SimpleNamespace(buffer=SimpleNamespace(read=refuse)), "standard input: can't be read (Is a directory)"),
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, err = rkcnn("predict", str(trained), "-")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err


def test_bad_ones_are_named_and_the_others_answered(rkcnn: Run, trained: Path, pictures: Path, tmp_path: Path) -> None:
    bad, empty = pictures / "bad.png", tmp_path / "empty"
    bad.write_bytes((pictures / "0.png").read_bytes()[:50])
    empty.mkdir()
    code, out, err = rkcnn("predict", str(trained), str(pictures), str(empty), str(tmp_path / "no.png"))
    assert code == 1
    assert len(out.splitlines()) == 4
    reasons = err.splitlines()
    assert len(reasons) == 3
    assert all(reason.startswith("rkcnn: ") for reason in reasons)
    assert any(f"{bad}: can't be read as PNG" in reason for reason in reasons)
    code, out, _ = rkcnn("predict", str(trained), str(pictures), "--json")
    assert code == 1
    assert [each["picture"] for each in json.loads(out)["unreadable"]] == [str(bad)]
    code, out, err = rkcnn("predict", str(trained), str(bad), str(empty))
    assert (code, out, len(err.splitlines())) == (2, "", 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("{run}",), "no picture given; give files or folders, or - for a file on standard input"),
        (("{run}", ""), "an empty name given for a picture; give files or folders, or - for a file on standard input"),
        (("nosuch", "none.png"), "its weights.safetensors, or a name of `rkcnn models --pretrained`"),
        (("{run}", "{empty}"), "is a folder with no picture"),
        (("{run}", "none.png"), "none.png: there is no such file or folder"),
        (("{run}", "none.png", "--tpo", "3"), "no option --tpo (did you mean --top?)"),
        (("{run}", "{run}/result.json"), "result.json: can't be read as PNG or JPEG or WEBP"),
        (("{run}", "none.png", "--top", "0"), "--top 0 given"),
        (("{run}/predictions.npy", "none.png"), "can't be read as weights: it is not a safetensors file; give"),
        (("ResNet@k=32", "none.png"), "is the name of a network, of which the package has no trained weights"),
    ],
)
def test_bad_input_gets_one_sentence(
    rkcnn: Run, trained: Path, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = rkcnn("predict", *(each.format(run=trained, empty=tmp_path) for each in arguments))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


def test_pretrained_weights_by_name(rkcnn: Run, pretrained: str, pictures: Path) -> None:
    code, out, err = rkcnn("predict", pretrained, str(pictures / "0.png"), "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["network"] == "RKCNN-E-2@k=4"
    assert len(found["predictions"][0]["top"]) == 3
