"""rkcnn describe: prints the parts of one network and what they cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from rkcnn.cli.data import WholeNumber

if TYPE_CHECKING:
    from rich.tree import Tree

    from rkcnn.use.outline import Component

LARGEST = 65536  # height and width of an image
WIDTH = 108  # columns of the longest line of a tree; a narrower terminal wraps its lines
COLUMNS = {"params": "params", "params_100": "params with 100 classes", "flops": "FLOPs"}


def describe(
    name: str,
    /,
    *,
    classes: WholeNumber = 10,
    channels: WholeNumber | None = None,
    size: WholeNumber | None = None,
    json_: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Print a network as a tree of its parts with output shapes, parameters and FLOPs, and its totals.

    Parameters
    ----------
    name
        A network, as in RKCNN-I-2_2_2@k=120 or ResNet-1001.
    classes
        Number of classes.
    channels
        Channels of an image; 1 for networks of one period, else 3.
    size
        Height and width of an image; 28 for one channel, else 32.
    json_
        Print JSON instead of a tree.
    """
    import torch

    from rkcnn.error import InputError
    from rkcnn.model.cost import cost, default_size
    from rkcnn.model.create import create_model, usual_channels
    from rkcnn.model.families import FAMILIES
    from rkcnn.model.network import Network
    from rkcnn.report.paper import COST_TABLES, MISPRINTS, printed_costs
    from rkcnn.use.outline import outline

    if size is not None and not 1 <= size <= LARGEST:
        raise InputError(f"size {size} given; an image has 1 to {LARGEST} pixels on a side")
    with torch.device("meta"):
        network = create_model(name, classes, usual_channels(name) if channels is None else channels)
    side = size or default_size(network.channels)
    tree, total = outline(network, side), cost(network, side)
    paper = [
        {
            "table": table,
            **row._asdict(),
            **dict(zip(("params_unit", "flops_unit"), COST_TABLES[table].letters, strict=True)),
            "misprints": {c: why for (t, n, c), why in MISPRINTS.items() if (t, n) == (table, network.name)},
        }
        for table, row in printed_costs(network.name)
    ]
    if json_:
        answer = {"name": network.name, "classes": classes, "channels": network.channels, "size": side}
        print(json.dumps({**answer, "cost": asdict(total), "tree": asdict(tree), "paper": paper}, indent=1))
        return
    about = FAMILIES[network.spec.family].about if isinstance(network, Network) else "a published original"
    print_tree(tree, asdict(total), paper, f"{about}, on {network.channels} x {side} x {side}")


def print_tree(tree: Component, total: dict[str, Any], paper: list[dict[str, Any]], about: str) -> None:
    """Print the tree of a network, its totals, and what the paper prints of it."""
    from rich.console import Console
    from rich.tree import Tree

    from rkcnn.record.tables import PAPER_TABLES

    console = Console()
    console = Console(width=max(console.width, WIDTH), highlight=False)
    root = Tree(f"[bold]{tree.title}[/bold]: {about}")
    for part in tree.parts:
        _add_branch(root, part)
    console.print(root)
    least = "" if total["exact"] else ">"
    console.print(f"parameters     {total['params']:,}")
    console.print(f"FLOPs          {least}{total['flops']:,}  (2 x multiply-accumulate)")
    if total["paper_flops"] is not None:
        console.print(f"paper's FLOPs  {least}{total['paper_flops']:,}  (as the paper counts them)")
    if total["evaluations"] is not None:
        what = "f" if total["unit"] == "f" else "stage networks"
        console.print(f"evaluations    {least}{total['evaluations']} of {what}")
    console.print(f"activations    {total['activation_bytes']:,} bytes kept to train on one image")
    for row in paper:
        params, flops = row["params_unit"], row["flops_unit"]
        cells = f"{row['params']} {params} params"
        cells += f" ({row['params_100']} {params} with 100 classes)" if row["params_100"] else ""
        cells += f", {row['flops']} {flops} FLOPs" if row["flops"] else ""
        table = PAPER_TABLES[row["table"]].title.partition(":")[0]
        console.print(f"paper prints   {cells} (table “{table}”, {row['label']})", soft_wrap=True)
        for column, why in row["misprints"].items():
            console.print(f"  misprint     {COLUMNS[column]}: {why}", style="dim", soft_wrap=True)


def _add_branch(tree: Tree, part: Component) -> None:
    times = f" and {part.count - 1} more, each" if part.count > 1 else ""
    shape = " x ".join(map(str, part.shape))
    least = "" if part.exact else ">"
    branch = tree.add(f"{part.title}{times}  [dim]{shape}[/dim]  {part.params:,} params  {least}{part.flops:,} FLOPs")
    for child in part.parts:
        _add_branch(branch, child)
