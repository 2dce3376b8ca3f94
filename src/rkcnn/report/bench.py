"""Tables of what `rkcnn bench` measured, as text and as the Markdown of benchmarks/RESULTS.md. Imports no torch.

`python -m rkcnn.report.bench [RECORDS] [PAGE]` writes the page from all records in a folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from math import floor, log10
from pathlib import Path
from statistics import median

from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.escape import escape_markdown, escape_text
from rkcnn.page_writer import run_writer
from rkcnn.record.bench import Bench, Measurement, compare_rounds, quartiles, read_bench

MIB = 1 << 20
TIMES = ("contender", "precision", "ms", "quartiles", "x first", "images/s", "TFLOP/s", "of product", "MiB", "kernels")
MEMORY = ("contender", "precision", "peak MiB", "quartiles", "x first", "above idle MiB")
INTRODUCTION = """# Results of `rkcnn bench`

Written from the records in [records/](records) by `python -m rkcnn.report.bench`; a test says when it is stale. What
the columns mean, and how to measure, is in [docs/performance.md](../docs/performance.md).
"""


def describe_bench(record: Bench) -> list[str]:
    """Return lines that say what was measured, where, and by which code."""
    machine = record.machine
    threads = f"{machine.get('threads')} thread{'s' * (machine.get('threads') != 1)}"
    cores = f"{threads} on {machine.get('cores')} CPU cores, {machine.get('processor')}"
    place = machine.get("gpu") or cores
    versions = ", ".join(f"{name} {value}" for name, value in record.versions.items())
    found = [
        f"{record.date} UTC, {place}, {machine.get('system')}: {versions}; commit {record.commit or 'unknown'} "
        f"(source {record.source})"
    ]
    turn = "" if record.kind == "memory" else f" of {record.steps} steps for each contender"
    rounds = max((len(each.values) for each in record.measurements), default=0)
    broken = "" if record.complete else f", interrupted: {record.rounds} were asked for"
    found.append(f"{rounds} interleaved rounds{turn}{broken}")
    if record.products:
        n = record.product_size
        speeds = ", ".join(
            f"{_digits(1e-12 * median(each))} TFLOP/s in {name}" for name, each in record.products.items()
        )
        found[-1] += f"; a product of two {n:,} x {n:,} matrices: {speeds}"
    if record.note:
        found.append(f"note: {record.note}")
    return found + [f"left out: {line}" for line in record.left_out]


def tabulate(record: Bench) -> list[tuple[str, list[list[str]]]]:
    """Return for each work, network and batch a title and a table, whose first row holds the heads of its columns."""
    found = []
    heads, cells = (MEMORY, _memory_cells) if record.kind == "memory" else (TIMES, _time_cells)
    ordered = sorted(record.measurements, key=lambda each: record.measurements.index(record.first_of(each)))
    for (work, network, batch), group in groupby(ordered, key=lambda each: each.group):
        rows = [list(heads), *(cells(record, each) for each in group)]
        kept = [i for i in range(len(heads)) if any(row[i] for row in rows[1:])]
        found.append((f"{work}, {network}, batch {batch}", [[row[i] for i in kept] for row in rows]))
    return found


def _time_cells(record: Bench, each: Measurement) -> list[str]:
    low, middle, high = (1e3 * value for value in quartiles(each.seconds))
    speed, share = each.flops_per_second, record.share_of_product(each)
    return [
        each.label,
        each.precision,
        _digits(middle),
        f"{_digits(low)} to {_digits(high)}",
        f"{compare_rounds(record.first_of(each), each):.2f}",
        f"{each.images_per_second:,.0f}",
        "" if speed is None else _digits(1e-12 * speed),
        "" if share is None else f"{100 * share:.1f} %",
        "" if each.peak_bytes is None else f"{each.peak_bytes / MIB:,.0f}",
        "" if each.kernels is None else f"{each.kernels:,.0f}",
    ]


def _memory_cells(record: Bench, each: Measurement) -> list[str]:
    low, middle, high = (value / MIB for value in quartiles(each.memory_bytes))
    above = median(each.memory_bytes) - median(each.idle_bytes)
    return [
        each.label,
        each.precision,
        f"{middle:,.0f}",
        f"{low:,.0f} to {high:,.0f}",
        f"{1 / compare_rounds(record.first_of(each), each):.2f}",
        f"{above / MIB:,.0f}" if median(each.idle_bytes) else "",
    ]


def _digits(value: float) -> str:
    """Return a number with four digits and without an exponent: 1,234, 12.34, 0.001234."""
    if value >= 1000:
        return f"{value:,.0f}"
    before = floor(log10(value)) + 1 if value > 0 else 1  # digits before the point; less than 1 for leading zeros
    return f"{value:.{4 - before}f}"


def bench_text(record: Bench) -> str:
    """Return a record as text for a terminal."""
    parts = ["\n".join(describe_bench(record))]
    for title, rows in tabulate(record):
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(row, widths, strict=True)) for row in rows)
        ]
        parts.append("\n".join([title, *(f"  {line.rstrip()}" for line in lines)]))
    return "\n".join(escape_text(line) for part in parts for line in [*part.split("\n"), ""])[:-1]


def bench_markdown(record: Bench) -> str:
    """Return a record as Markdown."""
    parts = ["\n".join(f"- {escape_markdown(line)}" for line in describe_bench(record))]
    for title, rows in tabulate(record):
        lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
        lines.insert(1, "|---|" + "--:|" * (len(rows[0]) - 1))
        parts.append("\n".join([f"**{escape_markdown(title)}**", "", *lines]))
    return "\n\n".join(parts)


def results_page(folder: Path) -> tuple[str, list[str]]:
    """Return the page that shows every record of a folder, in the order of their names, and what was wrong with others.

    Raises InputError if there is no record that can be read.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(f"no records in {folder}; write one there with rkcnn bench --json {folder}/NAME.json")
    parts, refused = [INTRODUCTION], []
    for path in paths:
        try:
            record = read_bench(path)
        except InputError as error:
            refused.append(error)
            continue
        parts.append(f"## {escape_markdown(path.stem)}\n\n`rkcnn bench {record.kind}`\n\n{bench_markdown(record)}\n")
    if len(parts) == 1:
        raise refused[0]
    return "\n".join(parts), list(map(str, refused))


def write_results(folder: str, page: str) -> list[str]:
    """Write the page from the records of a folder, and return what was wrong with those that are missing from it."""
    text, refused = results_page(Path(folder))
    write_atomically(Path(page), text.encode())
    return refused


def main(arguments: Sequence[str]) -> int:
    """Write the page and return the exit code: 1 if a record could not be read, and 2 if the page can't be written."""
    return run_writer(write_results, arguments, ("benchmarks/records", "benchmarks/RESULTS.md"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
