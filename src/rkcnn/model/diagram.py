"""One time-step as a score: a lane for each state, a column for each computation, a dot where one reads the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.methods import BASHFORTH, METHODS, MOULTON


@dataclass(frozen=True)
class Column:
    """A computation: what it is called, the lanes it reads (with a weight to print, or none), the lane it starts."""

    label: str
    reads: dict[str, str]
    writes: str


@dataclass
class Diagram:
    """Read from left to right; `phases` name runs of columns, and the last column ends the step."""

    title: str
    lanes: list[str]
    columns: list[Column] = field(default_factory=list)
    phases: list[tuple[str, int, int]] = field(default_factory=list)  # title, first and last column
    note: str = ""

    def add(self, label: str, reads: dict[str, str], writes: str) -> None:
        self.columns.append(Column(label, reads, writes))
        if writes not in self.lanes:
            self.lanes.append(writes)

    def phase(self, title: str, count: int) -> None:
        """Name the last `count` columns."""
        self.phases.append((title, len(self.columns) - count, len(self.columns) - 1))


# Families that read the state before as well: what they compute of y, and the weights of its sum.
TWO_STEP: dict[str, tuple[str, dict[str, str]]] = {
    "LM": ("F", {"y": "1-c", "y(n-1)": "c", "f": ""}),
    "Leapfrog": ("Kᵀs(K·)", {"y": "2", "y(n-1)": "-1", "f": "-h²"}),
    "Midpoint": ("s((K-Kᵀ)·)", {"y(n-1)": "", "f": "2h"}),
}


def score(spec: ModelSpec) -> Diagram:
    """A time-step of the first period; where the first is a starter, the general one."""
    sheet = Diagram(str(spec), ["y"])
    if spec.solver is not None:
        _solver(spec, sheet)
        more = f"{spec.p} more channel{'s' * (spec.p != 1)}"
        own = {"SONODE": "; y is the state with its velocity", "ANODE": f"; y has {more}, zeros at first"}
        sheet.note += own.get(spec.family, "")
    elif spec.stages:
        _stages(spec, sheet)
    elif spec.family == "Momentum":
        sheet.lanes.append("v")
        sheet.add("f", {"y": ""}, "f(y)")
        sheet.add("+", {"v": "0.9", "f(y)": "0.1"}, "v'")
        sheet.add("+", {"y": "", "v'": ""}, "y'")
    elif spec.family == "Identity":
        sheet.add("=", {"y": ""}, "y'")
    elif spec.family == "Hamiltonian":
        sheet.lanes.append("z")
        sheet.add("K₁ᵀs(K₁·)", {"y": ""}, "a")
        sheet.add("+", {"z": "", "a": "-h"}, "z'")
        sheet.add("K₂ᵀs(K₂·)", {"z'": ""}, "b")
        sheet.add("+", {"y": "", "b": "h"}, "y'")
    elif spec.family in TWO_STEP:
        sheet.lanes.insert(0, "y(n-1)")
        label, weights = TWO_STEP[spec.family]
        sheet.add(label, {"y": ""}, "f")
        sheet.add("+", weights, "y'")
    else:
        sheet.add("F", {"y": ""}, "e")
        sheet.add("+", {"y": "", "e": ""}, "y'")
    return sheet


def _stages(spec: ModelSpec, sheet: Diagram) -> None:
    """RKCNN, DenseNet and CliqueNet: Phase I, Phase II, and the sum or concatenation at the end."""
    s = spec.stages[0]
    x = [f"x{i}" for i in range(1, s + 1)]
    for i in range(s):
        sheet.add(f"stage {i + 1}", dict.fromkeys(["y", *x[:i]], ""), x[i])
    sheet.phase("Phase I", s)
    clique = spec.family == "CliqueNet"
    seen = list(x)
    for sweep in range(spec.sweeps or 0):
        mark = "" if spec.sweeps == 1 else "′" * sweep
        before = list(seen)
        for i in range(s):
            read = seen if clique or spec.variant == "I" else before
            given = ["y"] if spec.y else []
            e = f"e{i + 1}{mark}"
            sheet.add(f"stage {i + 1}", dict.fromkeys([*given, *read[:i], *read[i + 1 :]], ""), e)
            seen[i] = e
        sheet.phase("Phase II" + (f", sweep {sweep + 1}" if spec.sweeps != 1 else ""), s)
    joined = spec.merge != "sum"
    sheet.add("{ }" if joined else "+", dict.fromkeys(["y", *seen], ""), "y'")
    kind = {"I": "Phase II reads the newest increments", "R": "Phase II reads the guesses of Phase I"}
    sheet.note = kind.get(spec.variant, "")


def _solver(spec: ModelSpec, sheet: Diagram) -> None:
    method = spec.solver or ""
    if method in ("ab", "abm"):
        old = ["f(n-1)", "f(n-2)", *(["f(n-3)"] if method == "ab" else [])]
        sheet.lanes.extend(old)
        sheet.add("f(t, ·)", {"y": ""}, "f(n)")
        weights = map(_fraction, BASHFORTH[len(old) + 1])
        sheet.add(
            "predict", {"y": "", **dict(zip(["f(n)", *old], weights, strict=True))}, "y'" if method == "ab" else "p"
        )
        if method == "abm":
            sheet.add("f(t+h, ·)", {"p": "", "y'": "again"}, "f(n+1)")
            weights = map(_fraction, MOULTON)
            sheet.add("correct", {"y": "", **dict(zip(["f(n+1)", "f(n)", *old], weights, strict=True))}, "y'")
            sheet.phase("repeated until it settles, at most 4 times", 2)
        sheet.note = "after two starting steps of the 3/8 rule; weights are times h"
        return
    tableau = METHODS[method]
    z = [f"z{i + 1}" for i in range(tableau.stages)]
    for i, (row, node) in enumerate(zip(tableau.a, tableau.c, strict=True)):
        reads = {name: _fraction(weight) for name, weight in zip(z, row, strict=True) if weight != 0}
        time = "t" if node == 0 else "t+h" if node == 1 else f"t+{_fraction(node)}h"
        sheet.add(f"f({time}, ·)" if spec.family != "RKNN" else "f", {"y": "", **reads}, z[i])
    if tableau.kind != "explicit":
        sheet.phase("solved together", tableau.stages)
    ends = {name: _fraction(weight) for name, weight in zip(z, tableau.b, strict=True) if weight != 0}
    sheet.add("+", {"y": "", **ends}, "y'")
    sheet.note = f"{method}, order {tableau.order}; weights are times h"


def _fraction(x: float) -> str:
    """A short fraction where the coefficient is one, else three digits."""
    near = Fraction(x).limit_denominator(400)
    if abs(float(near) - x) < 1e-12:
        return str(near)
    return f"{x:.3g}"
