"""rkcnn report: tables of results beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_error, print_line
from rkcnn.error import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rkcnn.record.memory import Memory
    from rkcnn.report.results import Records, ResultTable


def report(
    table: str | None = None,
    /,
    *,
    from_: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    preset: str | None = None,
    precision: str | None = None,
    readme: Path | None = None,
) -> int:
    """Print the paper's table with ours beside it: errors, costs, comparisons, and what they say about its claims.

    Returns the exit code: 1 if a record can't be read, which is named on standard error and left out.

    Parameters
    ----------
    table
        One of the tables of `rkcnn reproduce`; all that have results, if none is named.
    from_
        The folder whose results are read: runs, or results for --readme.
    output
        A folder for TABLE.md and TABLE.csv of each table, the figures and report.html.
    preset
        paper, fast or smoke; the first of them that has results, if none is named. They are never mixed.
    precision
        fp32, tf32 or bf16: the runs that were trained in it; by default in that of the preset's recipe. Never mixed.
    readme
        Write the published results instead: the part of this README between its markers, and beside it
        docs/results.md with its pictures.
    """
    if readme is not None:
        _write_readme(readme, from_ or Path("results"), (table, output, preset, precision))
        return 0
    from rkcnn.record.tables import find_table

    if table is not None:
        find_table(table)  # a name that is not one is said before anything is read
    from rkcnn.record.memory import read_memories
    from rkcnn.report.compare import find_damaged_predictions
    from rkcnn.report.report import build_report
    from rkcnn.report.results import find_conflicts, read_records
    from rkcnn.report.tables.text import claims_text, table_text

    folder = from_ or Path("runs")
    records, unreadable = read_records(folder)
    memories, unread = read_memories(folder)
    damaged = [*unreadable, *unread, *find_damaged_predictions(records)]
    for trouble in (*damaged, *find_conflicts(records)):
        print_error(str(trouble))
    tables = _find_tables(table, records, memories, folder, preset, precision)
    if output is not None:
        from rkcnn.report.files import check_folder, write_files  # with matplotlib

        check_folder([results.name for results in tables], output)  # before anything is computed
    found = build_report(tables, records)
    # before anything is printed: a reader such as `head` may leave
    written = [*write_files(found, output)] if output is not None else []
    for part in found.tables:
        print(table_text(part))
    for name, claims in found.claims.items():
        spoken = claims if table is None else found.claims_of(found.tables[0])
        print(claims_text(spoken, name), end="")
    for path in written:
        print_line(f"written   {path}")
    return 1 if damaged else 0


def _find_tables(
    table: str | None,
    records: Records,
    memories: Sequence[Memory],
    folder: Path,
    preset: str | None,
    precision: str | None,
) -> list[ResultTable]:
    """Return the tables that have results; raise InputError with what to do where none has."""
    from rkcnn.record.tables import PRESETS, TABLES, find_table
    from rkcnn.report.results import build_result_table, find_precisions

    wanted = [find_table(table)] if table is not None else list(TABLES.values())
    built = [build_result_table(each, records, preset, memories, precision) for each in wanted]
    found = [results for results in built if not results.empty]
    if found:
        return found
    others = [other for other in PRESETS if any(not build_result_table(each, records, other).empty for each in wanted)]
    in_others = {name: None for each in wanted for name in find_precisions(each, records, preset)}
    what = f"of the table {table}" if table else "of any table"
    how = (f" by its {preset} preset" if preset else "") + (f" in {precision}" if precision else "")
    there = f" (results by {' and '.join(others)} are there)" if others else ""
    if in_others and not (others and preset):
        there = f" (results are there with --precision {' and '.join(in_others)})"
    option = f" --preset {preset}" if preset not in (None, "paper") else ""
    option += f" --precision {precision}" if precision else ""
    raise InputError(
        f"no results {what}{how} below {folder}{there}; make some with rkcnn reproduce {table or 'mnist'}{option}, "
        "or name another folder with --from"
    )


def _write_readme(readme: Path, folder: Path, others: tuple[object, ...]) -> None:
    """Write the README's results, docs/results.md and its pictures from published records; `others` must be None.

    They are the other options of the command.
    """
    from rkcnn.disk import write_atomically, writing_to
    from rkcnn.report.figures.style import render
    from rkcnn.report.published import PAGE, draw_pictures, report_published, write_readme_part
    from rkcnn.report.readme import RESULTS, check_markers, write_between
    from rkcnn.report.results import find_conflicts, read_records
    from rkcnn.report.results_page import write_results_page

    if any(option is not None for option in others):
        raise InputError("--readme given with a table, -o, --preset or --precision; use it alone, or with --from")
    check_markers(readme, RESULTS)
    records, unreadable = read_records(folder)
    if unreadable:
        raise unreadable[0]  # what is published must be complete
    for trouble in find_conflicts(records):
        print_error(str(trouble))
    found = report_published(records)
    part, page = write_readme_part(found), write_results_page(found, records)
    pictures = draw_pictures(found)
    with writing_to((readme.parent / PAGE).parent, "name a README whose folder can be written"):
        (readme.parent / PAGE).parent.mkdir(exist_ok=True)
    for path, figure in pictures.items():
        write_atomically(readme.parent / path, render(figure, "svg"))
        print_line(f"written   {readme.parent / path}")
    write_atomically(readme.parent / PAGE, page.encode())
    print_line(f"written   {readme.parent / PAGE}")
    write_between(readme, RESULTS, part)
    print_line(f"written   {readme}, from {folder}")
