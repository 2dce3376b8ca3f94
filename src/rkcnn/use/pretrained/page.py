"""The table of pretrained weights in docs/pretrained.md: python -m rkcnn.use.pretrained.page writes it. No torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rkcnn.data.sets import SETS, DataSet
from rkcnn.page_writer import run_writer
from rkcnn.report.readme import write_between
from rkcnn.report.sentences import count
from rkcnn.use.pretrained.catalogue import UNVERIFIED, Pretrained, read_catalogue

MARKERS = "<!-- pretrained: python -m rkcnn.use.pretrained.page writes this -->", "<!-- /pretrained -->"
HEAD = (
    "| name | images | parameters | file | recipe | test error | wrong, as stored |",
    "|---|---|--:|--:|---|--:|--:|",
)


def write_table(weights: Sequence[Pretrained]) -> str:
    """Return the Markdown of a row for each file."""
    if not weights:
        return "This version of the package holds no weights."
    lines = list(HEAD)
    for each in weights:
        row, storage = each.describe(), each.storage
        cells = (
            f"`{each.name}`",
            _describe_images(SETS[each.data]),
            f"{row['params']:,}",
            f"{row['bytes'] / 1e6:.2f} MB, {row['weights']}",
            f"{row['recipe']} in {row['precision']}",
            f"{100 * row['error']:.2f} %{'' if row['verified'] else '*'}",
            f"{storage.wrong} of {storage.images:,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    note = [] if all(each.describe()["verified"] for each in weights) else [f"\\*: {UNVERIFIED}.", ""]
    total = sum(each.path.stat().st_size for each in weights)
    return "\n".join([*lines, "", *note, f"{count(len(weights), 'network')}, {total / 1e6:.1f} MB together."])


def _describe_images(data: DataSet) -> str:
    """Write 28 x 28, grey, 10 classes."""
    height, width, channels = data.shape
    return f"{height} x {width}, {'grey' if channels == 1 else 'colour'}, {len(data.classes)} classes"


def write_page(path: str) -> list[str]:
    """Write the table of the package's weights between its markers in a file."""
    write_between(Path(path), MARKERS, write_table(read_catalogue()))
    return []


if __name__ == "__main__":
    sys.exit(run_writer(write_page, sys.argv[1:], ("docs/pretrained.md",)))
