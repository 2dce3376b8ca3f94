"""Mail is fetched once, and of a run's checkpoints only the newest waits."""

from __future__ import annotations

import subprocess
import sys

from rkcnn.reproduce.mailbox import Mailbox


def test_mailbox() -> None:
    box = Mailbox()
    box.tell("a")
    box.keep(0, {"old": b"1"})
    box.keep(1, {"other": b"2"})
    box.keep(0, {"new": b"3"})
    box.tell("b")
    assert box.fetch() == (["a", "b"], {0: {"new": b"3"}, 1: {"other": b"2"}})
    assert box.fetch() == ([], {})


def test_its_process_needs_no_torch() -> None:
    code = "import rkcnn.reproduce.mailbox, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
