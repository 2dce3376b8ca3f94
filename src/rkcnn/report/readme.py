"""The parts of README.md and docs/ that code writes: results (rkcnn report --readme README.md) and costs.

`python -m rkcnn.report.readme` writes the table of costs in docs/costs.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rkcnn.disk import MissingFile, read_file, write_output
from rkcnn.error import InputError
from rkcnn.page_writer import run_writer
from rkcnn.report.paper import COST_TABLES, MISPRINTS

MOST = 4 << 20  # bytes of a page that is written into; ours have less than 100 kB
COSTS = "<!-- costs: python -m rkcnn.report.readme writes this -->", "<!-- /costs -->"
RESULTS = "<!-- results: rkcnn report --readme writes this -->", "<!-- /results -->"
SHOWN = (
    ("MNIST", "tb:MNIST", "ResNet@k=32"),
    ("MNIST", "tb:MNIST", "RKNet-rk4_38@k=32"),
    ("MNIST", "tb:MNIST", "CliqueNet-2@k=32"),
    ("MNIST", "tb:MNIST", "RKCNN-R-2@k=32"),
    ("CIFAR-10", "tb:cifar", "ResNet@k=120_120_120"),
    ("CIFAR-10", "tb:cifar", "ODENet-ab@k=120_120_120"),
    ("CIFAR-10", "tb:cifar", "RKCNN-I-2_2_2@k=78_78_80"),
    ("CIFAR-10", "tb:cifar", "RKCNN-I-2_2_2@k=120"),
    ("CIFAR-10", "tb:cifar_sota", "DenseNet-BC-L250-k24"),
    ("CIFAR-10", "tb:cifar_sota", "RKCNN-I-5_5_6@k=150_120_120"),
)
"""The networks of the table of costs: data, the paper's table, our name."""


def cost_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the Markdown of ten rows of `rkcnn models --json`; a printed cell known to be a misprint has a *."""
    lines = [
        "| on | network | params | printed | FLOPs, 2 × MAC | paper's rule | printed | runs |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    found = {(row["table"], row["name"]): row for row in rows}
    for data, key, name in SHOWN:
        row, table = found[key, name], COST_TABLES[key]
        params_unit, flops_unit = table.letters
        printed = {c: f"{row['paper'][c]}{'*' * ((key, name, c) in MISPRINTS)}" for c in ("params", "flops")}
        cells = (
            data,
            f"`{name}`",
            f"{row['params']:,}",
            f"{printed['params']} {params_unit}",
            f"{row['flops'] / table.flops_unit:.3f} {flops_unit}",
            f"{row['paper_flops'] / table.flops_unit:.3f} {flops_unit}",
            f"{printed['flops']} {flops_unit}",
            "-"
            if row["evaluations"] is None
            else f"{row['evaluations']} {row['unit']}{'s' * (row['unit'] == 'stage')}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def replace_between(text: str, markers: tuple[str, str], part: str, where: str = "the text") -> str:
    """Return the text with what stands between two markers replaced."""
    before, start, rest = text.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not start or not end:
        raise InputError(f"{where} lacks {' or '.join(markers)}; name a file that has both, to be written between")
    return f"{before}{start}\n{part}\n{end}{after}"


def write_between(path: Path, markers: tuple[str, str], part: str) -> None:
    """Replace what stands between two markers of a file."""
    write_output(path, replace_between(_read(path, markers), markers, part, str(path)).encode(), "name another file")


def check_markers(path: Path, markers: tuple[str, str]) -> None:
    """Raise InputError unless `write_between` would find the markers."""
    replace_between(_read(path, markers), markers, "", str(path))


def _read(path: Path, markers: tuple[str, str]) -> str:
    wanted = f"name a README that has {markers[0]}"
    try:
        return read_file(path, MOST).decode()
    except MissingFile:
        raise InputError(f"no file {path} here; {wanted}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} can't be read as text: {error}; {wanted}") from None
    except InputError as error:
        raise InputError(f"{error}; {wanted}") from None


def write_costs(path: str) -> list[str]:
    """Write the table of costs between its markers in a file."""
    check_markers(Path(path), COSTS)
    rows = json.loads(subprocess.check_output([sys.executable, "-m", "rkcnn", "models", "--json"]))
    write_between(Path(path), COSTS, cost_table(rows))
    return []


if __name__ == "__main__":
    sys.exit(run_writer(write_costs, sys.argv[1:], ("docs/costs.md",)))
