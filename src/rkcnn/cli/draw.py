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
    from rkcnn.use.draw import draw as draw_step

    drawing = draw_step(name)
    drawing.save(output)
    print_line(f"{output}: one time-step of {drawing.network}")
