"""The part of the README that is written by code: python -m rkcnn.report.readme README.md"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rkcnn.report.paper import TABLES

START, END = "<!-- costs: rkcnn.report.readme writes this -->", "<!-- /costs -->"
SHOWN = {
    "tb:MNIST": ("MNIST", "K", "M", ("ResNet@k=32", "RKNet-rk4_38@k=32", "CliqueNet-2@k=32", "RKCNN-R-2@k=32")),
    "tb:cifar": (
        "CIFAR-10",
        "M",
        "G",
        ("ResNet@k=120_120_120", "ODENet-ab@k=120_120_120", "RKCNN-I-2_2_2@k=78_78_80", "RKCNN-I-2_2_2@k=120"),
    ),
    "tb:cifar_sota": ("CIFAR-10", "M", "G", ("DenseNet-BC-L250-k24", "RKCNN-I-5_5_6@k=150_120_120")),
}


def cost_table(rows: list[dict[str, Any]]) -> str:
    """Markdown from the rows of `rkcnn models --json`."""
    lines = [
        "| on | network | params | printed | FLOPs (2 × MAC) | paper's convention | printed | runs |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for key, (data, kilo, giga, names) in SHOWN.items():
        for name in names:
            row = next(row for row in rows if (row["table"], row["name"]) == (key, name))
            unit = TABLES[key].flops_unit
            paper = row["paper"]
            lines.append(
                f"| {data} | `{name}` | {row['params']:,} | {paper['params']} {kilo} | {row['flops'] / unit:.3f} {giga} | "
                f"{row['paper_flops'] / unit:.3f} {giga} | {paper['flops']} {giga} | {row['evaluations'] or '-'} "
                f"{row['unit'] + 's' * (row['unit'] == 'stage') if row['unit'] else ''} |"
            )
    return "\n".join(lines)


def between(text: str, part: str) -> str:
    """The text with whatever stood between the markers replaced."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{part}\n{END}{after}"


def main(path: Path) -> None:
    import json
    import subprocess

    rows = json.loads(subprocess.check_output([sys.executable, "-m", "rkcnn", "models", "--json"]))
    path.write_text(between(path.read_text(encoding="utf-8"), cost_table(rows)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "README.md"))
