"""rkcnn report: tables of results beside the paper's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.error import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rkcnn.record.memory import Memory
    from rkcnn.report.view import Found, View


def report(
    table: str | None = None,
    /,
    *,
    from_: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    recipe: str | None = None,
    readme: Path | None = None,
) -> None:
    """Print the paper's table with ours beside it: errors, costs, comparisons, what they allow one to say.

    Parameters
    ----------
    table
        One of the tables of `rkcnn reproduce`; all that have results, if none is named.
    from_
        The folder whose results are read: runs, or results for --readme.
    output
        A folder for TABLE.md and TABLE.csv of each table, the plots and report.html.
    recipe
        paper, fast or smoke; the first of them that has results, if none is named. They are never mixed.
    readme
        Write the results section of this README from published results instead, between its markers, and its picture.
    """
    if readme is not None:
        _write_readme(readme, from_ or Path("results"), table, output, recipe)
        return
    from rkcnn.report.copies import note_copies
    from rkcnn.report.judged import judge_claims, speaks_of
    from rkcnn.report.table_text import claims_text, table_text
    from rkcnn.report.view import read_memories, read_records

    folder = from_ or Path("runs")
    records, unreadable = read_records(folder)
    memories, unread = read_memories(folder)
    for trouble in (*unreadable, *unread, *note_copies(records)):
        print(f"rkcnn: {trouble}", file=sys.stderr)
    views = _find(table, records, memories, folder, recipe)
    if output is not None:
        from rkcnn.report.files import check_folder

        check_folder(views, output)  # before anything is printed
    judgements = {preset: judge_claims(records, preset) for preset in dict.fromkeys(view.preset for view in views)}
    for view in views:
        print(table_text(view))
    for preset, judged in judgements.items():
        print(claims_text([each for each in judged if table is None or speaks_of(each, table)], preset), end="")
    if output is not None:
        from rkcnn.report.files import write_files

        for path in write_files(views, judgements, output):
            print(f"written   {path}")


def _find(
    table: str | None, records: Found, memories: Sequence[Memory], folder: Path, preset: str | None
) -> list[View]:
    from rkcnn.record.tables import PRESETS, TABLES, find_table
    from rkcnn.report.view import view_of

    if preset is not None and preset not in PRESETS:
        raise InputError(f"--preset {preset} given; a table is trained by {', '.join(PRESETS)}")
    tables = [find_table(table)] if table is not None else list(TABLES.values())
    views = [seen for each in tables if not (seen := view_of(each, records, preset, memories)).empty]
    if views:
        return views
    others = [other for other in PRESETS if any(not view_of(each, records, other).empty for each in tables)]
    what = f"of the table {table}" if table else "of any table"
    how = f" by its {preset} recipe" if preset else ""
    there = f" (results by {' and '.join(others)} are there)" if others else ""
    recipe = f" --recipe {preset}" if preset not in (None, "paper") else ""
    raise InputError(
        f"no results {what}{how} below {folder}{there}; make some with rkcnn reproduce {table or 'mnist'}{recipe}, "
        "or name another folder with --from"
    )


def _write_readme(readme: Path, folder: Path, table: str | None, output: Path | None, preset: str | None) -> None:
    from rkcnn.disk import write_whole, writing_to
    from rkcnn.report.copies import note_copies
    from rkcnn.report.picture import render
    from rkcnn.report.readme import RESULTS, check_markers, write_between
    from rkcnn.report.results_section import PICTURE, draw_results, write_results
    from rkcnn.report.view import read_records

    if table is not None or output is not None or preset is not None:
        raise InputError("--readme given with a table, -o or --recipe; it goes alone, or with --from")
    check_markers(readme, RESULTS)
    records, unreadable = read_records(folder)
    if unreadable:
        raise unreadable[0]  # what is published must be whole
    for trouble in note_copies(records):
        print(f"rkcnn: {trouble}", file=sys.stderr)
    part = write_results(records)
    figure = draw_results(records)
    if figure is not None:
        picture = readme.parent / PICTURE
        with writing_to(picture.parent, "name a README whose folder can be written"):
            picture.parent.mkdir(exist_ok=True)
        write_whole(picture, render(figure, "svg"))
        print(f"written   {picture}")
    write_between(readme, RESULTS, part)
    print(f"written   {readme}, from {folder}")
