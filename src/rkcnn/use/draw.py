"""`rkcnn.draw`: the picture of one time-step of a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.model.families import ORIGINALS, find_original
from rkcnn.model.limits import check_evaluations
from rkcnn.model.period import step_diagram
from rkcnn.model.spec import parse
from rkcnn.use.diagram_svg import to_svg


@dataclass(frozen=True)
class Drawing:
    """An SVG picture, which a notebook shows."""

    network: str  # the full name of what is drawn
    svg: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file that ends in .svg."""
        path = Path(path)
        if not path.name.lower().endswith(".svg"):
            raise InputError(f"can't draw to {path}; the picture is an SVG, so give a file that ends in .svg")
        if not path.parent.is_dir():
            raise InputError(f"can't draw to {path}: there is no folder {path.parent}; name one that exists")
        write_atomically(path, self.svg.encode(), "name another file")

    def _repr_svg_(self) -> str:
        return self.svg


def draw(name: str) -> Drawing:
    """Return one time-step of a network as a picture: its stages, and what each of them reads.

    Time runs to the right, a line is a state, and a dot says that the stage above reads it. Raises InputError for
    published originals, most of which are not made of time-steps.
    """
    original = find_original(name)
    if original is not None and not original.same_as:
        drawn = ", ".join(known.name for known in ORIGINALS.values() if known.same_as)
        raise InputError(
            f"can't draw {name}: it is not made of periods and time-steps, as {drawn} and all names with @ are, "
            "for example RKCNN-I-3@k=32"
        )
    spec = parse(original.same_as if original else name)
    check_evaluations(spec)
    return Drawing(str(spec), to_svg(step_diagram(spec)))
