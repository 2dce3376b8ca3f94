"""What `rkcnn bench` is asked to measure, checked before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rkcnn.error import InputError, did_you_mean
from rkcnn.record.bench import KINDS

PRECISIONS = ("fp32", "tf32", "bf16")
ENGINES = {  # by kind
    "train": ("eager", "compile", "graph-uncompiled", "graph", "fused"),
    "infer": ("eager", "compile", "graph", "fused", "fused-eager"),
    "memory": ("eager", "compile", "graph", "fused"),
    "solve": ("eager", "compile", "graph"),
}
NETWORKS = {
    **dict.fromkeys(("train", "infer", "memory"), ("RKCNN-R-2@k=32",)),
    "solve": ("RKNet-rk4_38@k=32", "ODENet-ab@k=32"),
}
INFER_BATCHES = (1, 8, 32, 128, 512)
CHECKOUTS = {"authors": "ZhuMai/RKCNN", "cliquenet": "iboing/CliqueNet"}
PACKAGES = ("torchdiffeq", "torchvision", "timm")
PEERS = (*CHECKOUTS, *PACKAGES, "naive")
MOST_IMAGES, MOST_ROUNDS, MOST_STEPS, MOST_AT_ONCE = 1 << 16, 1000, 10_000, 64


class CannotRun(Exception):
    """A contender can't run here, or a peer has no such network; the message is the reason."""


@dataclass(frozen=True)
class PeerChoice:
    """A peer by its name, with the folder of its checkout if it is one that is not installed."""

    name: str
    path: Path | None = None

    def __str__(self) -> str:
        return self.name if self.path is None else f"{self.name}={self.path}"


@dataclass(frozen=True)
class Plan:
    """The contenders of one bench: every network with every batch, precision, engine and number of runs at once.

    Empty batches and engines, and `steps` or `rounds` of 0, stand for what suits the network and the device.
    """

    kind: str
    networks: tuple[str, ...]
    batches: tuple[int, ...] = ()
    precisions: tuple[str, ...] = ("fp32",)
    engines: tuple[str, ...] = ()
    at_once: tuple[int, ...] = (1,)
    rounds: int = 0
    steps: int = 0
    device: str = "auto"
    peers: tuple[PeerChoice, ...] | None = None  # None: those that are installed, or the naive writing


def make_plan(
    kind: str,
    networks: Sequence[str] = (),
    *,
    batch: str | None = None,
    precision: str = "fp32",
    engine: str | None = None,
    at_once: str = "1",
    rounds: int | None = None,
    steps: int | None = None,
    device: str = "auto",
    peers: Sequence[str] | None = None,
) -> Plan:
    """Return the plan that the options of `rkcnn bench` ask for; lists have commas between their entries.

    Raises InputError for a kind, number, precision, engine or peer that can't be.
    """
    if kind not in KINDS:
        raise InputError(f"no bench {kind!r}{did_you_mean(kind, KINDS)}; rkcnn bench measures {', '.join(KINDS)}")
    if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"`rounds={rounds}` given; it is a whole number from 1 to {MOST_ROUNDS}")
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise InputError(f"`steps={steps}` given; it is a whole number from 1 to {MOST_STEPS}")
    return Plan(
        kind,
        tuple(dict.fromkeys(networks)) or NETWORKS[kind],
        _read_numbers("batch", batch, MOST_IMAGES) if batch is not None else (),
        _read_words("precision", precision, PRECISIONS),
        _read_words("engine", engine, ENGINES[kind]) if engine is not None else (),
        _read_numbers("at_once", at_once, MOST_AT_ONCE),
        rounds or 0,
        steps or 0,
        device,
        None if peers is None else _read_peers(peers),
    )


def _read_numbers(option: str, text: str, most: int) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 1 <= int(word[:20]) <= most for word in words):
        raise InputError(f"`{option}={text}` given; it is a whole number from 1 to {most}, or several: 1,8,32")
    return tuple(dict.fromkeys(map(int, words)))


def _read_words(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in known:
            raise InputError(
                f"`{option}={text}` given; it is one of {', '.join(known)}, or several with commas between them"
                f"{did_you_mean(word, known)}"
            )
    return tuple(dict.fromkeys(words))


def _read_peers(texts: Sequence[str]) -> tuple[PeerChoice, ...]:
    """Return the peers that are named as NAME or NAME=PATH; none for the single word none."""
    if list(texts) == ["none"]:
        return ()
    found = []
    for text in texts:
        name, equals, path = text.partition("=")
        if name not in PEERS:
            raise InputError(
                f"`peer={text}` given{did_you_mean(name, PEERS)}; peers are authors=PATH, cliquenet=PATH, "
                f"{', '.join(PEERS[2:])}, or none alone"
            )
        if (name in CHECKOUTS) != bool(path) or (equals and not path):
            wanted = f"{name}=PATH, a checkout of {CHECKOUTS[name]}" if name in CHECKOUTS else f"{name} without a path"
            raise InputError(f"`peer={text}` given; it is {wanted}")
        found.append(PeerChoice(name, Path(path) if path else None))
    return tuple(found)
