"""Tables of a bench, by made-up numbers; and benchmarks/RESULTS.md is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from record.benches import made, measured
from rkcnn.error import InputError
from rkcnn.record.bench import Bench, Measurement
from rkcnn.report.bench import MIB, bench_markdown, bench_text, main, results_page

ROOT = Path(__file__).parents[2]


def example() -> Bench:
    first = measured("rkcnn", [0.004, 0.002, 0.003], flops=6e6)
    other = measured("authors", [0.008, 0.004, 0.006], flops=6e6)
    record = made(first, other)
    record.complete, record.note, record.left_out = True, "a made-up machine", ["timm eager of x: why"]
    return record


def test_text() -> None:
    assert bench_text(example()) == (
        "2026-01-01 00:00 UTC, 1 thread on 2 CPU cores, x86_64, Linux: rkcnn 0.1.0; commit unknown (source "
        "0123456789abcdef)\n"
        "3 interleaved rounds of 5 steps for each contender; a product of two 64 x 64 matrices: 0.002000 TFLOP/s "
        "in fp32\n"
        "note: a made-up machine\n"
        "left out: timm eager of x: why\n"
        "\n"
        "training step, ResNet@k=4, batch 8\n"
        "  contender      precision     ms       quartiles  x first  images/s   TFLOP/s  of product\n"
        "  rkcnn eager         fp32  3.000  2.500 to 3.500     1.00     2,667  0.002000     100.0 %\n"
        "  authors eager       fp32  6.000  5.000 to 7.000     0.50     1,333  0.001000      50.0 %"
    )


def test_markdown() -> None:
    lines = bench_markdown(example()).splitlines()
    assert lines[-4:] == [
        "| contender | precision | ms | quartiles | x first | images/s | TFLOP/s | of product |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        "| rkcnn eager | fp32 | 3.000 | 2.500 to 3.500 | 1.00 | 2,667 | 0.002000 | 100.0 % |",
        "| authors eager | fp32 | 6.000 | 5.000 to 7.000 | 0.50 | 1,333 | 0.001000 | 50.0 % |",
    ]


@pytest.mark.parametrize(
    ("more", "cells"),
    [({"peak_bytes": 3 * MIB}, "3 |"), ({"kernels": 525.0}, "525 |"), ({"at_once": 4}, "4 at once |")],
)
def test_what_only_a_gpu_has(more: dict[str, Any], cells: str) -> None:
    assert cells in bench_markdown(made(measured("rkcnn", [0.001], **more)))


def test_memory() -> None:
    record = made()
    record.kind, record.products = "memory", {}
    for code, peak in (("rkcnn", 300), ("naive", 450)):
        found = Measurement("training step", "ResNet@k=4", 8, code, "eager", "fp32")
        found.memory_bytes, found.idle_bytes = [peak * MIB] * 3, [200 * MIB] * 3
        record.measurements.append(found)
    text = bench_text(record)
    assert "interrupted: 3 were asked for" in text
    assert text.endswith(
        "  contender    precision  peak MiB   quartiles  x first  above idle MiB\n"
        "  rkcnn eager       fp32       300  300 to 300     1.00             100\n"
        "  naive eager       fp32       450  450 to 450     1.50             250"
    )


def test_contenders_of_one_network_and_batch_stand_together() -> None:
    """Those that were measured between them, as with several networks in one round, do not part them."""
    one, other, again = measured("a", [1.0]), measured("a", [1.0]), measured("b", [1.0])
    other.batch = 16
    assert bench_markdown(made(one, other, again)).count("**training step") == 2


def test_the_page_is_written_from_all_records(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no records in"):
        results_page(tmp_path)
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_bytes(example().to_json())
    assert main([str(tmp_path), str(tmp_path / "page.md")]) == 0
    text = (tmp_path / "page.md").read_text()
    assert text.index("## a\n") < text.index("## b\n")


def test_a_damaged_record_is_named_and_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, page = tmp_path / "records", tmp_path / "page.md"
    records.mkdir()
    (records / "bad.json").write_text('{"schema": "')
    assert main([str(records), str(page)]) == 2
    assert not page.exists()
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("rkcnn: ")
    assert "bad.json can't be read as a record" in said
    (records / "good.json").write_bytes(example().to_json())
    assert main([str(records), str(page)]) == 1
    assert "## good\n" in page.read_text()
    (said,) = capsys.readouterr().err.splitlines()
    assert "bad.json can't be read as a record" in said
    assert main([str(tmp_path / "no"), str(page)]) == main([str(records), str(tmp_path / "no" / "page.md")]) == 2


@pytest.mark.parametrize("field", ["note", "date", "source", "commit", "left_out", "machine", "versions", "network"])
def test_markdown_of_any_text(field: str) -> None:
    hostile, record = "\x1b[31m\n# H <script>alert(1)</script> | zz", example()
    match field:
        case "left_out":
            record.left_out = [hostile]
        case "machine":
            record.machine = {"gpu": hostile, "system": hostile}
        case "versions":
            record.versions = {hostile: hostile}
        case "network":
            for each in record.measurements:
                each.network = each.code = each.precision = hostile
        case _:
            setattr(record, field, hostile)
    text = bench_markdown(record)
    assert "script>alert(1)" in text
    assert not any(bad in text for bad in ("\x1b", "\n#", "<script", " | zz"))


def test_results_are_current() -> None:
    written = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert (written, []) == results_page(ROOT / "benchmarks" / "records"), "run python -m rkcnn.report.bench"
