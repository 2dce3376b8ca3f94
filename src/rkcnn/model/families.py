"""The families of networks as data: what each is called and which options it takes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from rkcnn.solvers.methods import ADAMS_STARTERS, METHODS

RK_METHODS = tuple(METHODS)
EMBEDDED = tuple(name for name, method in METHODS.items() if method.embedded is not None)
IMPLICIT = tuple(name for name, method in METHODS.items() if method.kind != "explicit")
ADAMS = ("ab", "abm")
SOLVERS = RK_METHODS + ADAMS

Value = int | float | bool | str | None


@dataclass(frozen=True)
class Family:
    """One family: `NAME[-variant][-stages]@k=...`; an optional variant is the first, written as ""."""

    name: str
    about: str
    variants: tuple[str, ...] = ("",)
    staged: bool = False  # has a list of stages (growths) in its name
    steps: int | None = 1  # default r, None where a period has no time-steps
    least_steps: int = 1
    norm: str = "gn"  # of its block in the one-period frame (SPEC 3.5)
    divisor: int = 1  # every k must be a multiple of it
    own: tuple[tuple[str, Value], ...] = ()  # options that no other rule of options_of gives it


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("RKCNN", "learned Runge–Kutta steps (the paper)", ("E", "I", "R"), staged=True, norm="bn"),
        Family("ResNet", "pre-activation residual blocks (He et al. 2016)", ("", "bottleneck")),
        Family("RKNN", "a Runge–Kutta step of f(y)", RK_METHODS),
        Family("RKNet", "a Runge–Kutta step of f(t, y)", RK_METHODS),
        Family("ODENet", "an Adams method on f(t, y) (Chen et al. 2018)", ADAMS),
        Family("SONODE", "second-order neural ODE (Norcliffe et al. 2020)", ("", *SOLVERS)),
        Family("ANODE", "augmented neural ODE (Dupont et al. 2019)", ("", *SOLVERS), own=(("p", 1),)),
        Family("DenseNet", "dense block (Huang et al. 2017)", staged=True, steps=None, norm="bn"),
        Family("CliqueNet", "clique block (Yang et al. 2018)", staged=True, steps=None, norm="bn"),
        Family(
            "Momentum",
            "momentum residual steps (Sander et al. 2021)",
            steps=2,
            least_steps=2,
            own=(("v0", "zero"),),
        ),
        Family("LM", "linear multistep network (Lu et al. 2018)", steps=2, least_steps=2),
        Family("Leapfrog", "leapfrog network (Chang et al. 2018)", steps=2, least_steps=2),
        Family("Midpoint", "midpoint network (Chang et al. 2018)", steps=2, least_steps=2),
        Family("Hamiltonian", "Hamiltonian network (Chang et al. 2018)", divisor=2),
        Family("Identity", "no step at all: the control row", steps=None),
    )
}

CHOICES: dict[str, tuple[str, ...]] = {
    "stem": ("odenet", "conv"),
    "norm": ("paper", "bn", "gn"),
    "merge": ("sum", "concat"),
    "v0": ("zero", "learned"),
    "converge": ("batch", "image"),
}
SWITCHES = ("attention", "multiscale", "y", "shared", "adjoint")
COUNTS = ("sweeps", "p")
# More than any network has had; beyond, building takes hours and sizes overflow.
MOST = {"periods": 10, "stages": 100, "k": 65536, "r": 1000, "sweeps": 100, "p": 1000}


def solver_of(family: str, variant: str) -> str | None:
    """The solver of a family that has one; SONODE and ANODE take the 3/8 rule unless one is named."""
    if family in ("SONODE", "ANODE") and not variant:
        return "rk4_38"
    return variant if variant in SOLVERS else None


def options_of(family: Family, variant: str, periods: int) -> dict[str, Value]:
    """Every option that this network takes beside k and r, with its default."""
    options: dict[str, Value] = {"stem": "odenet" if periods == 1 else "conv", "norm": "paper"}
    if periods > 1:
        options |= {"attention": True, "multiscale": True}
    if family.name == "RKCNN":
        options["merge"] = "sum"
    if variant in ("I", "R"):
        options |= {"sweeps": 1, "y": True, "shared": False}
    if family.name == "CliqueNet":
        options["sweeps"] = 1
    solver = solver_of(family.name, variant)
    if solver in (*IMPLICIT, "abm"):
        options["tol"] = 0.5 if periods == 1 else 0.9  # the paper, sections 4.1.1 and 4.1.2
    if solver in EMBEDDED:
        options["tol"] = None  # with a tolerance the step adapts
    if solver == "abm":
        options["converge"] = "batch"
    if solver is not None and solver not in IMPLICIT:
        options["adjoint"] = False
    return options | dict(family.own)


def default_steps(family: Family, variant: str) -> int | None:
    if family.steps is None:
        return None
    return max({"ab": 4, "abm": 3}.get(variant, family.steps), least_steps(family, variant)[0])


def least_steps(family: Family, variant: str) -> tuple[int, str]:
    """The fewest steps that make sense, and why."""
    if variant in ADAMS:
        return ADAMS_STARTERS + 1, "with fewer steps it never leaves its starter"
    if family.name == "SONODE" and variant == "euler":
        return 2, "in a single step f never reaches y"
    return family.least_steps, "a single step is a scaled residual block"
