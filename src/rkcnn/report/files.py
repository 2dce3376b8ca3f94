"""A report as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rkcnn.disk import write_whole, writing_to
from rkcnn.error import InputError
from rkcnn.report.judged import speaks_of
from rkcnn.report.judgement import Judgement
from rkcnn.report.page import Judged, write_page
from rkcnn.report.picture import save_figure
from rkcnn.report.plots import STEMS, draw_plots
from rkcnn.report.table_csv import table_csv
from rkcnn.report.table_markdown import table_markdown
from rkcnn.report.view import View


def check_folder(views: Sequence[View], folder: Path) -> None:
    """Make the folder, and see that nothing is in the way of what `write_files` writes there."""
    if folder.is_file():
        raise InputError(f"-o {folder} given, and that is a file; name a folder")
    with writing_to(folder, "name another folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)
    figures = [f"-{stem}{suffix}" for stem in STEMS for suffix in (".svg", ".png")]
    names = [f"{view.table.name}{end}" for view in views for end in (".md", ".csv", *figures)]
    for path in (folder / name for name in (*names, "report.html")):
        if path.is_dir():
            raise InputError(f"{path} is a folder where the report writes a file; remove it, or name another with -o")


def write_files(views: Sequence[View], judgements: Judged, folder: Path) -> Iterator[Path]:
    """TABLE.md, TABLE.csv and the figures TABLE-*.svg and .png of each view, and report.html of all."""
    check_folder(views, folder)
    for view in views:
        yield from write_tables(view, judgements.get(view.preset, ()), folder)
        for stem, figure in draw_plots(view).items():
            yield from save_figure(figure, folder / f"{view.table.name}-{stem}")
    yield write_page(views, folder / "report.html", judgements)


def write_tables(view: View, judgements: Sequence[Judgement], folder: Path) -> Iterator[Path]:
    """TABLE.md with the claims that speak of it, and TABLE.csv."""
    judged = [each for each in judgements if speaks_of(each, view.table.name)]
    for suffix, text in ((".md", table_markdown(view, judged)), (".csv", table_csv(view))):
        path = folder / f"{view.table.name}{suffix}"
        # Excel takes a CSV for its own code page unless a byte order mark says UTF-8; pandas passes over the mark.
        write_whole(path, text.encode("utf-8-sig" if suffix == ".csv" else "utf-8"))
        yield path
