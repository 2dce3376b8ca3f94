"""Connects to a Ray cluster: an existing one, or one of this machine alone for as long as it is needed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rkcnn.error import InputError, how_to_install
from rkcnn.reproduce.worker import count_cores

UMASK = "RKCNN_UMASK"  # environment variable of the tasks of a cluster that we start: the command's own umask, octal
CONNECT_SECONDS = 5.0  # for a cluster to answer; Ray itself would try for two minutes and then end the process


@contextmanager
def join_cluster(address: str | None) -> Iterator[Any]:
    """Connect and yield the ray module; afterwards disconnect.

    `address` is HOST:PORT of an existing cluster, which keeps running afterwards, or "auto"; with None a cluster is
    started on this machine and shut down afterwards. What Ray writes for that one, the token in ~/.ray above all, is
    for this user alone; Ray itself would let all users of the machine read it.
    """
    if sys.platform == "win32":
        raise InputError("Ray tasks are not supported on Windows; train with `on=local`, or use Linux or macOS")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's coming default; without it Ray warns
    try:
        import ray
    except ImportError:
        raise InputError(f"`on=ray` given, and Ray is not installed; {how_to_install('ray')}") from None
    if address is not None:
        _check_address(address)
    own: dict[str, Any] = {} if address else {"num_cpus": count_cores(), "include_dashboard": False}
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    umask = os.umask(0o077) if address is None else None
    if umask is not None:
        os.environ[UMASK] = f"{umask:o}"
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # Ray does not document which
        why = " ".join(str(error).split())
        if address is None:
            raise InputError(f"can't start a Ray cluster here: {why}") from None
        hint = "if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as where it was started"
        raise InputError(f"can't join the Ray cluster at {address} ({why}); {hint}") from None
    finally:
        if umask is not None:
            os.umask(umask)
        if in_main_thread:
            signal.signal(signal.SIGTERM, handler)  # Ray replaces it, and the exit code with it
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise InputError unless something accepts connections at the address."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address == "auto":  # Ray looks for a cluster on this machine, which is quick
        return
    remedy = "start one with ray start --head, which prints its HOST:PORT, or leave `address=...` out"
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise InputError(f"`address={address}` is no address of a Ray cluster such as 10.0.0.1:6379; {remedy}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address} ({error.strerror or error}); {remedy}") from None
