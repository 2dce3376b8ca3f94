"""A report as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rkcnn.data.disk import writing_to
from rkcnn.report.judged import speaks_of
from rkcnn.report.table_csv import table_csv
from rkcnn.report.table_markdown import table_markdown
from rkcnn.report.verdict import Judgement
from rkcnn.report.view import View


def write_files(views: Sequence[View], judgements: Mapping[str, Sequence[Judgement]], folder: Path) -> Iterator[Path]:
    """TABLE.md and TABLE.csv of each view; judgements by pace."""
    with writing_to(folder, "name another folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)
        for view in views:
            judged = [each for each in judgements.get(view.pace, ()) if speaks_of(each, view.table.name)]
            for path, text in (
                (folder / f"{view.table.name}.md", table_markdown(view, judged)),
                (folder / f"{view.table.name}.csv", table_csv(view)),
            ):
                path.write_text(text, encoding="utf-8")
                yield path
