"""Cells in columns, for a terminal, a log or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rkcnn.report.entry import is_filled


def columns(rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> Iterator[str]:
    """Words begin at the left, numbers end at the right; a column with nothing in it is left out."""
    found = list(zip(*rows, strict=True))
    widths = {i: max(map(len, column)) for i, column in enumerate(found) if is_filled(column[1:])}
    for row in rows:
        yield "  ".join(row[i].ljust(width) if i in words else row[i].rjust(width) for i, width in widths.items())
