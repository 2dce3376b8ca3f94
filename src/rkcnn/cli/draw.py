"""rkcnn draw: one time-step as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def draw(name: str, /, *, out: Annotated[Path, Parameter(name=["--out", "-o"])]) -> None:
    """Draw one time-step of a network, its stages and what each of them reads, as an SVG file.

    Parameters
    ----------
    name
        A network, as in RKCNN-I-3@k=32.
    out
        The file to write, as in step.svg.
    """
    from rkcnn.error import InputError
    from rkcnn.model.catalogue import FIXED
    from rkcnn.model.drawing import draw as draw_score
    from rkcnn.model.score import score
    from rkcnn.model.spec import parse

    if out.suffix.lower() != ".svg":
        raise InputError(f"can't draw to {out}; the picture is an SVG, so give a file that ends in .svg")
    fixed = {known.lower(): full for known, full in FIXED.items()}
    if "@" not in name and name.lower() not in fixed:
        raise InputError(
            f"can't draw {name}: that takes a network of the one frame with its channels, as in RKCNN-I-3@k=32, "
            f"or one of {', '.join(FIXED)}"
        )
    spec = parse(fixed.get(name.lower(), name))
    picture = draw_score(score(spec))
    try:
        out.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise InputError(f"can't write {out}: {error.strerror}; give a folder that exists and can be written") from None
    print(f"{out}: one time-step of {spec}")
