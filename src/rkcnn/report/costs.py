"""Parameters, FLOPs and memory as the records have them, beside the cells of the paper."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.evaluation.memory import MIB
from rkcnn.model.spec import depends_on_data
from rkcnn.record.memory import Memory
from rkcnn.report.paper import COST_TABLES, MISPRINTS, UNITS, agrees, printed_memory
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row

NAMES = {"params": "params", "params_100": "params", "flops": "FLOPs"}
MISPRINTED = {
    ("tb:MNIST", "DenseNet-2@k=32", "params"): 56_266,
    ("tb:MNIST", "CliqueNet-2@k=32", "flops"): 10_123_808,
    ("tb:MNIST_sota", "RKNet-64", "params"): 208_266,
    ("tb:MNIST_sota", "ODENet-64", "params"): 208_266,
    ("tb:cifar_sota", "ResNet-1001", "params"): 10_327_706,
    ("tb:cifar_sota", "ResNet-1001", "params_100"): 10_350_836,
    ("tb:cifar_sota", "ResNet-1001", "flops"): 2_969_214_720,
    ("tb:cifar_sota", "DenseNet-BC-L190-k40", "flops"): 18_595_341_170,
    ("tb:cifar_sota", "CliqueNet-k150-T30", "flops"): 10_553_601_805,
    ("tb:cifar_sota", "MomentumResNet-101", "params"): 42_512_970,
    ("tb:cifar_sota", "MomentumResNet-101", "params_100"): 42_697_380,
    ("tb:cifar_sota", "MomentumResNet-101", "flops"): 5_025_044_480,
}
"""(table, network, column) of each misprint: what the network really has; a test counts it again."""
LETTERS = {unit: letter for letter, unit in UNITS.items()}


class CostCheck(NamedTuple):
    """One cost of a row; `state` is agrees, misprint, differs, not counted (no record), or - (no cell to check)."""

    column: str
    printed: str | None  # with its unit
    counted: int | None
    state: str
    why: str | None = None  # of a misprint
    is_least: bool = False  # whether an image may take more than was counted, as with an implicit method

    @property
    def text(self) -> str:
        """What was counted; where nothing was, what the paper prints."""
        if self.counted is None:
            return self.printed or "-"
        if self.column != "flops":
            return f"{self.counted:,}"
        return shorten(self.counted, 3, self.is_least)

    @property
    def remark(self) -> str:
        """What a reader of `text` has to know: that the paper's cell differs, or that `text` is the paper's."""
        if self.state == "not counted":
            return "the paper's"
        return f"{self.state}: paper {self.printed}" if self.state in ("misprint", "differs") else ""


def check_costs(results: ResultTable, row: Row) -> tuple[CostCheck, CostCheck]:
    """Check a row's parameters, and its FLOPs by the paper's rule; of runs that a user named, FLOPs are 2 x MAC.

    Runs of the smoke preset are trained on digits, so their counts are checked in tables of digits alone.
    """
    paper = results.paper
    least = depends_on_data(row.network)
    if results.of_any_runs or paper is None or results.table is None:
        flops = row.flops if results.of_any_runs else row.paper_flops
        return CostCheck("params", None, row.params, "-"), CostCheck("flops", None, flops, "-", is_least=least)
    params = "params_100" if results.table.data == "cifar100" else "params"
    other_data = results.preset == "smoke" and results.table.data != "mnist"
    counts = (None, None) if other_data else (row.params, row.paper_flops)
    flops_check = _check(paper.label, row.network, "flops", counts[1])
    return _check(paper.label, row.network, params, counts[0]), flops_check._replace(is_least=least)


def flops_rule(results: ResultTable) -> str:
    """Return how the FLOPs of a table are counted, for the heads of its columns."""
    return "2 × MAC" if results.of_any_runs else "paper's rule"


def shorten(count: int, digits: int = 2, is_least: bool = False) -> str:
    """Write a count with its unit, as in 8.43 M, or as in >19.49 M where it is the least that there can be."""
    unit = next((unit for unit in (1e9, 1e6, 1e3) if count >= unit), None)
    return ">" * is_least + (str(count) if unit is None else f"{count / unit:.{digits}f} {LETTERS[unit]}")


def _check(label: str, spec: str, column: str, counted: int | None) -> CostCheck:
    table = COST_TABLES[label]
    cells = table.rows.get(spec)
    digits = getattr(cells, column) if cells else None
    if digits is None:
        return CostCheck(column, None, counted, "-")
    unit = table.flops_unit if column == "flops" else table.params_unit
    printed = f"{digits} {LETTERS[unit]}"
    if counted is None:
        return CostCheck(column, printed, None, "not counted")
    if agrees(counted, digits, unit):
        return CostCheck(column, printed, counted, "agrees")
    if counted == MISPRINTED.get((label, spec, column)):
        return CostCheck(column, printed, counted, "misprint", MISPRINTS[label, spec, column])
    return CostCheck(column, printed, counted, "differs")


NONE = "-"
MEMORY_HEADS = ("memory, paper", "memory, driver", "driver − Identity", "torch reserved", "torch allocated")


class Footprint(NamedTuple):
    """In MiB; None where there is no number, and everywhere in a table of which nothing was measured."""

    printed: float | None = None
    driver: float | None = None
    above: float | None = None  # the driver's number minus that of Identity
    reserved: float | None = None
    allocated: float | None = None


def is_measured(results: ResultTable) -> bool:
    """Whether the memory of any row was measured."""
    return any(row.memory for row in results.rows)


def is_printed(results: ResultTable) -> bool:
    """Whether the paper prints memory for rows of this table."""
    return any(_printed(results, row.network) is not None for row in results.rows)


def memory_heading(results: ResultTable) -> str:
    """Return the heading of a table of memory."""
    whose = "Memory: the paper's, and ours" if is_printed(results) else "Memory"
    return f"{whose} of a fresh process that infers one image"


def find_footprint(results: ResultTable, row: Row) -> Footprint:
    """Return a row's memory; all None in a table of which nothing was measured."""
    if not is_measured(results):
        return Footprint()
    found = footprint_of(row.memory, results.control) if row.memory else Footprint()
    return found._replace(printed=_printed(results, row.network))


def footprint_of(memory: Memory, control: Memory | None) -> Footprint:
    """Return what was measured, without the paper's number; `control` is the record of Identity."""
    above = memory.above(control) if control else None
    return Footprint(
        None,
        memory.driver_bytes / MIB,
        None if above is None else above / MIB,
        memory.reserved_bytes / MIB,
        memory.allocated_bytes / MIB,
    )


def format_footprint(footprint: Footprint) -> tuple[str, ...]:
    """Return the texts below MEMORY_HEADS: the driver and torch count whole MiB, tensors take less than one."""
    forms = (".0f", ".0f", "+.0f", ".0f", ".2f")
    return tuple(NONE if value is None else format(value, form) for value, form in zip(footprint, forms, strict=True))


def _printed(results: ResultTable, spec: str) -> float | None:
    return printed_memory(results.paper.label, spec) if results.paper else None
