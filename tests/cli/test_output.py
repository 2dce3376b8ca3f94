"""What the command line prints of text from outside: nothing that a terminal obeys, and no crash in any encoding."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from report.records import put_records
from rkcnn.cli import output

Run = Callable[..., tuple[int, str, str]]
SOURCE = Path(output.__file__).parent
NASTY = "Res\x1b[31mNet\n# Title <script>alert(1)</script> | `x|y` \u202e"


def test_every_printer_uses_these_functions() -> None:
    """Others print JSON, which is ASCII, or tables whose lines report/ has escaped, or bars and names of our own."""
    other = {"count_progress.py", "describe.py", "models.py", "output.py"}
    for file in SOURCE.glob("*.py"):
        printed = re.findall(r"(?<!\w)(?:console\.)?print\((.*)", file.read_text()) if file.name not in other else []
        for rest in printed:
            assert re.match(r"json\.dumps\(|table_text\(|claims_text\(|found,|f\"\\n\{memory_text\(", rest), (
                file,
                rest,
            )


def test_lines_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_line(NASTY)
    output.print_error(f"{NASTY} needs `split=0.2`")
    output.print_on(Console(), f"[red]{NASTY}")
    for line in (*capsys.readouterr().out.splitlines(), *capsys.readouterr().err.splitlines()):
        assert r"\x1b[31mNet" in line
        assert r"\u202e" in line
    assert not re.search(r"[\x1b\u202e]", "".join(capsys.readouterr()))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Runs of two networks; the records of one have escape codes, Markdown and HTML wherever text may be."""
    folders = put_records(tmp_path / "runs", {"ResNet@k=32": (0.004, 0.005), "RKCNN-I-2@k=32": (0.003, 0.004)})
    for folder in folders[:2]:
        path = folder / "result.json"
        record = json.loads(path.read_bytes())
        record["run"]["spec"] = NASTY
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
