"""A Ray cluster: one that is there, or one of this machine alone for as long as it is needed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rkcnn.error import InputError

SECONDS = 5.0  # for a cluster to answer; Ray itself tries for two minutes and then ends the process
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # of HTTP/2, with empty settings
SETTINGS = 4  # the kind of frame that an HTTP/2 server answers with


@contextmanager
def join_cluster(address: str | None) -> Iterator[Any]:
    """The ray module, connected; afterwards a cluster that was there goes on, one of our own is shut down."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's coming default; else it warns
    try:
        import ray
    except ImportError:
        how = "pip install --constraint constraints.txt --editable '.[ray]' in the checkout"
        raise InputError(f"--on ray needs Ray, which is not installed; {how}") from None
    if address is not None:
        _check(address)
    own: dict[str, Any] = {} if address else {"num_cpus": len(os.sched_getaffinity(0)), "include_dashboard": False}
    main = threading.current_thread() is threading.main_thread()
    leave = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # of any kind, undocumented
        why = " ".join(str(error).split())
        if address is None:
            raise InputError(f"can't start a Ray cluster here: {why}") from None
        hint = "if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as where it was started"
        raise InputError(f"can't join the Ray cluster at {address} ({why}); {hint}") from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, leave)  # Ray takes it, and the exit code with it
    try:
        yield ray
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """InputError unless something at the address talks as a Ray cluster does."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address == "auto":  # Ray looks for one on this machine, and is quick about it
        return
    remedy = "start one with ray start --head, which prints its HOST:PORT, or leave --address out"
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise InputError(f"--address {address} is no address of a Ray cluster such as 10.0.0.1:6379; {remedy}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as link:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            link.sendall(GREETING)
            answer = link.recv(4)
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address} ({error.strerror or error}); {remedy}") from None
    if len(answer) < 4 or answer[3] != SETTINGS:
        raise InputError(f"what answers at {address} is no Ray cluster; {remedy}")
