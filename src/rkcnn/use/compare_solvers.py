"""One trained network, its f solved by several methods: is it an ODE that was learned, or one discretisation?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rkcnn.data.images import Images
from rkcnn.error import InputError, did_you_mean
from rkcnn.evaluation.metrics import Metrics, measure
from rkcnn.model.other_solver import CountedSolver, SolverChoice, describe_solver, find_ode_periods, solve_by
from rkcnn.solvers.methods import SOLVERS
from rkcnn.use.evaluate import fuse, make_predictor
from rkcnn.use.load import Classifier

_NAMES = ("method", "steps", "tol")


@dataclass(frozen=True)
class SolvedBy:
    """How good a network is if its f is solved by one method."""

    solver: str  # of each period, in words
    metrics: Metrics
    changed: float  # share of the images that are answered differently than by the solver of the training
    evaluations: float  # of f for an image, mean
    unconverged: float  # share of the solves


def read_choice(text: str) -> SolverChoice:
    """Return the choice that "method=dopri5,tol=1e-3" or "method=euler,steps=8" says."""
    values: dict[str, str] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if name not in _NAMES or not equals or not value or name in values:
            hint = f" (did you mean method={name}?)" if item.strip() in SOLVERS else did_you_mean(name, _NAMES)
            raise InputError(
                f"{item.strip()!r} given{hint}; give a method with its steps or tolerance, as in "
                "`with=method=dopri5,tol=1e-3` or `with=method=euler,steps=8`"
            )
        values[name] = value
    steps, tol = values.get("steps"), values.get("tol")
    if steps is not None and not re.fullmatch("[0-9]{1,6}", steps):
        raise InputError(f"steps={steps} given; give a whole number")
    try:
        return SolverChoice(values.get("method"), int(steps) if steps else None, float(tol) if tol else None)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"tol={tol} given; a tolerance is a number, as in tol=1e-3") from None


def compare_solvers(
    classifier: Classifier, images: Images, choices: Sequence[SolverChoice], device: str = "auto"
) -> list[SolvedBy]:
    """Measure a network as it was trained, then with its f solved by each of the choices."""
    networks = [solve_by(classifier.network, choice) for choice in (SolverChoice(), *choices)]
    predictor = make_predictor(classifier, images, device)
    found: list[SolvedBy] = []
    first = None
    for each in networks:
        network = fuse(replace(classifier, network=each), len(images), predictor.device)
        logits = predictor.logits(network)
        answers = logits.argmax(1)
        first = answers if first is None else first
        solvers = [period.solver for period in find_ode_periods(network)]
        counts = [solver.counts for solver in solvers if isinstance(solver, CountedSolver)]
        found.append(
            SolvedBy(
                "; ".join(dict.fromkeys(map(describe_solver, solvers))),
                measure(logits, images.labels, len(images.classes)),
                float((answers != first).double().mean()),
                sum(each.evaluations / each.images for each in counts),
                sum(each.unconverged for each in counts) / sum(each.images for each in counts),
            )
        )
    return found
