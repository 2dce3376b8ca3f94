"""rkcnn --install-completion: lets a shell complete commands and options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from rkcnn.cli.output import print_line

REMEDY = "name another file with -o"


def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Let your shell complete the commands and options of rkcnn when the tab key is pressed.

    It writes a script for the shell and, unless you name the file, adds the line that loads it to the shell's startup
    file.

    Parameters
    ----------
    shell
        The shell; by default the one that runs this command.
    output
        The file for the script; by default the place where the shell looks for it.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    from rkcnn.cli import app
    from rkcnn.disk import write_output, writing_to
    from rkcnn.error import InputError

    try:
        chosen = shell or detect_shell()
    except ShellDetectionError:
        raise InputError("can't tell which shell this is; name it, as in `shell=bash`") from None
    if output is not None:
        with writing_to(output, REMEDY):
            output.parent.mkdir(parents=True, exist_ok=True)
        write_output(output, app.generate_completion(shell=chosen).encode(), REMEDY)
        print_line(f"wrote {output}; open a new shell that loads it, as by `source {output}`")
        return
    with writing_to(Path.home(), REMEDY):
        path = app.install_completion(shell=chosen)
    print_line(f"wrote {path}; open a new shell")
