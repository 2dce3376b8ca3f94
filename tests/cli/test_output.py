"""What the command line prints of text from outside: nothing that a terminal obeys, and no crash in any encoding."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from report.records import put_records
from rkcnn.cli import output

Run = Callable[..., tuple[int, str, str]]
SOURCE = Path(output.__file__).parent
NASTY = "Res\x1b[31mNet\n# Title <script>alert(1)</script> | `x|y` \u202e"


def test_every_printer_uses_these_functions() -> None:
    """Others print JSON, which is ASCII, or tables whose lines report/ has escaped, or bars and names of our own."""
    other = {"describe.py", "models.py", "output.py"}
    for file in SOURCE.glob("*.py"):
        printed = re.findall(r"(?<!\w)(?:console\.)?print\((.*)", file.read_text()) if file.name not in other else []
        for rest in printed:
            escaped = ("json.dumps(", "table_text(", "bench_text(", "claims_text(", "found,", 'f"\\n{memory_text(')
            status_line = "text, end="  # of progress.py, which escapes what a bench names
            assert rest.startswith((*escaped, status_line)), rest


def test_lines_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_line(NASTY)
    output.print_error(f"{NASTY} needs `split=0.2`")
    output.print_on(Console(), f"[red]{NASTY}")
    out, err = capsys.readouterr()
    assert (out.count("\n"), err.count("\n")) == (2, 1)
    assert (out + err).count(r"Res\x1b[31mNet") == 3
    assert not re.search(r"[\x1b\u202e]", out + err)
    assert err.endswith(r"\u202e needs --split 0.2" + "\n")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Runs of two networks; the records of one have escape codes, Markdown and HTML wherever text may be."""
    folders = put_records(tmp_path / "runs", {"ResNet@k=32": (0.004, 0.005), "RKCNN-I-2@k=32": (0.003, 0.004)})
    for folder in folders[:2]:
        path = folder / "result.json"
        record = json.loads(path.read_bytes())
        record["run"]["network"] = NASTY
        record["notes"] = [f"# {NASTY}"]
        record["machine"]["gpu"] = NASTY
        record["stretches"][-1]["commit"] = NASTY
        path.write_text(json.dumps(record))
    return tmp_path / "runs"


@pytest.mark.parametrize("command", ["runs", "report", "compare"])
def test_records_reach_no_terminal_unescaped(rkcnn: Run, hostile: Path, command: str) -> None:
    where = (str(hostile),) if command == "compare" else ("--from", str(hostile))
    code, out, err = rkcnn(command, *where)
    assert code == 0, err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out + err)
    assert "\n# Title" not in out
    if command != "report":  # which shows the paper's networks alone
        assert r"Res\x1b[31mNet\n# Title" in out


def test_a_comparison_s_files_hold_no_markup_of_a_record(rkcnn: Run, hostile: Path, tmp_path: Path) -> None:
    code, _, err = rkcnn("compare", str(hostile), "-o", str(tmp_path / "files"))
    assert code == 0, err
    markdown = (tmp_path / "files" / "comparison.md").read_text()
    assert "<script>" not in markdown
    assert not re.search(r"[\x1b\u202e]", markdown)
    rows = [line for line in markdown.splitlines() if line.startswith("| Res")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == len(re.findall(r"\|", markdown.split("\n|--")[0].splitlines()[-1]))
    assert len(re.findall("^#", markdown, re.MULTILINE)) == 2  # the title and Comparisons
    page = (tmp_path / "files" / "report.html").read_text()
    assert "<script>alert" not in page
    assert r"&lt;script&gt;alert" in page
    table = (tmp_path / "files" / "comparison.csv").read_text(encoding="utf-8-sig")
    assert not re.search(r"[\x1b\u202e]", table)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii:strict"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
)
def test_a_terminal_that_knows_ascii_alone(hostile: Path, environment: dict[str, str]) -> None:
    """The help has "–" and a table "±" and "Δ"."""
    code = (
        "import sys; from rkcnn.cli import main\n"
        "for arguments in sys.argv[1].split('|'):\n"
        "    try: main(arguments.split())\n"
        "    except SystemExit as end: assert not end.code, end.code"
    )
    commands = f"--help|report mnist --from {hostile}|compare {hostile}"
    done = subprocess.run(
        [sys.executable, "-c", code, commands], capture_output=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert (b"+-" if environment.get("PYTHONIOENCODING") != "latin-1:strict" else b"\xb1") in done.stdout
    assert b"Runge-Kutta" in done.stdout


def test_classes_and_folders_of_any_name(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes with escape codes and a line's end, --out with bytes that are no UTF-8: train, evaluate, predict."""
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path / "data"))
    noise = np.random.RandomState(0)
    for name in ("cat\x1b[31m", "do\ng$ <b>|"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            image = Image.fromarray(noise.randint(0, 256, (12, 12), np.uint8))
            image.save(tmp_path / "photos" / name / f"{number}.png")
    out = tmp_path / os.fsdecode(b"o\xff\xfe")
    own = ("--data", f"folder:{tmp_path / 'photos'}", "--size", "12", "--split", "0.4")
    said = [rkcnn("train", "ResNet@k=2", *own, "--epochs", "1", "--out", str(out))]
    assert said[0][0] == 0, said[0]
    code, _, err = rkcnn("evaluate", str(next(out.rglob("result.json")).parent))
    assert code == 0
    assert err == ""
    said.append(rkcnn("runs", "--from", str(out)))
    out = out.rename(tmp_path / "out")
    (folder,) = (path.parent for path in out.rglob("result.json"))
    evaluated = rkcnn("evaluate", str(folder))
    said.append(evaluated)
    picture = tmp_path / os.fsdecode(b"p\xff.png")
    (tmp_path / "photos" / "cat\x1b[31m" / "0.png").rename(picture)
    said.append(rkcnn("predict", str(folder), str(picture)))
    for code, printed, err in said:
        assert code == 0, err
        assert not re.search(r"[\x1b\udcff]", printed + err)
    assert r"cat\x1b[31m" in evaluated[1]
    assert (folder / "mistakes.png").exists() or "(0 of" in evaluated[1]
    ElementTree.parse(folder / "confusion.svg")  # an escape code is no XML
    said = [rkcnn("push", str(folder), "me/photos", "--dry-run", str(tmp_path / "card"))]
    assert said[0][0] == 0, said[0][2]
    card = (tmp_path / "card" / "README.md").read_text()
    assert r"cat\\x1b[31m, do\\ng$ &lt;b>\|" in card


def test_a_class_folder_that_is_no_utf_8_is_refused(rkcnn: Run, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"cl\xff\xfe")).mkdir()
    code, out, err = rkcnn("train", "ResNet@k=2", "--data", f"folder:{tmp_path}", "--split", "0.4")
    assert (code, out) == (2, "")
    assert err == f"rkcnn: {tmp_path}: the name of the class folder 'cl\\udcff\\udcfe' is no UTF-8; rename it\n"


def test_a_path_of_images_that_is_no_utf_8_is_refused(rkcnn: Run, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    (folder / "cat").mkdir(parents=True)
    code, out, err = rkcnn("train", "ResNet@k=2", "--data", f"folder:{folder}", "--split", "0.4")
    assert (code, out) == (2, "")
    assert r"\udcff' is no UTF-8; rename it, or link to it" in err
