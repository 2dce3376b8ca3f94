"""rkcnn draw: draws one time-step of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_line


def draw(name: str, /, *, output: Annotated[Path, Parameter(name=["--output", "-o"])]) -> None:
    """Draw one time-step of a network, its stages and what each of them reads, as an SVG file.

    Parameters
    ----------
    name
        A network, as in RKCNN-I-3@k=32.
    output
        The file to write, as in step.svg.
    """
    from rkcnn.disk import write_atomically
    from rkcnn.error import InputError
    from rkcnn.model.limits import check_evaluations
    from rkcnn.model.period import step_diagram
    from rkcnn.model.published.originals import ORIGINALS, find_original
    from rkcnn.model.spec import parse
    from rkcnn.use.diagram_svg import to_svg

    if not output.name.lower().endswith(".svg"):
        raise InputError(f"can't draw to {output}; the picture is an SVG, so give a file that ends in .svg")
    if not output.parent.is_dir():
        raise InputError(f"can't draw to {output}: there is no folder {output.parent}; name one that exists")
    original = find_original(name)
    if original is not None and not original.same_as:
        drawn = ", ".join(known.name for known in ORIGINALS.values() if known.same_as)
        raise InputError(
            f"can't draw {name}: it is not made of periods and time-steps, as {drawn} and all names with @ are, "
            "for example RKCNN-I-3@k=32"
        )
    spec = parse(original.same_as if original else name)
    check_evaluations(spec)
    picture = to_svg(step_diagram(spec))
    write_atomically(output, picture.encode(), "name another file")
    print_line(f"{output}: one time-step of {spec}")
