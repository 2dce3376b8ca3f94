"""Headless Chromium, spoken to over a pipe (its DevTools protocol): no port, no driver, no package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # as root in a container it has none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds for one answer, on a busy machine


def find_chromium() -> str | None:
    """One that starts: a distribution may have a stand-in that only says how to install it."""
    for path in filter(None, map(shutil.which, NAMES)):
        if subprocess.run([path, "--version"], capture_output=True, timeout=600).returncode == 0:
            return path
    return None


class Page:
    """One tab. `trouble` is what its console complained of, `asked` each address it asked for."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self._events: list[str] = []
        self.trouble: list[str] = []
        self.asked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Runtime", "Page", "Network", "Log"):
            self.call(f"{part}.enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def call(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer, noting the events that come before it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, path: Path, width: int = 1200, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._note(self._read())

    def ask(self, expression: str) -> Any:
        """The value of some JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def move_to(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        where = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{where}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.wait()
        x, y = self.ask(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({where}.getBoundingClientRect())")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def wait(self) -> None:
        """Until what is under way is shown: a scroll is told to the page in the next frame."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    def press(self, key: str) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_CODES[key], **text)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        self._events.append(message.get("method", ""))
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.trouble.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.trouble.append(str(params["args"]))
            case "Log.entryAdded":
                self.trouble.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select([self._out], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._out, 1 << 20) if ready else b""
            assert part, "Chromium said nothing more"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


_CODES = {"Enter": 13, "Escape": 27, "Tab": 9}


@contextmanager
def browse(program: str, profile: Path) -> Iterator[Page]:
    """A tab of a Chromium of our own, which ends with the block."""
    theirs_in, into = os.pipe()
    out, theirs_out = os.pipe()
    # Chromium reads commands from descriptor 3 and answers on 4.
    command = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
    arguments = [str(theirs_in), str(theirs_out), program, *FLAGS, f"--user-data-dir={profile}"]
    child = subprocess.Popen(
        ["bash", "-c", command, "bash", *arguments],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(into, out)
    finally:
        os.close(into)  # Chromium ends when its pipe does
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        os.close(out)
