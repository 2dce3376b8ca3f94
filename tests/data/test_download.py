"""One download against a server that stalls, truncates, ignores Range and lies about length."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from rkcnn.data.download import download
from rkcnn.data.progress import Progress
from rkcnn.error import InputError

NAME = "train-images-idx3-ubyte.gz"
LIMIT = 10_000_000


def get(server: Any, part: Path, timeout: float = 0.5, limit: int = LIMIT) -> None:
    download(server.url + NAME, part, limit, timeout, Progress())


@pytest.mark.parametrize("behaviour", ["well", "truncates", "stalls", "ignores Range", "announces more"])
def test_arrives_whole_from_a_server_that(behaviour: str, server: Any, tmp_path: Path) -> None:
    server.behaviour = behaviour
    get(server, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == server.files[NAME]
    assert len(server.requests) == (1 if behaviour == "well" else 2)


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
        get(server, tmp_path / "part", timeout=0.2)


def test_says_that_there_is_no_network(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no connection"):
        download("http://127.0.0.1:9/file", tmp_path / "part", LIMIT, 0.2, Progress())
    assert not (tmp_path / "part").exists()


def test_shows_progress(server: Any, tmp_path: Path) -> None:
    out = io.StringIO()
    download(server.url + NAME, tmp_path / "part", LIMIT, 0.5, Progress(out))
    assert out.getvalue().startswith(f"{NAME}: ")
    assert "1.6 of 1.6 MB" in out.getvalue()
    assert "0:00 left" in out.getvalue()
