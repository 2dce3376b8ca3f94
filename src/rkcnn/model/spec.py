"""A network's name is its whole configuration: reading names, checking them and writing them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rkcnn.error import InputError, did_you_mean
from rkcnn.model.families import FAMILIES, LIMITS, OPTIONS, Family, Variant, find_original, options_of
from rkcnn.solvers.methods import EMBEDDED, IMPLICIT, TABLEAUS

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class ModelSpec:
    """FAMILY[-variant][-s_s_s]@k=k_k_k[,option=...]; parse(str(spec)) == spec.

    A list holds one number for each period; a single number stands for all of them. An option that is
    None takes its default, and stays None where the network has no such option. What can't be built raises InputError.
    """

    family: str
    variant: str = ""
    stages: Numbers = ()
    k: Numbers = ()
    r: Numbers = ()
    stem: str | None = None
    norm: str | None = None
    attention: bool | None = None
    multiscale: bool | None = None
    sweeps: int | None = None
    tol: float | None = None
    y: bool | None = None
    shared: bool | None = None
    merge: str | None = None
    p: int | None = None
    v0: str | None = None
    converge: str | None = None
    adjoint: bool | None = None
    statistics: str | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InputError(_unknown_family(self.family))
        family = FAMILIES[self.family]
        self._check_variant(family)
        if family.variants.get("", Variant()).solver == self.variant:
            self._set("variant", "")  # the solver that is used when none is named
        self._broadcast(family)
        self._fill_options(family)
        self._check_numbers(family)
        if norms_of(self) == norms_of(self, "paper"):
            self._set("norm", "paper")
        if self.statistics == "each" and self._evaluates_once:
            self._set("statistics", "shared")

    @property
    def periods(self) -> int:
        return len(self.k)

    @property
    def solver(self) -> str | None:
        """The numerical method that is applied to f; None in families that have no f."""
        return self._traits.solver

    @property
    def shares_statistics(self) -> bool:
        """Whether several evaluations of f share a batch norm's running statistics.

        Implicit Runge–Kutta methods and adjoint solves don't: they take them once, at the solution.
        """
        if self.solver is None or self._evaluates_once or self.statistics == "each" or norms_of(self)[1] != "bn":
            return False
        return not (self.adjoint or self.solver in IMPLICIT)

    @property
    def _traits(self) -> Variant:
        return FAMILIES[self.family].variants[self.variant]

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_variant(self, family: Family) -> None:
        if self.variant not in family.variants:
            given = f"variant {self.variant!r}" if self.variant else "no variant"
            known = ", ".join(f"-{v}" if v else "none" for v in family.variants)
            near = did_you_mean(self.variant, family.variants)
            raise InputError(f"{family.name}: {given} given; it takes {known}{near}")
        if family.staged != bool(self.stages):
            what = "needs its stages" if family.staged else "has no stages"
            given = "none" if not self.stages else _join(self.stages)
            example = "-".join(filter(None, (family.name, self.variant, "2_2_2" if family.staged else "")))
            raise InputError(f"{family.name} {what}, {given} given; write it as in {example}@k=32")

    def _broadcast(self, family: Family) -> None:
        if not self.k:
            raise InputError(f"{family.name}: no k given; a name ends in its channels, as in {self._head()}@k=32")
        steps = self._traits.steps
        if steps is None and self.r:
            raise InputError(f"{family.name} has no time-steps, r={_join(self.r)} given; leave r out")
        if not self.r and steps is not None:
            self._set("r", (steps,))
        lists = {"the list of stages": self.stages, "k": self.k, "r": self.r}
        periods = max(map(len, lists.values()))
        for name, numbers in lists.items():
            if len(numbers) not in (0, 1, periods):
                raise InputError(
                    f"{self._head()}: {name} has {len(numbers)} numbers ({_join(numbers)}) where another list has "
                    f"{periods}; give 1 or {periods}"
                )
        for name in ("stages", "k", "r"):
            numbers = getattr(self, name)
            if len(numbers) == 1:
                self._set(name, numbers * periods)

    def _fill_options(self, family: Family) -> None:
        known = options_of(family, self.variant, self.periods)
        for name in OPTIONS:
            if name in known:
                if getattr(self, name) is None:
                    self._set(name, known[name])
            elif getattr(self, name) is not None:
                periods = "one period" if self.periods == 1 else f"{self.periods} periods"
                raise InputError(
                    f"{self._head()} with {periods} has no option {name}; "
                    f"it takes {', '.join(('k', *(('r',) if self.r else ()), *known))}"
                )
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if option.kind == "choice" and value is not None and value not in option.choices:
                raise InputError(f"{self._head()}: {name}={value} given; {name} is one of {', '.join(option.choices)}")

    def _check_numbers(self, family: Family) -> None:
        head = self._head()
        for name, limit in LIMITS.items():
            value = getattr(self, name)
            largest = max(value, default=0) if isinstance(value, tuple) else value or 0
            if largest > limit:
                raise InputError(f"{head}: {name} {largest} given; at most {limit} can be built")
        if min(self.k) < 1:
            raise InputError(f"{head}: k={_join(self.k)} given; every period needs at least 1 channel")
        divisor, why = self._traits.divisor
        for k in self.k:
            if k % divisor:
                raise InputError(f"{head}: k={k} given; {why}, so k must be a multiple of {divisor}")
        least, why = self._traits.least_stages
        if self.stages and min(self.stages) < least:
            reason = f"{why}, so {family.name}{'-' * bool(self.variant)}{self.variant} needs" if why else "it needs"
            raise InputError(
                f"{head}: stages {_join(self.stages)} given; {reason} at least {least} stages in every period"
            )
        least, why = self._traits.least_steps
        if self.r and min(self.r) < least:
            reason = f" ({why})" if least > 1 else ""
            raise InputError(f"{head}: r={_join(self.r)} given; it needs r >= {least}{reason}")
        if self.merge == "concat" and max(self.r) > 1:
            raise InputError(
                f"{head}: merge=concat with r={_join(self.r)} given; concatenated stages end a period, r must be 1"
            )
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if option.kind == "count" and value is not None and value < 1:
                raise InputError(f"{head}: {name}={value} given; it must be at least 1")
        if self.statistics == "each":
            self._check_evaluations()
        if self.tol is not None:
            if not 0 < self.tol < float("inf"):
                raise InputError(f"{head}: tol={self.tol} given; a tolerance is a positive number")
            if self.solver in EMBEDDED and max(self.r) > 1:
                raise InputError(
                    f"{head}: r={_join(self.r)} with tol given; with a tolerance the step adapts, leave r out"
                )

    def _check_evaluations(self) -> None:
        """Refuse statistics for each evaluation where there are none, or where their number is not fixed."""
        reason = ""
        if norms_of(self)[1] != "bn":
            reason = "f has group norm, which has no running statistics; write norm=bn"
        elif self.tol is not None:
            reason = "with a tolerance the data decide how often f is evaluated; leave one of the two out"
        elif self.adjoint:
            reason = "with adjoint=on they are taken once, at the solution; leave one of the two out"
        if reason:
            raise InputError(f"{self._head()}: statistics=each given; {reason}")

    @property
    def _evaluates_once(self) -> bool:
        """Whether a solve is one step of a method with one stage, Euler's, so that there is nothing to share."""
        return self.solver in TABLEAUS and max(self.r) * TABLEAUS[self.solver].stages == 1

    def _head(self) -> str:
        return "-".join(filter(None, (self.family, self.variant, _join(self.stages))))

    def __str__(self) -> str:
        k = self.k[:1] if self.stages and len(set(self.k)) == 1 else self.k
        parts = [f"k={_join(k)}"]
        if self.r and set(self.r) != {self._traits.steps}:
            parts.append(f"r={_join(self.r[:1] if len(set(self.r)) == 1 else self.r)}")
        for name, default in options_of(FAMILIES[self.family], self.variant, self.periods).items():
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={_write(value)}")
        return f"{self._head()}@{','.join(parts)}"


def norms_of(spec: ModelSpec, norm: str | None = None) -> tuple[str, str]:
    """Return the norms (bn or gn) of the frame and of the blocks, as the option `norm` says (docs/spec.md, 3.5).

    `paper` is batch norm in networks of several periods; in those of one period it is group norm, with batch norm
    inside RK, dense and clique blocks.
    """
    norm = norm or spec.norm
    if norm in ("bn", "gn"):
        return norm, norm
    return ("bn", "bn") if spec.periods > 1 else ("gn", FAMILIES[spec.family].norm)


def spec_of(name: str) -> ModelSpec | None:
    """Return the configuration of a network, or None for a published original, which is not made of periods."""
    original = find_original(name)
    if original is None:
        return parse(name)
    return parse(original.same_as) if original.same_as else None


def depends_on_data(name: str) -> bool:
    """Whether the data decide how often f is evaluated; FLOPs are then the least that an image can take."""
    try:
        spec = spec_of(name)
    except InputError:  # of a family that this process doesn't know
        return False
    return spec is not None and spec.tol is not None


def parse(name: str) -> ModelSpec:
    """Return the configuration that a name says, in any case: `rkcnn-i-2_2_2@k=120` is `RKCNN-I-2_2_2@k=120`."""
    head, _, tail = name.strip().partition("@")
    if not head:
        raise InputError(f"{name!r} given; a name is needed, as in RKCNN-I-2_2_2@k=120")
    first, *rest = head.split("-")
    families = {family.lower(): family for family in FAMILIES}
    if first.lower() not in families:
        raise InputError(_unknown_family(first))
    family = FAMILIES[families[first.lower()]]
    variants = {variant.lower(): variant for variant in family.variants}
    variant = ""
    stages: Numbers = ()
    for position, part in enumerate(rest):
        if part[:1].isdigit() and position == len(rest) - 1:
            stages = _numbers(f"{family.name}: stages", part)
        elif position == 0:
            variant = variants.get(part.lower(), part)
        else:
            raise InputError(f"{name}: {part!r} can't be read; a name is FAMILY[-variant][-stages]@k=...")
    values: dict[str, Any] = {}
    for item in filter(None, tail.split(",")):
        key, equals, text = (x.strip().lower() for x in item.partition("="))
        if not equals or not text:
            raise InputError(f"{name}: {item!r} can't be read; an option is written name=value")
        if key in values:
            raise InputError(f"{name}: option {key} given twice; give it once")
        values[key] = _read(name, key, text)
    return ModelSpec(family.name, variant, stages, **values)


def _read(name: str, key: str, text: str) -> Any:
    if key in ("k", "r"):
        return _numbers(f"{name}: {key}", text)
    kind = OPTIONS[key].kind if key in OPTIONS else None
    if kind == "switch":
        if text not in ("on", "off"):
            raise InputError(f"{name}: {key}={text} given; {key} is on or off")
        return text == "on"
    if kind == "count":
        if not re.fullmatch(r"[0-9]{1,6}", text):
            raise InputError(f"{name}: {key}={text} given; {key} is a whole number of up to 6 digits")
        return int(text)
    if kind == "tolerance":
        if not re.fullmatch(r"-?[0-9]*[.]?[0-9]+(e[+-]?[0-9]+)?", text):
            raise InputError(f"{name}: {key}={text} given; a tolerance is a number, as in tol=0.001")
        return float(text)
    if kind == "choice":
        return text
    known = ("k", "r", *OPTIONS)
    raise InputError(f"{name}: no option {key}{did_you_mean(key, known)}; options are {', '.join(known)}")


def _write(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _numbers(what: str, text: str) -> Numbers:
    if not re.fullmatch(r"[0-9]{1,6}(_[0-9]{1,6})*", text):
        raise InputError(
            f"{what}: {text!r} given; a list is whole numbers with _ between them, each of up to 6 digits, as in 2_2_2"
        )
    return tuple(map(int, text.split("_")))


def _join(numbers: Numbers) -> str:
    return "_".join(map(str, numbers))


def _unknown_family(word: str) -> str:
    alike = [family for family in FAMILIES if family[0].lower() == word[:1].lower()]
    hint = did_you_mean(word, alike, cutoff=0.6) or did_you_mean(word, FAMILIES, cutoff=0.75)  # NoNet is not ODENet
    return f"no family {word!r}{hint}; families are {', '.join(FAMILIES)}"
