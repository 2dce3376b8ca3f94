"""The command line: one file for each command, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from errno import EDQUOT, ENAMETOOLONG, ENOSPC

from cyclopts import App, CycloptsError, Group, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from rkcnn import __version__
from rkcnn.cli.output import discard, end_output, prepare_output, print_error
from rkcnn.error import InputError, is_out_of_memory, shorten
from rkcnn.interrupt import EXIT_CODE

NAMES = ("describe", "draw", "predict")  # commands whose arguments are names of networks or pictures
CLOSED_PIPE = 141  # the exit code that a shell reports for a program that SIGPIPE ended

app = App(
    name="rkcnn",
    help="Runge–Kutta convolutional networks: train them, see what they cost and what they get wrong.",
    help_format="plaintext",  # Markdown would take 0.1 s more
    version=__version__,
)
_OPTIONS = app["--help"].group = app["--version"].group = Group("Options", sort_key=9)
app.command(
    "rkcnn.cli.completion:install_completion",
    name="--install-completion",
    group=_OPTIONS,
    help="Let your shell complete commands and options.\n\n"
    "Writes a script for bash, zsh, fish or PowerShell, and the line that loads it to the shell's startup file.",
)

# The first line of each text is what `rkcnn --help` shows.
_USE = Group("Train and evaluate", sort_key=1)
app.command(
    "rkcnn.cli.train:train",
    group=_USE,
    sort_key=1,
    help="Train a network. Without arguments: MNIST digits, about two minutes.\n\n"
    "Shows how well the network does on the test images. A run that was interrupted continues when the same command is "
    "given again.",
)
app.command(
    "rkcnn.cli.evaluate:evaluate",
    group=_USE,
    sort_key=2,
    help="Evaluate a trained network: its error, what it confuses, how sure it is.\n\n"
    "Classifies every image of the test set and writes a confusion matrix and a sheet of the worst mistakes.",
)
app.command(
    "rkcnn.cli.predict:predict",
    group=_USE,
    sort_key=3,
    help="Ask a trained network about pictures.\n\n"
    "Prints the most probable classes of each picture. Pictures may have any size; they are prepared as those of the "
    "training were. If some can't be read, they are named, the others are answered, and the exit code is 1.",
)
app.command(
    "rkcnn.cli.export:export",
    group=_USE,
    sort_key=4,
    help="Write a trained network as a file for other programs: ONNX, torch's pt2, safetensors.\n\n"
    "The file takes uint8 images and returns probabilities; it is checked on real images against the network.",
)
app.command(
    "rkcnn.cli.runs:runs",
    group=_USE,
    sort_key=6,
    help="List the runs below a folder with their results.\n\nAlso those that are not finished.",
)
app.command(
    "rkcnn.cli.compare:compare",
    group=_USE,
    sort_key=5,
    help="Compare runs of any networks: errors with intervals, tests, figures.\n\n"
    "The runs must be on the same data by the same recipe. Seeds of one network are grouped.",
)
app.command(
    "rkcnn.cli.log:log",
    group=_USE,
    sort_key=7,
    help="Send the numbers of runs to TensorBoard, Weights & Biases or MLflow.\n\n"
    "They are read from the records, so that any finished run can be sent at any time.",
)
app.command(
    "rkcnn.cli.push:push",
    group=_USE,
    sort_key=8,
    help="Upload a trained network to Hugging Face.\n\n"
    "With a model card that is written from its record. --dry-run DIR writes what would be uploaded.",
)
app.command("rkcnn.cli.data:app", name="data", group=_USE, sort_key=9, help="List, fetch and look at data sets.")

_NETWORKS = Group("Networks", sort_key=2)
app.command(
    "rkcnn.cli.models:models",
    group=_NETWORKS,
    sort_key=1,
    help="List every network of the paper with its cost.\n\nWith --pretrained, the trained networks of the package.",
)
app.command(
    "rkcnn.cli.describe:describe",
    group=_NETWORKS,
    sort_key=2,
    help="Print a network as a tree of its parts, with shapes and costs.",
)
app.command(
    "rkcnn.cli.draw:draw", group=_NETWORKS, sort_key=3, help="Draw one time-step of a network as an SVG picture."
)

app.command(
    "rkcnn.cli.bench:bench",
    group=_NETWORKS,
    sort_key=4,
    help="Measure how fast networks train and answer, and their memory, beside other code.\n\n"
    "Every contender takes its turn in each round, so that a noisy machine slows all alike. Other code gets the same "
    "weights, and its outputs are compared with ours before anything is timed. Ctrl-C keeps what has been measured.",
)

_TABLES = Group("The paper's tables", sort_key=3)
app.command(
    "rkcnn.cli.reproduce:reproduce",
    group=_TABLES,
    sort_key=1,
    help="Train all networks of a table of the paper.\n\n"
    "A table that was interrupted continues when the same command is given again; finished runs are not repeated.",
)
app.command(
    "rkcnn.cli.report:report",
    group=_TABLES,
    sort_key=2,
    help="Compare results with the paper's: tables, statistics, figures.",
)
app.command(
    "rkcnn.cli.memory:memory",
    group=_TABLES,
    sort_key=3,
    help="Measure the GPU memory of each network of a table.\n\n"
    "It is the memory of a new process that runs the network on one image, beside that of Identity, the same network "
    "without steps. After an interruption the same command continues, and skips what this version of the code has "
    "measured on this kind of GPU.",
)


def check_arguments(arguments: list[str]) -> None:
    """Raise InputError for an empty argument, which as a path would mean the current folder.

    Commands of NAMES say themselves which names they take, and a remark may be empty.
    """
    for before, argument in zip(["rkcnn", *arguments], arguments, strict=False):
        may_be_empty = before == "--note" or (arguments[0] in NAMES and not before.startswith("-"))
        if argument == "" and not may_be_empty:
            raise InputError(f"an empty argument given after {shorten(before)}; give a value, or leave it out")
        if argument.startswith("--") and argument.endswith("=") and argument.count("=") == 1:
            raise InputError(f"{shorten(argument)} given without a value; give one, or leave it out")


def describe_error(error: InputError | CycloptsError) -> str:
    """Return the sentence that is printed; for an unknown option, with the one that was probably meant."""
    if isinstance(error, MissingArgumentError) and error.argument is not None and error.command_chain:
        command, name = " ".join(("rkcnn", *error.command_chain)), error.argument.names[0]
        return f"{command} needs {'a value for ' * name.startswith('-')}{name}; {command} --help describes it"
    if isinstance(error, UnusedCliTokensError) and error.command_chain and error.unused_tokens:
        command = " ".join(("rkcnn", *error.command_chain))
        return f"{command} does not take {shorten(error.unused_tokens[0])!r}; {command} --help shows what it takes"
    if not isinstance(error, UnknownOptionError):
        return str(error)
    option = (error.token.keyword or error.token.value).partition("=")[0]
    meant = option.lstrip("-").replace("-", "_")
    known = {
        name.lstrip("-").replace("-", "_"): name for argument in error.argument_collection for name in argument.names
    }
    if "set" in known:  # of `rkcnn train`
        from rkcnn.fit.recipe import RECIPES
        from rkcnn.fit.recipe_changes import NAMES_ELSEWHERE

        fields = {name: f"--set {name}=VALUE" for name in vars(RECIPES["own"]) if name != "name"}
        if meant in fields:
            return f"{option} is a field of the recipe and no option; change it by {fields[meant]}"
        known = fields | known
        known |= {elsewhere: known[name] for elsewhere, name in NAMES_ELSEWHERE.items()}
    near = get_close_matches(meant, known, n=1)
    return f"there is no option {option}" + (f"; did you mean {known[near[0]]}?" if near else "")


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit.

    Exit codes: 2 for bad input, with one sentence on standard error; 130 for Ctrl-C; 141, without a
    message, if the reader of the output has closed the pipe.
    """
    prepare_output()
    try:
        try:
            check_arguments(sys.argv[1:] if arguments is None else arguments)
            app(arguments, exit_on_error=False, print_error=False)
        except BaseException as end:  # commands end with SystemExit
            end_output(isinstance(end, SystemExit) and not end.code)  # here, where a closed pipe or full disk is caught
            raise
        end_output(succeeded=True)
    except BrokenPipeError:  # the reader, for example `head`, has read all it wants
        discard(sys.stdout)
        sys.exit(CLOSED_PIPE)
    except (InputError, CycloptsError) as error:
        if os.environ.get("LOCAL_RANK", "0") == "0":  # torchrun's other ranks on this machine would say the same
            print_error(describe_error(error))
        sys.exit(2)
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            name = shorten(os.fsdecode(error.filename or "a path"))
            print_error(f"{name} can't be a file or folder: the name is too long; give a shorter one")
        elif error.errno in (ENOSPC, EDQUOT) and error.filename is None:  # all other writes say where
            from rkcnn.disk import explain

            discard(sys.stdout)
            print_error(f"can't write to standard output: {explain(error)}; send it elsewhere")
        else:
            raise
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:  # the latter is torch's
        if not is_out_of_memory(error):
            raise
        remedy = "give a smaller network, a smaller batch or fewer images, or end other programs"
        print_error(f"this needs more memory than there is; {remedy}")
        sys.exit(2)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich's consoles catch it themselves and exit with 1
            sys.exit(CLOSED_PIPE)
        raise
    except KeyboardInterrupt:
        sys.exit(EXIT_CODE)
