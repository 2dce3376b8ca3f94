"""The tables: which networks are trained on what, by which recipe, how often, and where the paper prints them.

This is the only definition of a table; costs, reproduction and report all read it. Imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from rkcnn.error import InputError, did_you_mean
from rkcnn.fit.recipe import CHOICES, Recipe, find_recipe
from rkcnn.model.spec import parse
from rkcnn.record.run import Run

PRESETS = ("paper", "fast", "smoke")
"""How a table is trained: as the paper trains, by a short recipe of ours, or for forty steps to see that all works."""

_RECIPES = {
    "mnist": {"paper": "paper-mnist", "fast": "fast-mnist"},
    "cifar10": {"paper": "paper-cifar", "fast": "fast-cifar"},
    "cifar100": {"paper": "paper-cifar", "fast": "fast-cifar"},
    "svhn": {"paper": "paper-svhn", "fast": "fast-svhn"},
}

_K120 = "120_120_120"

_MNIST = (
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
_THREE_PERIODS = (
    f"ResNet-bottleneck@k={_K120}",
    f"ResNet@k={_K120}",
    f"RKNN-rk4_38@k={_K120}",
    f"RKNet-rk4_38@k={_K120}",
    f"RKNet-radau3@k={_K120}",
    f"ODENet-ab@k={_K120}",
    f"ODENet-abm@k={_K120}",
    "DenseNet-2_2_2@k=120",
    "CliqueNet-2_2_2@k=120",
    "RKCNN-E-2_2_2@k=120",
    *(f"RKCNN-I-2_2_2@k={k}" for k in ("26_28_28", "78_78_80", "120")),
    *(f"RKCNN-R-2_2_2@k={k}" for k in ("26_28_28", "78_78_80", "120")),
    f"Identity@k={_K120}",
)
_SOTA_MNIST = ("RKNet-64", "ODENet-64", "SONODE-64", *(f"RKCNN-{kind}-2@k=32" for kind in "EIR"))
_SOTA_THREE_PERIODS = (
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


@dataclass(frozen=True)
class PaperTable:
    """One of the four tables that the paper prints; three of our data sets may share one, a column each."""

    label: str  # in the paper's LaTeX
    title: str
    specs: tuple[str, ...]  # its networks that can be trained, and Identity, the control that the paper lacks
    channels: int
    size: int  # height and width of an image


PAPER_TABLES: dict[str, PaperTable] = {
    table.label: table
    for table in (
        PaperTable("tb:MNIST", "MNIST: one channel, 28x28", _MNIST, 1, 28),
        PaperTable("tb:cifar", "SVHN, CIFAR-10 and CIFAR-100: three channels, 32x32", _THREE_PERIODS, 3, 32),
        PaperTable("tb:MNIST_sota", "State of the art on MNIST", _SOTA_MNIST, 1, 28),
        PaperTable("tb:cifar_sota", "State of the art on SVHN, CIFAR-10 and CIFAR-100", _SOTA_THREE_PERIODS, 3, 32),
    )
}


@dataclass(frozen=True)
class Table:
    """Networks trained on one data set by one recipe, with `seeds` runs of each: a table of `rkcnn reproduce`."""

    name: str
    about: str
    data: str
    specs: tuple[str, ...]
    seeds: int
    paper: PaperTable | None = None  # where the paper prints it; its errors stand in the column named `data`

    def data_at(self, preset: str) -> str:
        """Return the data set of a preset: the paper adds SVHN's extra images, and smoke takes the bundled digits."""
        if preset == "smoke":
            return "mnist-mini"
        return "svhn+extra" if self.data == "svhn" and preset == "paper" else self.data

    def recipe_at(self, preset: str, precision: str | None = None) -> Recipe:
        """Return the recipe that a preset trains by, in another precision than its own if one is given."""
        if preset not in PRESETS:
            raise InputError(f"`preset={preset}` given; a table is trained by {', '.join(PRESETS)}")
        recipe = find_recipe("smoke" if preset == "smoke" else _RECIPES[self.data][preset])
        if precision is None:
            return recipe
        if precision not in CHOICES["precision"]:
            raise InputError(f"`precision={precision}` given; it is one of {', '.join(CHOICES['precision'])}")
        return replace(recipe, precision=precision)

    @property
    def control(self) -> str:
        """The network without any step on this table's data, also for tables that have no such row."""
        return next(spec for spec in TABLES[self.data].specs if spec.startswith("Identity@"))

    def runs(
        self, preset: str = "paper", rows: str = "*", seeds: int | None = None, precision: str | None = None
    ) -> list[Run]:
        """Return every run of the table, row by row; `rows` is a shell pattern, or several with commas between.

        `precision` is that of all runs, if it is not to be that of the preset's recipe.
        """
        recipe = self.recipe_at(preset, precision)
        if seeds is not None and not 1 <= seeds <= 1000:
            raise InputError(f"`seeds={seeds}` given; train 1 to 1000 of them")
        specs = self.pick(rows)
        count = seeds or (1 if preset == "smoke" else self.seeds)
        return [Run(self.data_at(preset), spec, recipe, seed) for spec in specs for seed in range(count)]

    def pick(self, rows: str) -> list[str]:
        """Return the networks that match a pattern such as RKCNN-*@k=32, or one of several with commas between.

        A comma before an option (k=32,norm=gn) belongs to the name.
        """
        found: set[str] = set()
        for pattern in re.split(r",(?![a-z0-9]+=)", rows):
            matching = {spec for spec in self.specs if fnmatchcase(spec.lower(), pattern.lower())}
            if not matching:
                raise InputError(f"no row of {self.name} matches {pattern!r}; rows are {', '.join(self.specs)}")
            found |= matching
        return [spec for spec in self.specs if spec in found]


def _paper(name: str, about: str, label: str) -> Table:
    data = name.removeprefix("sota-")
    return Table(name, about, data, PAPER_TABLES[label].specs, 5 if data == "mnist" else 3, PAPER_TABLES[label])


_BASE = "RKCNN-I-2_2_2@k=120"
_ABLATION = (
    "CliqueNet-2_2_2@k=120",
    f"{_BASE},y=off,shared=on",  # the stages are summed
    f"{_BASE},shared=on",  # y enters Phase II: rule 4
    _BASE,  # each phase has convolutions of its own: rule 5
    f"{_BASE},y=off",  # and each rule left out alone
    f"{_BASE},merge=concat",
)
_SCALING = (
    "RKCNN-I-2_2_2@k=80",
    *(f"RKCNN-I-{s}_{s}_{s}@k=80" for s in (3, 5)),
    *(f"RKCNN-I-2_2_2@k=80,r={r}" for r in (2, 3)),
    *(f"RKCNN-I-2_2_2@k={k}" for k in (40, 120)),
)
_REPEATED = ("RKNN-", "RKNet-rk4_38@", "ODENet-ab@")  # they evaluate f several times in a period, always as often
_NORMS = (
    *(
        str(parse(f"{spec},norm={norm}"))  # a row that has that norm anyway is the row of the mnist table
        for norm in ("gn", "bn")
        for spec in _MNIST
        if spec.endswith("@k=32")
    ),
    *(f"{spec},norm=bn,statistics=each" for spec in _MNIST if spec.startswith(_REPEATED)),
)
_STATISTICS = tuple(
    f"{spec}{option}" for spec in _THREE_PERIODS if spec.startswith(_REPEATED) for option in ("", ",statistics=each")
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _paper("mnist", "the paper's table on MNIST: each step in the same network", "tb:MNIST"),
        _paper("cifar10", "the paper's table on CIFAR-10: each step in the same network", "tb:cifar"),
        _paper("cifar100", "the paper's table on CIFAR-100: each step in the same network", "tb:cifar"),
        _paper("svhn", "the paper's table on SVHN: each step in the same network", "tb:cifar"),
        _paper("sota-mnist", "the paper's comparison with published networks on MNIST", "tb:MNIST_sota"),
        _paper("sota-cifar10", "the paper's comparison with published networks on CIFAR-10", "tb:cifar_sota"),
        _paper("sota-cifar100", "the paper's comparison with published networks on CIFAR-100", "tb:cifar_sota"),
        _paper("sota-svhn", "the paper's comparison with published networks on SVHN", "tb:cifar_sota"),
        Table("ablation", "from CliqueNet to RKCNN-I, rule by rule", "cifar10", _ABLATION, 3),
        Table("scaling", "more stages, more steps, more width", "cifar10", _SCALING, 3),
        Table("norms", "the k=32 rows of MNIST with one norm for all (docs/spec.md, 3.5)", "mnist", _NORMS, 5),
        Table(
            "statistics",
            "batch norm in f with running statistics that its evaluations share, and with one set for each",
            "cifar10",
            _STATISTICS,
            3,
        ),
    )
}


def find_table(name: str) -> Table:
    """Return the table of that name; raises InputError if there is none."""
    if not isinstance(name, str):
        raise InputError(f"a table's name of type {type(name).__name__} given; tables are {', '.join(TABLES)}")
    if name.lower() not in TABLES:
        raise InputError(f"no table {name!r}{did_you_mean(name, TABLES)}; tables are {', '.join(TABLES)}")
    return TABLES[name.lower()]


def list_models(table: str | None = None) -> list[str]:
    """Return the names of all networks of the paper's tables, or of one table of `rkcnn reproduce`.

    Any other name that the grammar allows (docs/names.md) can be built too.
    """
    tables = [find_table(table)] if table is not None else [each for each in TABLES.values() if each.paper]
    return list(dict.fromkeys(spec for each in tables for spec in each.specs))


def to_identifier(name: str) -> str:
    """Return a network's name in letters, digits and _: rkcnn_i_2_2_2_k120 of RKCNN-I-2_2_2@k=120.

    Other families start with rkcnn_ too, as in rkcnn_resnet_k32.
    """
    words = re.sub(r"[^a-z0-9]+", "_", name.lower().replace("=", "")).strip("_")
    return words if words.startswith("rkcnn_") else f"rkcnn_{words}"


def list_identifiers() -> dict[str, str]:
    """Return the networks of the paper's tables: identifier to name."""
    return {to_identifier(name): name for name in list_models()}
