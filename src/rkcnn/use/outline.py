"""A network as a tree of its parts, each with its output shape, parameters and FLOPs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from rkcnn.model.cost import FewerOperations, meta_image
from rkcnn.model.period import Period

# What a part is called, by the attribute that holds it; a module's own `part_titles` add to them. Others aren't shown.
TITLES = {
    "preprocessor": "preprocessor",
    "stem": "preprocessor",
    "periods": "period",
    "steps": "time-step",
    "step": "block",
    "f": "f",
    "blocks": "block",
    "stages": "stage",
    "transitions": "transition",
    "attention": "attention",
    "readouts": "postprocessor, readout",
    "readout": "postprocessor, readout",
    "classifier": "postprocessor, classifier",
}
FOLD = 4  # so many equal parts in a row are shown as one


@dataclass(frozen=True)
class Component:
    """One part of a network; `count` equal parts in a row are shown as one, with the figures of each."""

    title: str
    shape: tuple[int, ...]
    params: int
    flops: int
    exact: bool = True  # False where the data decide how often f is evaluated; flops are then the least
    parts: tuple[Component, ...] = ()
    count: int = 1


def outline(network: nn.Module, size: int | tuple[int, int] | None = None) -> Component:
    """Return the tree of a network on one image, with its parts in the order in which they run; size as in `cost`."""
    image = meta_image(network, size)
    copied = copy.deepcopy(network).to("meta").eval()
    shapes: dict[nn.Module, tuple[int, ...]] = {}
    order: dict[nn.Module, int] = {}

    def begin(module: nn.Module, args: Any) -> None:
        order.setdefault(module, len(order))

    def finish(module: nn.Module, args: Any, out: Any) -> None:
        shapes[module] = _shape(out)

    for module in copied.modules():
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(finish)
    counter = FlopCounterMode(display=False)
    with counter, FewerOperations():
        copied(image)
    flops = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    root = type(copied).__name__

    def component(title: str, name: str, module: nn.Module, solved: bool = False) -> Component:
        """Return a part; `solved` says that it is a part of a period whose data decide how often it runs."""
        solved = solved or (isinstance(module, Period) and not module.exact)
        children = sorted(_children(name, module), key=lambda child: order.get(child[2], len(order)))
        return Component(
            title,
            shapes.get(module, ()),
            sum(p.numel() for p in module.parameters()),
            flops.get(name, 0),
            not solved and all(each.exact for each in module.modules() if isinstance(each, Period)),
            _fold([component(*child, solved) for child in children]),
        )

    return component(str(network.name), root, copied)


def _children(name: str, module: nn.Module) -> list[tuple[str, str, nn.Module]]:
    """Return (title, full name, module) of each part that has a title."""
    found = []
    for attribute, child in module.named_children():
        title = {**TITLES, **getattr(module, "part_titles", {})}.get(attribute)
        if title is None:
            continue
        if isinstance(child, nn.ModuleList):
            numbered = len(child) > 1 or attribute in ("periods", "steps")
            for i, item in enumerate(child):
                found.append((f"{title} {i + 1}" if numbered else title, f"{name}.{attribute}.{i}", item))
        else:
            found.append((title, f"{name}.{attribute}", child))
    return found


def _fold(parts: list[Component]) -> tuple[Component, ...]:
    folded: list[Component] = []
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
    """Return the shape of the first tensor that a part returns, without the batch."""
    while not isinstance(out, Tensor):
        if not out:
            return ()
        out = out[0]
    return tuple(out.shape[1:])
