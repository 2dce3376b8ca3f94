"""Which networks stand in which of the paper's tables. Imports no torch."""

from __future__ import annotations

from rkcnn.error import InputError

_THREE = "120_120_120"

MNIST = (
    "ResNet-bottleneck@k=32",
    "ResNet@k=32",
    "RKNN-rk4_38@k=32",
    "RKNet-rk4_38@k=32",
    "RKNet-radau3@k=32",
    "ODENet-ab@k=32",
    "ODENet-abm@k=32",
    "DenseNet-2@k=32",
    "CliqueNet-2@k=32",
    *(f"RKCNN-E-2@k={k}" for k in (24, 30, 32)),
    *(f"RKCNN-I-2@k={k}" for k in (20, 26, 32)),
    *(f"RKCNN-R-2@k={k}" for k in (20, 26, 32)),
    "Identity@k=32",
)
THREE_PERIODS = (
    f"ResNet-bottleneck@k={_THREE}",
    f"ResNet@k={_THREE}",
    f"RKNN-rk4_38@k={_THREE}",
    f"RKNet-rk4_38@k={_THREE}",
    f"RKNet-radau3@k={_THREE}",
    f"ODENet-ab@k={_THREE}",
    f"ODENet-abm@k={_THREE}",
    "DenseNet-2_2_2@k=120",
    "CliqueNet-2_2_2@k=120",
    "RKCNN-E-2_2_2@k=120",
    *(f"RKCNN-I-2_2_2@k={k}" for k in ("26_28_28", "78_78_80", "120")),
    *(f"RKCNN-R-2_2_2@k={k}" for k in ("26_28_28", "78_78_80", "120")),
    f"Identity@k={_THREE}",
)
SOTA_MNIST = ("RKNet-64", "ODENet-64", "SONODE-64", *(f"RKCNN-{kind}-2@k=32" for kind in "EIR"))
SOTA_THREE_PERIODS = (
    "ResNet-1001",
    "DenseNet-L100-k24",
    "DenseNet-BC-L250-k24",
    "DenseNet-BC-L190-k40",
    "CliqueNet-k80-T18",
    "CliqueNet-k150-T30",
    "MomentumResNet-101",
    "RKCNN-E-5_5_5@k=80",
    "RKCNN-E-5_5_5@k=120",
    "RKCNN-I-5_5_5@k=80",
    "RKCNN-I-5_5_5@k=120",
    "RKCNN-I-5_5_6@k=150_120_120",
    "RKCNN-R-5_5_5@k=80",
    "RKCNN-R-5_5_5@k=120",
    "RKCNN-R-3_4_4@k=180",
)

TABLES: dict[str, tuple[str, ...]] = {
    "mnist": MNIST,
    "svhn": THREE_PERIODS,
    "cifar10": THREE_PERIODS,
    "cifar100": THREE_PERIODS,
    "sota-mnist": SOTA_MNIST,
    "sota-svhn": SOTA_THREE_PERIODS,
    "sota-cifar10": SOTA_THREE_PERIODS,
    "sota-cifar100": SOTA_THREE_PERIODS,
}
"""Every trainable row, with Identity, the control that the paper lacks."""


def list_models(table: str | None = None) -> list[str]:
    """The names of all networks of the paper's tables, or of one table; any other name of the grammar works too."""
    if table is None:
        return list(dict.fromkeys(name for names in TABLES.values() for name in names))
    if table not in TABLES:
        raise InputError(f"no table {table!r}; tables are {', '.join(TABLES)}")
    return list(TABLES[table])
