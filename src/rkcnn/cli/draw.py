"""rkcnn draw: one time-step as a picture."""

from __future__ import annotations

import os
from contextlib import suppress
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
    from rkcnn.model.diagram import score
    from rkcnn.model.diagram_svg import draw as draw_score
    from rkcnn.model.spec import parse
    from rkcnn.record.tables import list_models

    if not out.name.lower().endswith(".svg"):
        raise InputError(f"can't draw to {out}; the picture is an SVG, so give a file that ends in .svg")
    known = {known.lower(): FIXED.get(known) for known in list_models() if "@" not in known}
    full = known.get(name.strip().lower(), name)
    if full is None:
        raise InputError(
            f"can't draw {name}: it stands outside the one frame, where {', '.join(FIXED)} "
            "and all names with channels stand, as in RKCNN-I-3@k=32"
        )
    spec = parse(full)
    picture = draw_score(score(spec))
    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        part.write_text(picture, encoding="utf-8")
        part.replace(out)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InputError(f"can't write {out}: {error.strerror}; give a folder that exists and can be written") from None
    print(f"{out}: one time-step of {spec}")
