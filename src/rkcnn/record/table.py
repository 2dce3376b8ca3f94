"""Tables: which networks are trained on what, how often and how. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from rkcnn.error import InputError
from rkcnn.model import catalogue
from rkcnn.model.spec import parse
from rkcnn.record.run import Run
from rkcnn.train.recipe import recipe_of

PACES = ("paper", "fast", "smoke")
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

    def data_at(self, pace: str) -> str:
        """The paper adds SVHN's extra images; smoke takes the bundled digits, whatever the table."""
        if pace == "smoke":
            return "mnist-mini"
        return "svhn+extra" if self.data == "svhn" and pace == "paper" else self.data

    def recipe_at(self, pace: str) -> str:
        return "smoke" if pace == "smoke" else _RECIPES[self.data][pace]

    @property
    def control(self) -> str:
        """The frame without any step, on this table's data; also for tables that have no such row."""
        return next(spec for spec in catalogue.TABLES[self.data] if spec.startswith("Identity@"))

    def runs(self, pace: str = "paper", rows: str = "*", seeds: int | None = None) -> list[Run]:
        """Every run of the table, row by row; `rows` is a shell pattern, or several with commas between."""
        if pace not in PACES:
            raise InputError(f"--recipe {pace} given; a table is trained by {', '.join(PACES)}")
        if seeds is not None and not 1 <= seeds <= 1000:
            raise InputError(f"--seeds {seeds} given; train 1 to 1000 of them")
        specs = pick_rows(self.specs, rows)
        if not specs:
            raise InputError(f"no row of {self.name} matches {rows!r}; rows are {', '.join(self.specs)}")
        count = seeds or (1 if pace == "smoke" else self.seeds)
        recipe = recipe_of(self.recipe_at(pace))
        return [Run(self.data_at(pace), spec, recipe, seed) for spec in specs for seed in range(count)]


def pick_rows(specs: tuple[str, ...], rows: str) -> list[str]:
    """Those that match a pattern such as RKCNN-*@k=32, or one of several with commas between."""
    # A comma also stands inside names (k=32,norm=gn): a row given by its full name is that row.
    if rows in specs:
        return [rows]
    patterns = rows.split(",")
    return [spec for spec in specs if any(fnmatchcase(spec.lower(), pattern.lower()) for pattern in patterns)]


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
        _paper("mnist", "the paper's tb:MNIST: every step in one frame on MNIST"),
        _paper("cifar10", "the paper's tb:cifar on CIFAR-10"),
        _paper("cifar100", "the paper's tb:cifar on CIFAR-100"),
        _paper("svhn", "the paper's tb:cifar on SVHN"),
        _paper("sota-mnist", "the paper's tb:MNIST_sota"),
        _paper("sota-cifar10", "the paper's tb:cifar_sota on CIFAR-10"),
        _paper("sota-cifar100", "the paper's tb:cifar_sota on CIFAR-100"),
        _paper("sota-svhn", "the paper's tb:cifar_sota on SVHN"),
        Table("ablation", "from CliqueNet to RKCNN-I, rule by rule", "cifar10", _ABLATION, 3),
        Table("scaling", "more stages, more steps, more width", "cifar10", _SCALING, 3),
        Table("norms", "the k=32 rows of MNIST with one norm for all (SPEC 3.5)", "mnist", _NORMS, 5),
    )
}


def find_table(name: str) -> Table:
    if name not in TABLES:
        raise InputError(f"no table {name!r}; tables are {', '.join(TABLES)}")
    return TABLES[name]
