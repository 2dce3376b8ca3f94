"""Addresses that are none, each one sentence; tests/reproduce/test_on_ray.py joins real clusters."""

from __future__ import annotations

import socket
import sys
import threading

import pytest

from rkcnn.error import InputError
from rkcnn.reproduce.cluster import join_cluster


@pytest.mark.parametrize("address", ["nonsense", "host:port", "ray://127.0.0.1:10001", "127.0.0.1:99999", "local"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match=f"{address} is no address of a Ray cluster such as"), join_cluster(address):
        pass


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"), join_cluster("auto"):
        pass


def test_another_server() -> None:
    def answer(server: socket.socket) -> None:
        link, _ = server.accept()
        with link:
            link.recv(100)
            link.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=f"what answers at {address} is no Ray cluster"), join_cluster(address):
            pass
        thread.join()


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install .* '\.\[ray\]' in the checkout"), join_cluster(None):
        pass
