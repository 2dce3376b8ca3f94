"""A network as a tree that a person can read: parts with output shape, parameters and FLOPs."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from rkcnn.model.cost import ghost_image

# Attribute -> what a reader calls it; parts under other names are not shown.
TITLES = {
    "preprocessor": "preprocessor",
    "stem": "preprocessor",
    "periods": "period",
    "steps": "time-step",
    "step": "block",
    "guess": "Phase I, stage",
    "refine": "Phase II, stage",
    "both": "both phases, stage",
    "entry": "residual block",
    "projection": "its shortcut",
    "first": "half-step of z",
    "second": "half-step of y",
    "f": "f",
    "velocity": "initial velocity",
    "blocks": "block",
    "stages": "stage",
    "transitions": "transition",
    "attention": "attention",
    "readouts": "postprocessor, readout",
    "readout": "postprocessor, readout",
    "classifier": "postprocessor, classifier",
}
FOLD = 4  # this many equal neighbours are shown as one


@dataclass(frozen=True)
class Part:
    """One part; `count` neighbours of equal cost are folded into it, each of them as shown."""

    title: str
    shape: tuple[int, ...]
    params: int
    flops: int
    parts: tuple[Part, ...] = ()
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def outline(network: nn.Module, size: int | tuple[int, int]) -> Part:
    """The tree of a network on one image of that size, in the order in which its parts run."""
    ghost = copy.deepcopy(network).to("meta").eval()
    shapes: dict[nn.Module, tuple[int, ...]] = {}
    order: dict[nn.Module, int] = {}

    def begin(module: nn.Module, args: Any) -> None:
        order.setdefault(module, len(order))

    def finish(module: nn.Module, args: Any, out: Any) -> None:
        shapes[module] = _shape(out)

    for module in ghost.modules():
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(finish)
    counter = FlopCounterMode(display=False)
    with counter:
        ghost(ghost_image(ghost, size))
    flops = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    root = type(ghost).__name__

    def part(title: str, name: str, module: nn.Module) -> Part:
        children = sorted(_children(name, module), key=lambda child: order.get(child[2], len(order)))
        return Part(
            title,
            shapes.get(module, ()),
            sum(p.numel() for p in module.parameters()),
            flops.get(name, 0),
            _fold([part(*child) for child in children]),
        )

    return part(str(network.name), root, ghost)


def _children(name: str, module: nn.Module) -> list[tuple[str, str, nn.Module]]:
    """(title, full name, module) of the parts worth showing."""
    found = []
    for attribute, child in module.named_children():
        title = TITLES.get(attribute)
        if title is None:
            continue
        if isinstance(child, nn.ModuleList):
            numbered = len(child) > 1 or attribute in ("periods", "steps")
            for i, item in enumerate(child):
                found.append((f"{title} {i + 1}" if numbered else title, f"{name}.{attribute}.{i}", item))
        else:
            found.append((title, f"{name}.{attribute}", child))
    return found


def _fold(parts: list[Part]) -> tuple[Part, ...]:
    folded: list[Part] = []
    for part in parts:
        same = folded and all(
            getattr(folded[-1], field) == getattr(part, field) for field in ("shape", "params", "flops", "parts")
        )
        if same:
            folded[-1] = replace(folded[-1], count=folded[-1].count + 1)
        else:
            folded.append(part)
    if any(part.count >= FOLD for part in folded):
        return tuple(folded)
    return tuple(parts)


def _shape(out: Any) -> tuple[int, ...]:
    """Of the first tensor in whatever a part returns, without the batch."""
    while not isinstance(out, Tensor):
        if not out:
            return ()
        out = out[0]
    return tuple(out.shape[1:])
