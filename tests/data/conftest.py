"""A published set small enough for tests, and a web server that can be told to misbehave."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest

from rkcnn.data.packaging import PACKAGINGS
from rkcnn.data.sets import SETS

BUNDLED = Path(str(files("rkcnn.data") / "bundled"))


class Server:
    """Serves the bundled digits under MNIST's published names; `behaviour` says how."""

    def __init__(self) -> None:
        self.behaviour = "well"
        self.files = {path.name: path.read_bytes() for path in BUNDLED.iterdir()}
        self.requests: list[tuple[str, str]] = []  # name, Range
        self.sent = 0
        self.closed = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.closed = True
        self._http.shutdown()
        self._http.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name, asked = request.path.rpartition("/")[2], request.headers.get("Range", "")
        self.requests.append((name, asked))
        if name not in self.files or self.behaviour == "missing":
            request.send_error(404)
            return
        data = self.files[name]
        start = int(asked[6:-1]) if asked and self.behaviour != "ignores Range" else 0
        if start >= len(data):
            request.send_error(416)
            return
        first = len(self.requests) == 1
        body, announced = data[start:], len(data) - start
        if self.behaviour == "announces more":
            announced += 1000
        elif self.behaviour == "announces less":
            announced //= 2
        elif self.behaviour == "flips a byte" and "images" in name:
            body = body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]
        elif self.behaviour == "always truncates":
            body = body[: max(0, 9000 - start)]
        elif self.behaviour == "announces a terabyte":
            announced = 10**12
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.behaviour != "never ends":
            request.send_header("Content-Length", str(announced))
        request.end_headers()
        try:
            if first and self.behaviour in ("truncates", "ignores Range"):
                body = body[: len(body) // 2]
            if first and self.behaviour == "stalls":
                request.wfile.write(body[:20_000])
                request.wfile.flush()
                while not self.closed:
                    time.sleep(0.02)
                return
            if self.behaviour == "waits" and len(body) > 200_000:
                request.wfile.write(body[:200_000])
                request.wfile.flush()
                while self.behaviour == "waits" and not self.closed:
                    time.sleep(0.02)
                body = body[200_000:]
            while self.behaviour == "never ends":
                request.wfile.write(bytes(1 << 20))
            self.sent += len(body)  # before the client can have it all, and ask
            request.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass


def pytest_make_parametrize_id(val: object) -> str | None:
    """Packed files hold the time they were made at: as names, xdist's workers would disagree on them."""
    return "bytes" if isinstance(val, bytes) else None


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The set `mini`: mnist-mini's content in MNIST's packagings, with no source but what a test gives it.

    Returns the data folder, which is $RKCNN_DATA.
    """
    plain, npm = PACKAGINGS["mnist"]
    monkeypatch.setitem(PACKAGINGS, "mini", (replace(plain, mirrors=()), replace(npm, npm="")))
    monkeypatch.setitem(SETS, "mini", replace(SETS["mnist-mini"], name="mini", folder="mini", decoded="mini"))
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def prelude() -> str:
    """Python that makes the set `mini` in another process, for tests that need one."""
    return f"""
import sys
sys.path[:0] = {sys.path!r}
from dataclasses import replace
from rkcnn.data.packaging import PACKAGINGS
from rkcnn.data.sets import SETS
plain, npm = PACKAGINGS["mnist"]
PACKAGINGS["mini"] = (replace(plain, mirrors=()), replace(npm, npm=""))
SETS["mini"] = replace(SETS["mnist-mini"], name="mini", folder="mini", decoded="mini")
from rkcnn.cli import main
"""
