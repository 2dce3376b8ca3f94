"""rkcnn report: tables beside the paper's."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from report.records import put_records
from rkcnn.error import InputError
from rkcnn.report import compare as comparing
from rkcnn.report import report as reporting
from rkcnn.report.figures import FIGURES
from rkcnn.report.readme import RESULTS

Run = Callable[..., tuple[int, str, str]]


def test_one_table_with_the_claims_that_speak_of_it(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path)
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path))
    assert (code, err) == (0, "")
    assert out.startswith("mnist: the paper's table on MNIST")
    assert "\nThe paper's claims\n- " in out
    assert "\n- undecided (2 of 8 comparisons: 1 as claimed, 1 undecided): RKCNN-E errs more" in out
    code, out, _ = rkcnn("report", "sota-mnist", "--from", str(tmp_path))
    assert code == 0
    assert "the bottleneck" not in out


def test_every_table_that_has_results(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast")
    code, out, _ = rkcnn("report", "--from", str(tmp_path))
    assert code == 0
    lines = out.replace("\n  ", " ").splitlines()  # a long title is wrapped
    tables = [line.partition(":")[0] for line in lines if line.endswith(" runs")]
    assert tables == ["mnist", "cifar10", "sota-mnist", "ablation", "scaling", "norms"]  # as they share runs
    assert "The paper's claims (FAST: not the paper's recipe)" in out


def test_presets_are_apart(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    assert "SMOKE" not in rkcnn("report", "mnist", "--from", str(tmp_path))[1]
    code, out, _ = rkcnn("report", "mnist", "--from", str(tmp_path), "--preset", "smoke")
    assert code == 0
    assert "SMOKE: 40 steps on mnist-mini; says nothing about accuracy" in out
    assert "The paper's claims" not in out


def test_files(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path / "runs")
    code, out, _ = rkcnn("report", "mnist", "--from", str(tmp_path / "runs"), "-o", str(tmp_path / "out"))
    assert code == 0
    assert f"written   {tmp_path / 'out' / 'mnist.md'}\n" in out
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"mnist.md", "mnist.csv", "mnist-forest.svg", "mnist-bands.png", "report.html"} <= files
    assert out.count("written ") == len(files)


def test_files_are_complete_before_anything_is_printed(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a reader that leaves early, such as `head`, keeps none from being written."""
    put_records(tmp_path / "runs", {"ResNet@k=32": (0.004,)})
    page = tmp_path / "out" / "report.html"

    def leave(part: object) -> str:
        raise InputError("the reader has left")

    monkeypatch.setattr("rkcnn.report.tables.text.table_text", leave)
    code, out, _ = rkcnn("report", "mnist", "--from", str(tmp_path / "runs"), "-o", str(page.parent))
    assert (code, out) == (2, "")
    assert page.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report"], "no results of any table below FOLDER; make some with rkcnn reproduce mnist, or name another"),
        (["report", "svhn"], "no results of the table svhn below FOLDER; make some with rkcnn reproduce svhn"),
        (
            ["report", "mnist", "--preset", "fast"],
            "no results of the table mnist by its fast preset below FOLDER; make some with rkcnn reproduce mnist "
            "--preset fast, or name another folder with --from",
        ),
        (["report", "imagenet"], "no table 'imagenet'; tables are mnist, cifar10"),
        (["report", "--preset", "mini"], "--preset mini given; a table is trained by paper, fast, smoke"),
        (["report", "--readme", "none.md"], "no file none.md here; name a README that has"),
        (
            ["report", "mnist", "--readme", "README.md"],
            "--readme given with a table, -o, --preset or --precision; use it alone",
        ),
    ],
)
def test_bad_input_is_one_sentence(rkcnn: Run, tmp_path: Path, words: list[str], message: str) -> None:
    code, out, err = rkcnn(*words, "--from", str(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith(f"rkcnn: {message.replace('FOLDER', str(tmp_path))}")
    assert err.count("\n") == 1


def test_presets_that_have_results_are_named(rkcnn: Run, tmp_path: Path) -> None:
    for preset in ("paper", "fast"):
        put_records(tmp_path, {"ResNet@k=32": (0.004,)}, preset=preset)
    code, _, err = rkcnn("report", "mnist", "--preset", "smoke", "--from", str(tmp_path))
    assert code == 2
    assert "(results by paper and fast are there); make some with rkcnn reproduce mnist --preset smoke, or" in err


def test_nothing_is_printed_that_cant_be_written(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path / "runs", {"ResNet@k=32": (0.004,)})
    file = tmp_path / "file"
    file.write_text("")
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path / "runs"), "-o", str(file))
    assert (code, out) == (2, "")
    assert err == f"rkcnn: --output {file} given, and that is a file; name a folder\n"


def test_a_readme_without_markers_is_named(rkcnn: Run, tmp_path: Path) -> None:
    plain = tmp_path / "plain.md"
    plain.write_text("# It")
    code, _, err = rkcnn("report", "--readme", str(plain), "--from", str(tmp_path / "none"))
    assert code == 2
    assert err.startswith(f"rkcnn: {plain} lacks {RESULTS[0]} or {RESULTS[1]}; name a file")


def test_no_folder(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = rkcnn("report")
    assert code == 2
    assert err.startswith("rkcnn: no folder runs here; train a table first")


def test_a_damaged_record_is_said_and_hides_no_other(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    (tmp_path / "result.json").write_bytes(b"[" * 200_000)
    (tmp_path / "memory.json").write_bytes(b"[" * 200_000)
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path))
    assert code == 1
    assert "1 of 95 runs" in out
    for line, name in zip(err.splitlines(), ("result.json", "memory.json"), strict=True):
        assert line.startswith(f"rkcnn: {tmp_path / name} can't be read")


def test_copies_that_differ_are_said(rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rkcnn.error.USUAL_MESSAGE", 10_000)  # the folders of this test have long names
    monkeypatch.setattr("rkcnn.error.LONGEST_MESSAGE", 10_000)
    (first,) = put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)})
    (second,) = put_records(tmp_path / "b", {"ResNet@k=32": (0.003,)})
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path))
    assert code == 0
    assert "0.400" in out
    assert err.startswith(f"rkcnn: {second} is a copy of the run in {first} with a different result")
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(RESULTS))
    code, _, err = rkcnn("report", "--readme", str(readme), "--from", str(tmp_path))
    assert code == 0
    assert "with a different result" in err


def test_the_readmes_results(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path / "results")
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(("# It", *RESULTS, "more")))
    code, out, _ = rkcnn("report", "--readme", str(readme), "--from", str(tmp_path / "results"))
    picture = tmp_path / "docs" / "results.svg"
    page = tmp_path / "docs" / "results.md"
    assert code == 0
    assert out.splitlines() == [
        f"written   {picture}",
        f"written   {tmp_path / 'docs' / 'results-mnist-paper.svg'}",
        f"written   {page}",
        f"written   {readme}, from {tmp_path / 'results'}",
    ]
    assert "## The paper's claims" in page.read_text(encoding="utf-8")
    assert b"ResNet (bottleneck)" in picture.read_bytes()
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"# It\n{RESULTS[0]}\nTest errors in percent. Last epoch")
    assert text.endswith(f"\n{RESULTS[1]}\nmore")


def test_a_readme_stays_as_it_was_where_its_picture_cant_be_written(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path / "results")
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(RESULTS))
    (tmp_path / "docs").write_text("")
    code, out, err = rkcnn("report", "--readme", str(readme), "--from", str(tmp_path / "results"))
    assert (code, out) == (2, "")
    assert "docs: a file with that name already exists; name a README whose folder can be written" in err
    assert readme.read_text() == "\n".join(RESULTS)


def test_it_loads_no_torch(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.003, 0.004)})
    code = (
        "import sys\nfrom rkcnn.cli import app\n"
        f"app(['report', 'mnist', '--from', {str(tmp_path)!r}], result_action='return_value')\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, stdout=subprocess.DEVNULL)


def test_the_readme_takes_no_damaged_records(rkcnn: Run, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{")
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(RESULTS))
    code, _, err = rkcnn("report", "--readme", str(readme), "--from", str(tmp_path))
    assert code == 2
    assert "can't be read as a result" in err


def count_calls(counts: Counter[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        counts[name] += 1
        return function(*arguments)

    return counted


def test_comparisons_are_computed_once_and_each_figure_is_drawn_once(
    rkcnn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_records(tmp_path / "runs", flops=8_000_000)
    counts: Counter[str] = Counter()
    for module, name in ((reporting, "compare"), (reporting, "judge_claims"), (comparing, "welch")):
        monkeypatch.setattr(module, name, count_calls(counts, name, getattr(module, name)))
    for stem, draw in FIGURES.items():
        monkeypatch.setitem(FIGURES, stem, count_calls(counts, stem, draw))
    code, out, _ = rkcnn("report", "mnist", "--from", str(tmp_path / "runs"), "-o", str(tmp_path / "out"))
    assert code == 0
    assert "mnist-bands.png" in out
    assert counts == {"compare": 1, "judge_claims": 1, "welch": 4, **dict.fromkeys(FIGURES, 1)}


def test_precisions_are_apart_and_said(rkcnn: Run, tmp_path: Path) -> None:
    put_records(tmp_path, precision="bf16")
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path))
    assert (code, out) == (2, "")
    assert "(results are there with --precision bf16)" in err
    code, out, _ = rkcnn("report", "mnist", "--from", str(tmp_path), "--precision", "bf16", "-o", str(tmp_path / "r"))
    assert code == 0
    assert "paper-mnist in bf16, 24 of 95 runs\nBF16: computed in bf16, where paper-mnist has fp32\n" in out
    assert "BF16 pre-act ResNet" in out
    assert "PAPER IN BF16: not the paper's recipe" in out
    assert ",paper,paper-mnist,bf16,mnist," in (tmp_path / "r" / "mnist.csv").read_text(encoding="utf-8")
    for name in ("mnist.md", "report.html"):
        assert "paper-mnist in bf16" in (tmp_path / "r" / name).read_text(encoding="utf-8")
    code, out, err = rkcnn("report", "mnist", "--from", str(tmp_path), "--precision", "fp16")
    assert (code, out) == (2, "")
    assert "--precision fp16 given; it is one of fp32, tf32, bf16" in err
