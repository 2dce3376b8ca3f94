"""The families of networks as data, and the published originals that the paper quotes. Imports no torch.

An entry says how a family is built, named and drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rkcnn.model.drawing import (  # fmt: skip
    AMBER,
    BLACK,
    BLUE,
    BROWN,
    GREEN,
    GREY,
    OLIVE,
    ORANGE,
    PINK,
    PURPLE,
    SKY,
    WINE,
    Look,
    choose_looks,
)
from rkcnn.solvers.methods import ADAMS, ADAMS_STARTERS, EMBEDDED, IMPLICIT, METHOD_NAMES, TABLEAUS

Value = int | float | bool | str | None
Defaults = Mapping[str, Value | tuple[Value, Value]]
"""Options with their defaults; two values are those of networks with one period and with several."""


@dataclass(frozen=True)
class Option:
    """What `name=value` may say in a network's name."""

    kind: Literal["choice", "switch", "count", "tolerance"]
    about: str
    choices: tuple[str, ...] = ()


OPTIONS: dict[str, Option] = {  # in the order in which names write them
    "stem": Option("choice", about="the preprocessor: three convolutions, or one of 3x3", choices=("odenet", "conv")),
    "norm": Option(
        "choice", about="batch norm, group norm, or each where the paper has it", choices=("paper", "bn", "gn")
    ),
    "attention": Option("switch", about="channel attention in the transitions"),
    "multiscale": Option("switch", about="the classifier reads every period, not the last alone"),
    "merge": Option(
        "choice", about="how a step ends: y and all increments added, or concatenated", choices=("sum", "concat")
    ),
    "sweeps": Option("count", about="how often Phase II runs, with the same weights"),
    "y": Option("switch", about="Phase II reads y (the paper's rule 4)"),
    "shared": Option("switch", about="both phases share their convolutions (against the paper's rule 5)"),
    "tol": Option("tolerance", about="tolerance of an implicit or adaptive solver"),
    "converge": Option(
        "choice", about="judge convergence over the whole batch, or for each image", choices=("batch", "image")
    ),
    "adjoint": Option("switch", about="gradients by integrating backwards in time"),
    "statistics": Option(
        "choice",
        about="batch norms in f have one set of running statistics for all its evaluations, or one for each",
        choices=("shared", "each"),
    ),
    "p": Option("count", about="channels of zeros that are added to y"),
    "v0": Option("choice", about="the velocity at the start of a period", choices=("zero", "learned")),
}
LIMITS = {"periods": 10, "stages": 100, "k": 65536, "r": 1000, "sweeps": 100, "p": 1000}
"""The largest numbers that a name may ask for: beyond them building takes hours and sizes overflow."""


@dataclass(frozen=True)
class Variant:
    """One variant of a family. Most families have a single variant, whose name is empty."""

    solver: str | None = None  # the numerical method that is applied to f
    steps: int | None = 1  # default r; None where a period has no time-steps
    least_steps: tuple[int, str] = (1, "")  # and why
    least_stages: tuple[int, str] = (1, "")  # and why
    divisor: tuple[int, str] = (1, "")  # a number of which every k must be a multiple, and why
    options: Defaults = field(default_factory=dict)  # beside those that all networks have
    title: str = ""  # in tables and figures, where it is not the family's
    look: Look | None = None  # in figures, where it is not the family's


@dataclass(frozen=True)
class Family:
    """One family: `NAME[-variant][-stages]@k=...`. A plain one needs only its name, a description and its class."""

    name: str
    about: str
    period: str | type[Any]  # what happens in a period: file:Class in rkcnn.model or, if registered, a class
    title: str = ""  # what the paper calls it, if not by its name
    variants: Mapping[str, Variant] = field(default_factory=lambda: {"": Variant()})
    staged: bool = False  # its name has a list of stages
    norm: str = "gn"  # of its blocks in networks of one period (docs/spec.md, 3.5)
    look: Look | None = None  # in figures; a free colour and marker unless given


def _solved_by(method: str) -> Variant:
    """Return the variant that applies a method to f; which options it has follows from the method."""
    options: dict[str, Value | tuple[Value, Value]] = {}
    if method in IMPLICIT or method == "abm":
        options["tol"] = (0.5, 0.9)  # the paper, sections 4.1.1 and 4.1.2
    if method in EMBEDDED:
        options["tol"] = None  # steps are fixed unless a tolerance is given
    if method == "abm":
        options["converge"] = "batch"
    if method not in IMPLICIT:
        options["adjoint"] = False
        if method != "abm":
            options["statistics"] = "shared"
    if method not in ADAMS:
        return Variant(method, options=options)
    least = ADAMS_STARTERS + 1, "its first steps are Runge–Kutta steps, and with fewer there would be no Adams step"
    return Variant(method, 4 if method == "ab" else 3, least, options=options)


def _augment(variant: Variant) -> Variant:
    return replace(variant, options={**variant.options, "p": 1})


_ANY_SOLVER = {"": _solved_by("rk4_38"), **{name: _solved_by(name) for name in METHOD_NAMES}}
_RUNGE_KUTTA = {name: _ANY_SOLVER[name] for name in TABLEAUS}
_ADAMS = {name: _ANY_SOLVER[name] for name in ADAMS}
_AUGMENTED = {name: _augment(each) for name, each in _ANY_SOLVER.items()}
_SECOND_ORDER_EULER = replace(
    _ANY_SOLVER["euler"], steps=2, least_steps=(2, "one Euler step changes y by v(0) alone, so f has no effect")
)
_SECOND_ORDER = {**_ANY_SOLVER, "euler": _SECOND_ORDER_EULER}
_TWO_STEPS = Variant(steps=2, least_steps=(2, "a single step is a scaled residual block"))
_NO_STEPS = Variant(steps=None)
_CLIQUE = Variant(None, None, least_stages=(2, "Phase II renews each stage from the others"), options={"sweeps": 1})
_PHASE_2 = replace(_CLIQUE, steps=1, options={"merge": "sum", "sweeps": 1, "y": True, "shared": False})
_RKCNN = {
    "E": Variant(options={"merge": "sum"}, title="RKCNN-E", look=Look(SKY, "o")),
    "I": replace(_PHASE_2, title="RKCNN-I", look=Look(BLUE, "s")),
    "R": replace(_PHASE_2, title="RKCNN-R", look=Look(GREEN, "D")),
}
_RESNET = {"": Variant(), "bottleneck": Variant(divisor=(4, "its bottleneck has k/4 channels"))}
_HALVES = Variant(divisor=(2, "it splits its channels in two"))

# fmt: off
FAMILIES: dict[str, Family] = {family.name: family for family in (
    Family("RKCNN", about="learned Runge–Kutta steps (the paper)", period="steps.rkcnn:RKCNN",
           variants=_RKCNN, staged=True, norm="bn"),
    Family("ResNet", about="pre-activation residual blocks (He et al. 2016)", period="steps.resnet:ResNet",
           variants=_RESNET, look=Look(ORANGE, "^")),
    Family("RKNN", about="a Runge–Kutta step of f(y)", period="steps.ode:Rknn",
           variants=_RUNGE_KUTTA, look=Look(AMBER, "v")),
    Family("RKNet", about="a Runge–Kutta step of f(t, y)", period="steps.ode:OdeNet",
           title="RK-Net", variants=_RUNGE_KUTTA, look=Look(PINK, "<")),
    Family("ODENet", about="an Adams method on f(t, y) (Chen et al. 2018)", period="steps.ode:OdeNet",
           title="ODE-Net", variants=_ADAMS, look=Look(BLACK, ">")),
    Family("SONODE", about="second-order neural ODE (Norcliffe et al. 2020)", period="steps.sonode:Sonode",
           variants=_SECOND_ORDER, look=Look(OLIVE, "p", 8)),
    Family("ANODE", about="augmented neural ODE (Dupont et al. 2019)", period="steps.anode:Anode", variants=_AUGMENTED),
    Family("DenseNet", about="dense block (Huang et al. 2017)", period="steps.dense:DenseNet",
           variants={"": _NO_STEPS}, staged=True, norm="bn", look=Look(WINE, "P", 9)),
    Family("CliqueNet", about="clique block (Yang et al. 2018)", period="steps.clique:CliqueNet",
           variants={"": _CLIQUE}, staged=True, norm="bn", look=Look(PURPLE, "X", 9)),
    Family("Momentum", about="momentum residual steps (Sander et al. 2021)", period="steps.momentum:Momentum",
           title="Momentum ResNet", variants={"": replace(_TWO_STEPS, options={"v0": "zero"})}, look=Look(BROWN, "h")),
    Family("LM", about="linear multistep network (Lu et al. 2018)", period="steps.lm:LinearMultistep",
           variants={"": _TWO_STEPS}),
    Family("Leapfrog", about="leapfrog network (Chang et al. 2018)", period="steps.leapfrog:Leapfrog",
           variants={"": _TWO_STEPS}),
    Family("Midpoint", about="midpoint network (Chang et al. 2018)", period="steps.midpoint:Midpoint",
           variants={"": _TWO_STEPS}),
    Family("Hamiltonian", about="Hamiltonian network (Chang et al. 2018)", period="steps.hamiltonian:Hamiltonian",
           variants={"": _HALVES}),
    Family("Identity", about="no step at all: the control row", period="steps.identity:Identity",
           variants={"": _NO_STEPS}, look=Look(GREY, "*", 11)),
)}
# fmt: on


def add_variants(method: str) -> None:
    """Give a Runge–Kutta method that was added later to the families that take any: RKNN, RKNet, SONODE and ANODE."""
    _RUNGE_KUTTA[method] = _SECOND_ORDER[method] = _solved_by(method)
    _AUGMENTED[method] = _augment(_solved_by(method))


def options_of(family: Family, variant: str, periods: int) -> dict[str, Value]:
    """Return every option that such a network has beside k and r, with its default, in the order of names."""
    known = {"stem": ("odenet", "conv"), "norm": "paper", **family.variants[variant].options}
    if periods > 1:
        known |= {"attention": True, "multiscale": True}
    defaults = {name: known[name] for name in OPTIONS if name in known}
    return {name: each[periods > 1] if isinstance(each, tuple) else each for name, each in defaults.items()}


def title_of(name: str) -> str:
    """Return what tables and figures call a network's family: RKCNN-I of RKCNN-I-2@k=32, RK-Net of RKNet-rk4@k=8."""
    first, *rest = name.partition("@")[0].split("-")
    if first not in FAMILIES:
        return first
    variant = FAMILIES[first].variants.get("".join(rest[:1]), Variant())
    return variant.title or FAMILIES[first].title or first


LOOKS: dict[str, Look] = choose_looks(
    {
        title_of(f"{family.name}-{name}"): variant.look or family.look
        for family in FAMILIES.values()
        for name, variant in family.variants.items()
    }
)
"""How each family looks in figures, by its title."""


@dataclass(frozen=True)
class Original:
    """A network as its own authors built it: either a class in this folder, or a name of the grammar."""

    name: str
    family: str  # whose title and look it has
    network: str = ""  # file:Class in rkcnn.model
    arguments: Mapping[str, int | bool] = field(default_factory=dict)  # of the class
    same_as: str = ""  # the name of the grammar that says the same


_DENSENET, _CLIQUENET = "published.densenet:DenseNetOriginal", "published.cliquenet:CliqueNetOriginal"

ORIGINALS: dict[str, Original] = {
    original.name: original
    for original in (
        Original("ResNet-1001", "ResNet", "published.resnet:ResNet1001"),
        Original("DenseNet-L100-k24", "DenseNet", _DENSENET, {"depth": 100, "k": 24, "bc": False}),
        Original("DenseNet-BC-L250-k24", "DenseNet", _DENSENET, {"depth": 250, "k": 24, "bc": True}),
        Original("DenseNet-BC-L190-k40", "DenseNet", _DENSENET, {"depth": 190, "k": 40, "bc": True}),
        Original("CliqueNet-k80-T18", "CliqueNet", _CLIQUENET, {"k": 80, "count": 6, "full": False}),
        Original("CliqueNet-k150-T30", "CliqueNet", _CLIQUENET, {"k": 150, "count": 5, "full": True}),
        Original("MomentumResNet-101", "Momentum", "published.momentum:MomentumResNet101"),
        Original("RKNet-64", "RKNet", same_as="RKNet-dopri5@k=64,tol=0.001"),
        Original("ODENet-64", "ODENet", same_as="ODENet-abm@k=64,tol=0.001,adjoint=on"),
        Original("SONODE-64", "SONODE", same_as="SONODE-dopri5@k=64,tol=0.001"),
    )
}


def find_original(name: str) -> Original | None:
    """Return the original of that name, written in any case; None where there is none."""
    return {known.lower(): original for known, original in ORIGINALS.items()}.get(name.strip().lower())
