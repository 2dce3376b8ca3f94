"""Writes a report as files: Markdown, CSV and figures of each table, and one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rkcnn.disk import write_atomically, writing_to
from rkcnn.error import InputError
from rkcnn.report.figures import FIGURES
from rkcnn.report.figures.style import save_figure
from rkcnn.report.page.page import write_page
from rkcnn.report.report import Report, TableReport
from rkcnn.report.tables.csv import table_csv
from rkcnn.report.tables.markdown import table_markdown

PAGE = "report.html"


def check_folder(names: Sequence[str], folder: Path) -> None:
    """Make the folder, and raise InputError if something there would stop `write_files`; `names` are the tables'."""
    if folder.is_file():
        raise InputError(f"`output={folder}` given, and that is a file; name a folder")
    with writing_to(folder, "name another output folder"):
        folder.mkdir(parents=True, exist_ok=True)
    figures = [f"-{stem}{suffix}" for stem in FIGURES for suffix in (".svg", ".png")]
    paths = [f"{name}{end}" for name in names for end in (".md", ".csv", *figures)]
    for path in (folder / name for name in (*paths, PAGE)):
        if path.is_dir():
            raise InputError(f"{path} is a folder where the report writes a file; remove it, or name another folder")


def write_files(report: Report, folder: Path) -> Iterator[Path]:
    """Write TABLE.md, TABLE.csv and the figures TABLE-*.svg and .png of each table, and report.html of all."""
    check_folder([part.name for part in report.tables], folder)
    for part in report.tables:
        yield from write_tables(report, part, folder)
        for stem, figure in part.figures.items():
            yield from save_figure(figure, folder / f"{part.name}-{stem}")
    yield write_page(report, folder / PAGE)


def write_tables(report: Report, part: TableReport, folder: Path) -> Iterator[Path]:
    """Write TABLE.md with the claims that speak of it, and TABLE.csv."""
    for suffix, text in ((".md", table_markdown(part, report.claims_of(part))), (".csv", table_csv(part))):
        path = folder / f"{part.name}{suffix}"
        # Excel reads a CSV in its own code page unless a byte order mark says UTF-8; pandas skips the mark.
        write_atomically(path, text.encode("utf-8-sig" if suffix == ".csv" else "utf-8"))
        yield path
