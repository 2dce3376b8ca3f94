"""Ctrl-C at many places of a start: the command ends with exit code 130 and says nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="every place is tried in a fork of one process")

FORKS = """
import json, os, runpy, signal, sys, tempfile

places, arguments = json.loads(sys.argv[1]), json.loads(sys.argv[2])


def start(place):
    count = 0

    def interrupt(event, _):
        nonlocal count
        if event in ("import", "exec", "open"):  # a module is looked for, run, or its file is opened
            count += 1
            if count == place:
                signal.raise_signal(signal.SIGINT)

    sys.argv = ["rkcnn", *arguments]
    module = sys.modules["rkcnn.__main__"]
    sys.addaudithook(interrupt)
    module.main()


import rkcnn.__main__

for place in places:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 1), os.dup2(said.fileno(), 2)
            start(place)
            sys.exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        print(json.dumps((place, code, said.read().decode())), flush=True)
"""


def interrupt_at(places: list[int], *arguments: str) -> list[tuple[int, int, str]]:
    """Return (place, exit code, output) of starts that SIGINT interrupts at these places, counted in imports."""
    command = [sys.executable, "-c", FORKS, json.dumps(places), json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_ctrl_c_during_a_start_says_nothing() -> None:
    """The first places are those before the handler is there; about the 600th the help has been printed."""
    found = interrupt_at([*range(1, 12), *range(12, 600, 49), 5000], "describe", "--help")
    assert found.pop()[1] == 0  # the 5000th place is not reached
    assert {(code, said) for _, code, said in found} == {(130, "")}


def test_ctrl_c_while_torch_is_imported_says_nothing() -> None:
    """KeyboardInterrupt itself would be swallowed or become an ImportError in the modules that are written in C."""
    found = interrupt_at([1900, 2600], "describe", "ResNet@k=4")
    assert {(code, said) for _, code, said in found} == {(130, "")}


def test_a_signal_that_is_ignored_stays_so() -> None:
    code = (
        "import signal; from rkcnn.interrupt import install_interrupt_handler; "
        "install_interrupt_handler(); print(signal.getsignal(signal.SIGINT))"
    )
    shell = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, code]
    assert subprocess.run(shell, capture_output=True, text=True).stdout == f"{signal.SIG_IGN}\n"


def test_the_exit_code_is_that_of_the_signal(tmp_path: Path) -> None:
    """Of SIGTERM, which `rkcnn reproduce` receives by a handler of its own, it is 143."""
    (tmp_path / "slow.py").write_text("import signal\nsignal.raise_signal(signal.SIGTERM)\n")
    code = (
        "import signal; from rkcnn.interrupt import exit_if_importing; "
        "signal.signal(signal.SIGTERM, exit_if_importing); import slow"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == 128 + signal.SIGTERM


def test_outside_of_an_import_it_is_keyboard_interrupt() -> None:
    code = (
        "import rkcnn.interrupt, signal\nrkcnn.interrupt.install_interrupt_handler()\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    print('raised')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "raised\n"
