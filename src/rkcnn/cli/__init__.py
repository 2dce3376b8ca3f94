"""The command line: one file a verb, and nothing heavy imported before it is needed."""

from __future__ import annotations

import os
import sys

try:
    from cyclopts import App, CycloptsError

    from rkcnn import __version__
    from rkcnn.error import InputError, with_flags
except KeyboardInterrupt:  # before there is a main to catch it
    sys.exit(130)

PIPE = 141  # what a shell reports of a program that SIGPIPE ended

app = App(
    name="rkcnn",
    help="Runge–Kutta convolutional networks: train them, see what they cost and what they get wrong.",
    version=__version__,
)
app.command("rkcnn.cli.train:train", help="Train a network; with no more words, digits in about two minutes.")
app.command("rkcnn.cli.evaluate:evaluate", help="What a trained network gets wrong, and how sure it is.")
app.command("rkcnn.cli.runs:runs", help="Every run below a folder, with its result.")
app.command("rkcnn.cli.reproduce:reproduce", help="Train a whole table of the paper.")
app.command("rkcnn.cli.report:report", help="Tables of results beside the paper's, with what they allow one to say.")
app.command("rkcnn.cli.memory:memory", help="GPU memory of each network of a table, beside the paper's.")
app.command("rkcnn.cli.models:models", help="Every network of the paper with its cost.")
app.command("rkcnn.cli.describe:describe", help="One network as a tree of its parts, with shapes and costs.")
app.command("rkcnn.cli.draw:draw", help="One time-step of a network as an SVG picture.")
app.command("rkcnn.cli.data:app", name="data", help="Data sets: list them, fetch one, look at one.")


def main(arguments: list[str] | None = None) -> None:
    """Run one command; bad input is one sentence on standard error and exit code 2, Ctrl-C exit code 130,
    a closed pipe 141 without a word.
    """
    try:
        try:
            app(arguments, exit_on_error=False, print_error=False)
        finally:
            if sys.stdout is not None:  # None where the shell closed it: `>&-`
                sys.stdout.flush()  # here, where a pipe that was closed can be caught
    except BrokenPipeError:  # the reader, say `head`, has all it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more as it ends
        sys.exit(PIPE)
    except (InputError, CycloptsError) as error:
        if os.environ.get("LOCAL_RANK", "0") == "0":  # torchrun's other ranks on this machine would say the same
            print(f"rkcnn: {' '.join(with_flags(str(error)).split())}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich's consoles catch it themselves and exit with 1
            sys.exit(PIPE)
        raise
    except KeyboardInterrupt:
        sys.exit(130)
