"""Tables: which networks are trained on what, how often and how. Imports no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rkcnn.error import InputError
from rkcnn.fit.recipe import recipe_of
from rkcnn.model import catalogue
from rkcnn.model.spec import parse
from rkcnn.record.run import Run

PRESETS = ("paper", "fast", "smoke")
_RECIPES = {
    "mnist": {"paper": "paper-mnist", "fast": "fast-mnist"},
    "cifar10": {"paper": "paper-cifar", "fast": "fast-cifar"},
    "cifar100": {"paper": "paper-cifar", "fast": "fast-cifar"},
    "svhn": {"paper": "paper-svhn", "fast": "fast-svhn"},
}


@dataclass(frozen=True)
class Table:
    """Networks beside each other: one data set, one recipe, so many seeds each."""

    name: str
    about: str
    data: str
    specs: tuple[str, ...]
    seeds: int

    def data_at(self, preset: str) -> str:
        """The paper adds SVHN's extra images; smoke takes the bundled digits, whatever the table."""
        if preset == "smoke":
            return "mnist-mini"
        return "svhn+extra" if self.data == "svhn" and preset == "paper" else self.data

    def recipe_at(self, preset: str) -> str:
        return "smoke" if preset == "smoke" else _RECIPES[self.data][preset]

    @property
    def control(self) -> str:
        """The frame without any step, on this table's data; also for tables that have no such row."""
        return next(spec for spec in catalogue.TABLES[self.data] if spec.startswith("Identity@"))

    def runs(self, preset: str = "paper", rows: str = "*", seeds: int | None = None) -> list[Run]:
        """Every run of the table, row by row; `rows` is a shell pattern, or several with commas between."""
        if preset not in PRESETS:
            raise InputError(f"--recipe {preset} given; a table is trained by {', '.join(PRESETS)}")
        if seeds is not None and not 1 <= seeds <= 1000:
            raise InputError(f"--seeds {seeds} given; train 1 to 1000 of them")
        specs = self.pick(rows)
        count = seeds or (1 if preset == "smoke" else self.seeds)
        recipe = recipe_of(self.recipe_at(preset))
        return [Run(self.data_at(preset), spec, recipe, seed) for spec in specs for seed in range(count)]

    def pick(self, rows: str) -> list[str]:
        """The networks that match a pattern such as RKCNN-*@k=32, or one of several with commas between.

        A comma before an option (k=32,norm=gn) belongs to the name.
        """
        found: set[str] = set()
        for pattern in re.split(r",(?![a-z0-9]+=)", rows):
            matching = {spec for spec in self.specs if fnmatchcase(spec.lower(), pattern.lower())}
            if not matching:
                raise InputError(f"no row of {self.name} matches {pattern!r}; rows are {', '.join(self.specs)}")
            found |= matching
        return [spec for spec in self.specs if spec in found]


def _paper(name: str, about: str) -> Table:
    data = name.removeprefix("sota-")
    return Table(name, about, data, catalogue.TABLES[name], 5 if data == "mnist" else 3)


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
_NORMS = tuple(
    str(parse(f"{spec},norm={norm}"))  # a row that has that norm anyway is the row of the mnist table
    for norm in ("gn", "bn")
    for spec in catalogue.MNIST
    if spec.endswith("@k=32")
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _paper("mnist", "the paper's table on MNIST: every step in one frame"),
        _paper("cifar10", "the paper's table on CIFAR-10: every step in one frame"),
        _paper("cifar100", "the paper's table on CIFAR-100: every step in one frame"),
        _paper("svhn", "the paper's table on SVHN: every step in one frame"),
        _paper("sota-mnist", "the paper's comparison with published networks on MNIST"),
        _paper("sota-cifar10", "the paper's comparison with published networks on CIFAR-10"),
        _paper("sota-cifar100", "the paper's comparison with published networks on CIFAR-100"),
        _paper("sota-svhn", "the paper's comparison with published networks on SVHN"),
        Table("ablation", "from CliqueNet to RKCNN-I, rule by rule", "cifar10", _ABLATION, 3),
        Table("scaling", "more stages, more steps, more width", "cifar10", _SCALING, 3),
        Table("norms", "the k=32 rows of MNIST with one norm for all (docs/spec.md, 3.5)", "mnist", _NORMS, 5),
    )
}


def find_table(name: str) -> Table:
    if name not in TABLES:
        raise InputError(f"no table {name!r}; tables are {', '.join(TABLES)}")
    return TABLES[name]
