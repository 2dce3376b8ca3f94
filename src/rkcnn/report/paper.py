"""What the paper printed: the cost columns of its four tables, and the cells known to be slips."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.model.catalogue import MNIST, SOTA_MNIST, SOTA_THREE_PERIODS, THREE_PERIODS


class Printed(NamedTuple):
    """One row's cost cells, as the digits stand there; `params_100` is the CIFAR-100 column."""

    label: str
    flops: str | None
    params: str
    params_100: str | None = None


class Table(NamedTuple):
    flops_unit: float
    params_unit: float
    rows: dict[str, Printed]  # by the network's name

    @property
    def letters(self) -> tuple[str, str]:
        """The units of params and FLOPs."""
        letters = {1e3: "K", 1e6: "M", 1e9: "G"}
        return letters[self.params_unit], letters[self.flops_unit]


def _rows(names: tuple[str, ...], *cells: Printed) -> dict[str, Printed]:
    named = [name for name in names if not name.startswith("Identity")]
    return dict(zip(named, cells, strict=True))


TABLES: dict[str, Table] = {
    "tb:MNIST": Table(
        1e6,
        1e3,
        _rows(
            MNIST,
            Printed("pre-act ResNet (bottleneck)", "7.19", "34.86"),
            Printed("pre-act ResNet", "8.43", "52.23"),
            Printed("RKNN (4th-order ERK)", "12.44", "52.36"),
            Printed("RK-Net (4th-order ERK)", "12.60", "52.94"),
            Printed("RK-Net (5th-order IRK)", None, "52.94"),
            Printed("ODE-Net (4th-order explicit)", "18.11", "52.94"),
            Printed("ODE-Net (4th-order implicit)", ">19.49", "52.94"),
            Printed("DenseNet (T = 2)", "8.65", "57.55"),
            Printed("CliqueNet (T = 2)", "10.27", "57.55"),
            Printed("RKCNN-E-2", "4.94", "31.45"),
            Printed("RKCNN-E-2", "7.63", "48.85"),
            Printed("RKCNN-E-2", "8.65", "55.50"),
            Printed("RKCNN-I-2", "4.10", "31.01"),
            Printed("RKCNN-I-2", "6.84", "52.01"),
            Printed("RKCNN-I-2", "10.27", "78.41"),
            Printed("RKCNN-R-2", "4.10", "31.01"),
            Printed("RKCNN-R-2", "6.84", "52.01"),
            Printed("RKCNN-R-2", "10.27", "78.41"),
        ),
    ),
    "tb:cifar": Table(
        1e9,
        1e6,
        _rows(
            THREE_PERIODS,
            Printed("pre-act ResNet (bottleneck)", "0.0845", "0.113", "0.145"),
            Printed("pre-act ResNet", "0.740", "0.845", "0.878"),
            Printed("RKNN (4th-order ERK)", "2.833", "0.846", "0.879"),
            Printed("RK-Net (4th-order ERK)", "2.857", "0.853", "0.885"),
            Printed("RK-Net (5th-order IRK)", None, "0.853", "0.885"),
            Printed("ODE-Net (4th-order explicit)", "5.672", "0.853", "0.885"),
            Printed("ODE-Net (4th-order implicit)", ">6.375", "0.853", "0.885"),
            Printed("DenseNet (T = 6)", "0.930", "1.044", "1.141"),
            Printed("CliqueNet (T = 6)", "1.666", "1.061", "1.158"),
            Printed("RKCNN-E-2_2_2", "0.856", "0.977", "1.009"),
            Printed("RKCNN-I-2_2_2", "0.0842", "0.103", "0.111"),
            Printed("RKCNN-I-2_2_2", "0.724", "0.834", "0.855"),
            Printed("RKCNN-I-2_2_2", "1.707", "1.932", "1.964"),
            Printed("RKCNN-R-2_2_2", "0.0842", "0.103", "0.111"),
            Printed("RKCNN-R-2_2_2", "0.724", "0.834", "0.855"),
            Printed("RKCNN-R-2_2_2", "1.707", "1.932", "1.964"),
        ),
    ),
    "tb:MNIST_sota": Table(
        1e6,
        1e6,
        _rows(
            SOTA_MNIST,
            Printed("RK-Net (Chen et al. 2018)", None, "0.22"),
            Printed("ODE-Net (Chen et al. 2018)", None, "0.22"),
            Printed("SONODE (Norcliffe et al. 2020)", None, "0.28"),
            Printed("RKCNN-E-2", None, "0.06"),
            Printed("RKCNN-I-2", None, "0.08"),
            Printed("RKCNN-R-2", None, "0.08"),
        ),
    ),
    "tb:cifar_sota": Table(
        1e9,
        1e6,
        _rows(
            SOTA_THREE_PERIODS,
            Printed("pre-act ResNet (He et al. 2016)", "4.71", "10.2", "10.2"),
            Printed("DenseNet (Huang et al. 2017)", "14.53", "28.1", "28.3"),
            Printed("DenseNet (Huang et al. 2017)", "10.83", "15.3", "15.5"),
            Printed("DenseNet (Huang et al. 2017)", "18.78", "25.6", "25.8"),
            Printed("CliqueNet (Yang et al. 2018)", "9.45", "10.14"),
            Printed("CliqueNet (Yang et al. 2018)", "10.56", "10.48"),
            Printed("Momentum ResNet (Sander et al. 2021)", "14.79", "139.0", "139.2"),
            Printed("RKCNN-E-5_5_5", "1.05", "1.19", "1.21"),
            Printed("RKCNN-E-5_5_5", "2.37", "2.67", "2.70"),
            Printed("RKCNN-I-5_5_5", "2.26", "2.55", "2.57"),
            Printed("RKCNN-I-5_5_5", "5.07", "5.72", "5.75"),
            Printed("RKCNN-I-5_5_6", "7.30", "7.29", "7.32"),
            Printed("RKCNN-R-5_5_5", "2.26", "2.55", "2.57"),
            Printed("RKCNN-R-5_5_5", "5.07", "5.72", "5.75"),
            Printed("RKCNN-R-3_4_4", "6.70", "8.76", "8.81"),
        ),
    ),
}

_QUOTED_64 = "quoted from Chen et al.; the public code gives 208,266"
_MOMENTUM = (
    "matches no 4-stage bottleneck ResNet with these FLOPs; the public network has ordinary width, "
    "and one of double width has 124,850,506 parameters and 14.788 G"
)

SLIPS: dict[tuple[str, str, str], str] = {
    ("tb:MNIST", "DenseNet-2@k=32", "params"): (
        "57.55 K is the CliqueNet cell: a clique block run with no Phase II still counts its weights (57,546); "
        "a dense block has 56,266"
    ),
    ("tb:MNIST", "CliqueNet-2@k=32", "flops"): (
        "10.27 M is the RKCNN-I cell; the clique block keeps y out of Phase II and costs 10.124 M"
    ),
    ("tb:MNIST_sota", "RKNet-64", "params"): _QUOTED_64,
    ("tb:MNIST_sota", "ODENet-64", "params"): _QUOTED_64,
    ("tb:cifar_sota", "ResNet-1001", "params"): "10.2 M is He et al.'s rounding; the network has 10,327,706",
    ("tb:cifar_sota", "ResNet-1001", "params_100"): "10.2 M is He et al.'s rounding; the network has 10,350,836",
    ("tb:cifar_sota", "ResNet-1001", "flops"): (
        "4.71 G is 2 x 2357 M, a figure published for a 16 M-parameter network of basic blocks; this one costs 2.969 G"
    ),
    ("tb:cifar_sota", "DenseNet-BC-L190-k40", "flops"): "18.78 G is 2 x 9388 M, quoted; the count is 18.595 G",
    (
        "tb:cifar_sota",
        "CliqueNet-k150-T30",
        "flops",
    ): "10.56 G is plain 2 x MAC; the paper's own convention gives 10.554 G",
    ("tb:cifar_sota", "MomentumResNet-101", "params"): f"139.0 M {_MOMENTUM}",
    ("tb:cifar_sota", "MomentumResNet-101", "params_100"): f"139.2 M {_MOMENTUM}",
    ("tb:cifar_sota", "MomentumResNet-101", "flops"): (
        "14.79 G is the count at double width, 14.788 G; the public network has ordinary width and costs 5.025 G"
    ),
}
"""(table, network, column): why the printed cell is not this network's (SPEC 6)."""


def printed(name: str) -> list[tuple[str, Printed]]:
    """Every table that has this network, with what it printed."""
    return [(key, table.rows[name]) for key, table in TABLES.items() if name in table.rows]


def agrees(value: int, text: str, unit: float) -> bool:
    """Whether a count, rounded as the paper rounds, is the printed cell."""
    digits = text.lstrip(">")
    decimals = len(digits.partition(".")[2])
    return f"{value / unit:.{decimals}f}" == digits


def slip_table() -> str:
    """The cells that are not their network's, as Markdown: a part of docs/costs.md."""
    lines = ["| table | network | column | printed | why |", "|---|---|---|---|---|"]
    for (table, name, column), why in SLIPS.items():
        lines.append(f"| `{table}` | `{name}` | {column} | {getattr(TABLES[table].rows[name], column)} | {why} |")
    return "\n".join(lines)
