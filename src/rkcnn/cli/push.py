"""rkcnn push: uploads a trained network to Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_error, print_line


def push(
    run: Path,
    name: str,
    /,
    *,
    dry_run: Path | None = None,
    private: Annotated[bool, Parameter(negative=())] = False,
    licence: Annotated[str, Parameter(name=["--licence", "--license"])] = "mit",
) -> int:
    """Upload a trained network to Hugging Face: its weights, its record, and a model card written from the record.

    Returns the exit code: 1 if the record of another seed can't be read, which is named and missing from the card.

    Parameters
    ----------
    run
        A run's folder, or a name of `rkcnn models --pretrained`.
    name
        The repository, as in OWNER/NAME; it is made if it doesn't exist.
    dry_run
        Write what would be uploaded to this folder, and upload nothing.
    private
        Only you can see the repository, if this makes it.
    licence
        The licence of the weights, as Hugging Face writes it.
    """
    from rkcnn.use import hub

    if dry_run is not None:
        model = hub.save_run(run, dry_run, name, licence)
        files = ", ".join(sorted(path.name for path in dry_run.iterdir()))
        print_line(f"{dry_run}: what would be pushed of {model.name} to {name}: {files}")
    else:
        print_line(f"pushed to {hub.push(run, name, private=private, licence=licence)}")
    damaged = hub.find_damaged_seeds(run)
    for error in damaged:
        print_error(str(error))
    return 1 if damaged else 0
