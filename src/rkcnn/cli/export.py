"""rkcnn export: writes a trained network as a file for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_line


def export(
    run: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    to: str | None = None,
    json_: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Write a trained network as a file for other programs, and check it against the network on 256 real images.

    Parameters
    ----------
    run
        A run's folder, a weights.safetensors, or a name of `rkcnn models --pretrained`.
    output
        The file to write.
    to
        onnx, pt2 (torch.export) or safetensors (weights alone); by default what the suffix of the file says.
    json_
        Print what was compared as JSON.
    """
    from rkcnn.use.export import export as write
    from rkcnn.use.load import load

    classifier = load(run)
    done = write(classifier, to, output=output)
    if json_:
        print(json.dumps({**asdict(done), "path": str(done.path)}, indent=1))
        return
    shape = ", ".join(map(str, (classifier.channels, *classifier.size)))
    print_line(f"network   {classifier.name}")
    if done.to == "safetensors":
        print_line("content   weights alone, with their description; rkcnn.load reads them")
    else:
        print_line(f"takes     images, uint8 (batch, {shape}); normalised inside")
        print_line(f"returns   probabilities, float32 (batch, {len(classifier.classes)})")
    compared = f"{done.images} images of {done.checked_on}"
    print_line(f"checked   on {compared}: probabilities differ from the network's by {done.difference:.1e} at most")
    print_line(f"wrote     {done.path}, {done.path.stat().st_size / 1e6:.2f} MB")
