"""The record of one `rkcnn bench`: every measurement with its raw rounds. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.json_file import LONG, Kinds, check_fields, parse_record

SCHEMA = 1  # the version of the file's shape; a file of another version is not read
KINDS = ("train", "infer", "memory", "solve")
MOST = 1e18  # of any number in a record; a larger one can't be right

_MEASUREMENT: Kinds = {
    **dict.fromkeys(("work", "network", "code", "engine", "precision"), str),
    **dict.fromkeys(("batch", "at_once"), int),
    **dict.fromkeys(("seconds", "memory_bytes", "idle_bytes"), list),
    **dict.fromkeys(("flops", "kernels", "peak_bytes", "difference"), (int, float, type(None))),
}
_RECORD: Kinds = {
    **dict.fromkeys(("kind", "date", "source", "note"), str),
    **dict.fromkeys(("rounds", "steps", "hash_version", "product_size"), int),
    **dict.fromkeys(("machine", "versions", "products"), dict),
    **dict.fromkeys(("measurements", "left_out"), list),
    "commit": (str, type(None)),
    "complete": bool,
}


@dataclass
class Measurement:
    """One contender: a network on one batch size, by one code, engine and precision, and what was measured of it."""

    work: str  # training step, forward pass or solve
    network: str
    batch: int  # images
    code: str  # rkcnn, or the peer's name
    engine: str
    precision: str  # fp32, tf32 or bf16
    at_once: int = 1  # runs side by side
    flops: float | None = None  # of one step of one run
    difference: float | None = None  # of a peer: its largest difference from our outputs, relative to the largest one
    peak_bytes: int | None = None  # the most memory that it added to the GPU
    kernels: float | None = None  # that one step of one run launches on the GPU
    seconds: list[float] = field(default_factory=list)  # a step of one run, in each round
    memory_bytes: list[int] = field(default_factory=list)  # `rkcnn bench memory`: the most memory of a fresh process
    idle_bytes: list[int] = field(default_factory=list)  # and of that process before it built the network

    @property
    def group(self) -> tuple[str, str, int]:
        """What has to be equal for two measurements to be compared."""
        return self.work, self.network, self.batch

    @property
    def label(self) -> str:
        """The code, the engine and the number of runs side by side, as tables name a contender."""
        runs = f", {self.at_once} at once" * (self.at_once > 1)
        return f"{self.code} {self.engine}{runs}"

    @property
    def values(self) -> Sequence[float]:
        """The raw rounds: seconds, or bytes where memory was measured."""
        return self.seconds or self.memory_bytes

    @property
    def images_per_second(self) -> float | None:
        return self.batch / median(self.seconds) if self.seconds else None

    @property
    def flops_per_second(self) -> float | None:
        return self.flops / median(self.seconds) if self.seconds and self.flops else None


@dataclass
class Bench:
    """All measurements of one run of `rkcnn bench`, and where and by which code they were made."""

    kind: str  # train, infer, memory or solve
    rounds: int  # that were asked for
    steps: int  # in each turn of a contender
    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str | None
    source: str  # the hash of the code that trains
    hash_version: int  # that the hash was made by
    date: str  # when it began, in UTC
    note: str = ""  # the user's own words
    complete: bool = False  # False where it was interrupted
    product_size: int = 0  # n of the product of two n x n matrices
    products: dict[str, list[float]] = field(default_factory=dict)  # precision -> FLOP/s in each round
    measurements: list[Measurement] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # contenders that could not run, with the reason

    def share_of_product(self, measurement: Measurement) -> float | None:
        """Return the FLOP/s of a measurement as a share of the matrix product's in the same precision."""
        reached, product = measurement.flops_per_second, self.products.get(measurement.precision)
        return reached / median(product) if reached and product else None

    def first_of(self, measurement: Measurement) -> Measurement:
        """Return the first measurement of the same group, which the others are compared with."""
        return next(each for each in self.measurements if each.group == measurement.group)

    def to_json(self) -> bytes:
        return (json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n").encode()


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile, by linear interpolation."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def compare_rounds(first: Measurement, other: Measurement) -> float:
    """Return first / other, the median over rounds: both had their turn in each, so a slow round slows both."""
    pairs = zip(first.values, other.values, strict=False)  # an interrupted round has only some of the turns
    return median(one / two for one, two in pairs)


def read_bench(path: Path) -> Bench:
    """Read and check a record; raises InputError unless it holds everything that readers rely on."""
    content = read_file(path, LONG)
    try:
        facts = parse_record(content, "record", SCHEMA)
        check_fields("record", facts, _RECORD, known=set(_RECORD))
        check_fields("versions", facts["versions"], dict.fromkeys(facts["versions"], str))
        for each in facts["measurements"]:
            check_fields("measurement", each, _MEASUREMENT, known=set(_MEASUREMENT))
        measurements = [Measurement(**each) for each in facts.pop("measurements")]
        record = Bench(**facts, measurements=measurements)
        _check_values(record)
        return record
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path} can't be read as a record of rkcnn bench: {error}; remove it and measure again"
        ) from None


def _check_values(record: Bench) -> None:
    """Raise ValueError unless the numbers are possible ones."""
    if record.kind not in KINDS:
        raise ValueError(f"its kind is {record.kind!r}, and kinds are {', '.join(KINDS)}")
    if not all(isinstance(line, str) for line in record.left_out):
        raise ValueError("what was left out must be text")
    for product in record.products.values():
        _check_numbers("products", product)
    for each in record.measurements:
        if not (each.memory_bytes if record.kind == "memory" else each.seconds):
            raise ValueError(f"{each.label} has no rounds")
        if len(each.idle_bytes) != len(each.memory_bytes):
            raise ValueError(f"{each.label} has {len(each.idle_bytes)} idle_bytes for {len(each.memory_bytes)} rounds")
        for name in ("seconds", "memory_bytes"):
            _check_numbers(name, getattr(each, name), empty=True)
        _check_numbers("idle_bytes", each.idle_bytes, empty=True, least=0)
        if not (each.batch >= 1 and each.at_once >= 1):
            raise ValueError("a batch and a number of runs at once are 1 or more")


def _check_numbers(name: str, values: Any, *, empty: bool = False, least: float = 1e-12) -> None:
    """Raise ValueError unless `values` is a list of possible numbers, which may be empty if `empty` is set."""
    if not isinstance(values, list) or not (values or empty):
        raise ValueError(f"its {name} must be a list of numbers")
    for value in values:
        if type(value) not in (int, float) or not (isfinite(value) and least <= value <= MOST):
            raise ValueError(f"its {name} must be numbers above 0")
