"""One holder at a time; a dead one holds nothing."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

from rkcnn.data.lock import locked
from rkcnn.data.progress import Progress


def test_the_second_waits_and_says_so(tmp_path: Path) -> None:
    said, events, waits = io.StringIO(), [], threading.Event()

    class Told(Progress):
        def note(self, text: str) -> None:
            super().note(text)
            waits.set()

    def second() -> None:
        with locked(tmp_path / "lock", Told(said)):
            events.append("second in")

    thread = threading.Thread(target=second)
    with locked(tmp_path / "lock", Progress()):
        thread.start()
        assert waits.wait(60)
        events.append("first out")
    thread.join()
    assert events == ["first out", "second in"]
    assert said.getvalue().startswith("waiting for another process")


def test_a_process_that_dies_frees_it(tmp_path: Path) -> None:
    code = "import fcntl, os, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); os._exit(1)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "lock"], check=False)
    said = io.StringIO()
    with locked(tmp_path / "lock", Progress(said)):
        assert said.getvalue() == ""
