"""The command line as a whole: help, version, exit codes, and nothing heavy before it is needed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from errno import ENOSPC
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from rkcnn import __version__
from rkcnn.cli.output import print_on
from rkcnn.error import InputError

Run = Callable[..., tuple[int, str, str]]
REFUSED = ("modelz", "train --set epoch=3", "bench trian", "bench --batch 0")
LIGHT = """
import sys
from rkcnn.cli import main
try:
    main(sys.argv[1:])
finally:
    assert "torch" not in sys.modules
"""


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "--help", "--version", "models --help", "describe --help", "draw --help", "modelz"),
        *("train --help", "evaluate --help", "runs --help", "runs --from .", "train --set epoch=3"),
        *("bench --help", "bench trian", "bench --batch 0"),
    ],
)
def test_no_torch_before_it_is_needed(arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, *arguments.split()], capture_output=True, text=True)
    assert done.returncode == (2 if arguments in REFUSED else 0), done.stderr


def test_importing_the_package_loads_no_torch() -> None:
    code = "import rkcnn, sys; rkcnn.list_models(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", ""], "an empty argument given after train; give a value, or leave it out"),
        (["train", "--out", ""], "an empty argument given after --out; give a value, or leave it out"),
        (["train", "--out="], "--out= given without a value; give one, or leave it out"),
        (["compare", ""], "an empty argument given after compare; give a value, or leave it out"),
        (["data", "list", "--data-dir", ""], "an empty argument given after --data-dir; give a value, or leave it out"),
        (
            ["predict", "", "x.png"],
            "an empty name given for RUN; give the folder of a run or the name of weights",
        ),
        (["bench", "train", "--note", "", "--rounds", "0"], "--rounds 0 given; it is a whole number from 1 to 1000"),
    ],
)
def test_an_empty_argument_is_not_the_current_folder(rkcnn: Run, arguments: list[str], says: str) -> None:
    assert rkcnn(*arguments) == (2, "", f"rkcnn: {says}\n")


def test_version(rkcnn: Run) -> None:
    assert rkcnn("--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_names_every_command(rkcnn: Run, arguments: tuple[str, ...]) -> None:
    code, out, _ = rkcnn(*arguments)
    assert code == 0
    assert "Runge–Kutta" in out
    assert "Without arguments: MNIST digits, about two" in out
    assert all(
        command in out
        for command in ("train", "evaluate", "runs", "memory", "models", "describe", "draw", "data", "bench")
    )


@pytest.mark.parametrize("flag", ["--json", "--no-json"])
def test_a_switch_has_one_spelling(rkcnn: Run, flag: str) -> None:
    for command in ("models", "describe", "train", "evaluate", "runs"):
        assert (flag in rkcnn(command, "--help")[1]) == (flag == "--json")


def test_bad_input_is_one_line_and_exit_code_2() -> None:
    done = subprocess.run([sys.executable, "-m", "rkcnn", "describe", "RKCN-I-2@k=32"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rkcnn: no family 'RKCN' (did you mean RKCNN?)")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export", "x"), "rkcnn export needs a value for --output; rkcnn export --help describes it"),
        (("data", "show"), "rkcnn data show needs NAME; rkcnn data show --help describes it"),
    ],
)
def test_what_is_missing_is_named(rkcnn: Run, arguments: tuple[str, ...], says: str) -> None:
    assert rkcnn(*arguments) == (2, "", f"rkcnn: {says}\n")


@pytest.mark.parametrize("command", ["data list", "describe ResNet@k=4"])  # plain text, and rich's
def test_a_closed_pipe_ends_a_command_without_a_message(command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rkcnn", *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (141, "")


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
unbuffered = pytest.mark.parametrize("unbuffered", [False, True])  # PYTHONUNBUFFERED: when a write fails


def run_with(
    arguments: list[str], unbuffered: bool, stdout: Path | None = None, stderr: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as a process, with outputs sent to files where they are given."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with ExitStack() as stack:
        streams = [stack.enter_context(path.open("wb")) if path else subprocess.PIPE for path in (stdout, stderr)]
        return subprocess.run(
            [sys.executable, "-m", "rkcnn", *arguments],
            stdout=streams[0],
            stderr=streams[1],
            env=others | {"PYTHONUNBUFFERED": "1"} if unbuffered else others,
        )


@needs_full
@unbuffered
@pytest.mark.parametrize("command", ["data list", "describe ResNet@k=4", "--help"])
def test_a_full_disk_under_the_output_is_a_sentence(command: str, unbuffered: bool) -> None:
    said = run_with(command.split(), unbuffered, stdout=FULL)
    sentence = b"rkcnn: can't write to standard output: the disk is full; send it elsewhere\n"
    assert (said.returncode, said.stderr) == (2, sentence)


@needs_full
@unbuffered
def test_a_full_disk_under_the_messages_leaves_the_exit_code(unbuffered: bool) -> None:
    assert run_with(["describe", "Nope"], unbuffered, stderr=FULL).returncode == 2


@needs_full
@pytest.mark.parametrize("full", ["stdout", "stderr", "both"])
def test_a_full_disk_under_the_log_loses_no_run(full: str, tmp_path: Path) -> None:
    """And none of the JSON, which goes to standard output while the log goes to standard error."""
    training = ["train", "ResNet@k=4", "--device", "cpu", "--epochs", "1", "--set", "max_steps_per_epoch=2"]
    training += ["--out", str(tmp_path), *["--json"] * (full == "stderr")]
    streams = {name: FULL for name in ("stdout", "stderr") if full in (name, "both")}
    said = run_with(training, False, **streams)
    assert said.returncode == (0 if full == "stderr" else 2)
    if full == "stdout":
        assert b"can't write to standard output: the disk is full" in said.stderr.splitlines()[-1]
    if full == "stderr":
        (result,) = json.loads(said.stdout)
        assert result["status"] == "finished"
    assert len(list(tmp_path.rglob("result.json"))) == 1


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        (InputError("no such run"), 2, "rkcnn: no such run\n"),
        (SystemExit(1), 1, ""),
        (SystemExit(143), 143, ""),
        (SystemExit(0), 2, "rkcnn: can't write to standard output: the disk is full; send it elsewhere\n"),
    ],
)
def test_lines_that_were_lost_hide_no_other_end(
    end: BaseException, code: int, says: str, rkcnn: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def app(*_: object, **__: object) -> None:
        class Full(io.StringIO):
            def write(self, text: str) -> int:
                raise OSError(ENOSPC, "No space left on device")

        monkeypatch.setattr("sys.stdout", Full())
        print_on(Console(file=sys.stdout), "a line of a log")
        monkeypatch.undo()
        raise end

    monkeypatch.setattr("rkcnn.cli.app", app)
    assert rkcnn("data", "list") == (code, "", says)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_a_sentence(error: Exception, rkcnn: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("rkcnn.run.train.train", fail)
    code, out, said = rkcnn("train")
    assert (code, out) == (2, "")
    assert said.startswith("rkcnn: this needs more memory than there is; give a smaller network")


@pytest.mark.parametrize("module", ["cyclopts", "rkcnn.data.load"])
def test_ctrl_c_while_modules_load_is_no_traceback(module: str) -> None:
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from rkcnn.__main__ import main
sys.argv[1:] = ["data", "get", "mnist-mini"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_run_in_a_folder_whose_name_is_no_utf_8_can_be_used(rkcnn: Run, digits: str, tmp_path: Path) -> None:
    """All that works on another path works there; TensorBoard alone writes to none (tests/cli/test_log.py)."""
    out = tmp_path / os.fsdecode(b"r\xff\xfe")
    train = ("train", "ResNet@k=4", "--data", digits, "--device", "cpu", "--set", "schedule=steps", "--out")
    for seed in "01":
        assert rkcnn(*train, str(out), "--set", "epochs=1", "--seed", seed)[0] == 0
    one, two = (str(path.parent) for path in sorted(out.rglob("result.json")))
    picture = tmp_path / "digit.png"
    Image.new("L", (28, 28)).save(picture)
    for command in (
        ("runs", "--from", str(out)),
        ("runs", "--from", str(out), "--json"),
        ("evaluate", one),
        ("evaluate", f"{one}/weights.safetensors", "--data", digits, "-o", str(out / "pictures")),
        ("predict", one, str(picture)),
        ("export", one, "-o", str(out / "model.safetensors")),
        ("export", one, "-o", str(out / "model.pt2")),
        ("compare", one, two, "-o", str(out / "compared")),
        ("log", one, two, "--to", "tensorboard", "-o", str(tmp_path / "log")),
        ("push", one, "owner/name", "--dry-run", str(out / "hub")),
        ("evaluate", str(out / "hub"), "--data", digits, "-o", str(out / "more")),
        (*train, str(out / "tuned"), "--set", "epochs=1", "--init-from", one),
        ("train", "--config", f"{one}/config.json", "--device", "cpu", "--out", str(out / "again")),
        ("draw", "ResNet@k=4", "-o", str(out / "step.svg")),
        ("data", "show", digits, "-o", str(out / "sheet.png")),
    ):
        code, said, err = rkcnn(*command)
        assert code == 0, (command, said, err)
    assert "continues from the 1 epochs in" in rkcnn(*train, str(out), "--set", "epochs=2")[1]
