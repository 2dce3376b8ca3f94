"""rkcnn models: prints every network of the paper with its cost, or the pretrained weights."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from rkcnn.record.tables import PAPER_TABLES

WIDTH = 112  # columns of the widest table; a narrower terminal wraps its lines


def models(
    *,
    pretrained: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Print every network of the paper's tables: parameters, FLOPs, evaluations, and what the paper printed.

    Parameters
    ----------
    pretrained
        Print the trained networks that come with the package instead, with their test errors.
    json_
        Print a JSON list instead of tables.
    """
    if pretrained:
        from rkcnn.use.pretrained.catalogue import read_catalogue

        weights = [each.describe() for each in read_catalogue()]
        if json_:
            print(json.dumps(weights, indent=1))
        else:
            print_pretrained(weights)
        return
    rows = count_all(show_progress=not json_)
    if json_:
        print(json.dumps(rows, indent=1))
    else:
        print_tables(rows)


def count_all(show_progress: bool) -> list[dict[str, Any]]:
    """Return a dictionary for each row of the paper's tables, and for the Identity rows that we add."""
    import torch

    from rkcnn.cli.progress import CountProgress
    from rkcnn.model.cost import cost
    from rkcnn.model.create import create_model
    from rkcnn.report.paper import COST_TABLES

    work = [(table, name, section) for table, section in PAPER_TABLES.items() for name in section.specs]
    known: dict[tuple[str, int], dict[str, Any]] = {}
    rows = []
    with CountProgress(sys.stderr if show_progress else None, "networks") as progress:
        for done, (table, name, section) in enumerate(work, 1):
            key = name, section.channels
            if key not in known:
                with torch.device("meta"):
                    network = create_model(name, classes=10, channels=section.channels)
                counted = asdict(cost(network, section.size))
                per_class = sum(p[0].numel() for p in network.classifier.parameters())
                known[key] = {**counted, "params_100": counted["params"] + 90 * per_class}
            cell = COST_TABLES[table].rows.get(name)
            rows.append({"table": table, "name": name, **known[key], "paper": cell and cell._asdict()})
            progress.show(done, len(work))
    return rows


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Print one table for each section, and what its columns mean."""
    from rich.console import Console
    from rich.table import Table

    from rkcnn.report.paper import COST_TABLES, MISPRINTS

    console = Console()
    console = Console(width=max(console.width, WIDTH), highlight=False)
    for key, section in PAPER_TABLES.items():
        unit = COST_TABLES[key].flops_unit
        params, flops = COST_TABLES[key].letters
        table = Table(title=section.title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        table.add_column("network", no_wrap=True)
        heads = (
            "params",
            f"FLOPs {flops}",
            "evaluations",
            "paper's rule",
            f"printed {flops}",
            f"printed params {params}",
        )
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for row in (row for row in rows if row["table"] == key):
            paper = row["paper"] or {}
            cells = {
                column: f"{paper[column]}{'*' * ((key, row['name'], column) in MISPRINTS)}"
                for column in ("flops", "params", "params_100")
                if paper.get(column)
            }
            least = "" if row["exact"] else ">"
            table.add_row(
                row["name"],
                f"{row['params']:,}",
                f"{least}{row['flops'] / unit:.4f}",
                "-"
                if row["evaluations"] is None
                else f"{least}{row['evaluations']} {row['unit']}{'s' * (row['unit'] == 'stage')}",
                "-" if row["paper_flops"] is None else f"{least}{row['paper_flops'] / unit:.4f}",
                cells.pop("flops", "-"),
                " ".join(cells.values()) or "-",
            )
        console.print(table)
        console.print()
    console.print(
        "params: with 10 classes.  FLOPs: 2 x multiply-accumulate for one image; paper's rule: as the paper counts.\n"
        "evaluations: of f, or of stage networks.  >: at least so many, depending on the data.\n"
        "printed: what the paper prints, with params for 10 and 100 classes."
        "  *: not this network's cost; `rkcnn describe NAME` says why.",
        style="dim",
    )


def print_pretrained(rows: list[dict[str, Any]]) -> None:
    """Print a table of the trained networks that come with the package, and how they are used."""
    from rich.console import Console
    from rich.table import Table

    from rkcnn.use.pretrained.catalogue import UNVERIFIED

    if not rows:
        print("This version of the package holds no pretrained weights.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("name", "params", "file", "recipe", "precision", "seed", "test error"):
        right = head in ("params", "file", "seed", "test error")
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['params']:,}",
            f"{row['bytes'] / 1e6:.2f} MB",
            row["recipe"],
            row["precision"],
            str(row["seed"]),
            f"{100 * row['error']:.2f} %{' ' if row['verified'] else '*'}",
        )
    whole = Console(width=10_000).measure(table).maximum
    console = Console(width=max(Console().width, whole), highlight=False)
    console.print(table)
    console.print(
        "\nA name is NETWORK.SET, the data set that it was trained on.  test error: after the last epoch, of one run.\n"
        + ("" if all(row["verified"] for row in rows) else f"*: {UNVERIFIED}.\n")
        + f"Use them as in: rkcnn predict {rows[0]['name']} picture.png",
        style="dim",
    )
