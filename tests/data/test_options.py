"""Where files are looked for, and options that are refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rkcnn.data.options import OwnOptions, Sources, SplitOptions, read_own_options
from rkcnn.error import InputError


def test_folders_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", "/env")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert Sources(data_dir=Path("/given")).folders() == [Path("/given"), Path("/env"), Path("/xdg/rkcnn")]
    monkeypatch.delenv("RKCNN_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert Sources().folders() == [Path("/home/me/.cache/rkcnn")]


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("RKCNN_DATA", "~/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/cache")
    assert Sources(data_dir=Path("~/y")).folders() == [
        *(Path("/home/me/y"), Path("/home/me/x"), Path("/home/me/cache/rkcnn"))
    ]


@pytest.mark.parametrize("timeout", [-1, 0, float("nan"), float("inf"), 1e20])
def test_refuses_a_timeout_that_no_socket_takes(timeout: float) -> None:
    with pytest.raises(InputError, match="must be over 0 and at most 86400 seconds"):
        Sources(timeout=timeout)


@pytest.mark.parametrize(
    "mirror",
    [
        *("foo", "", "http://[::1", "file:///etc/", "ftp://host/", "http://", "http://h\u00f6st/", "http://a b/"),
        *("http://host:x/", "http://host/\n"),
    ],
)
def test_refuses_a_mirror_that_is_no_address(mirror: str) -> None:
    with pytest.raises(InputError, match="is not the address of a folder; give one"):
        Sources(mirror=mirror)


@pytest.mark.parametrize("split", [-0.1, 0, 1, 1.5, float("nan"), "0.2"])
def test_refuses_a_split_that_is_no_share(split: float) -> None:
    with pytest.raises(InputError, match=r"`split=.*` must be a share between 0 and 1, say `split=0\.2`") as refused:
        OwnOptions(split=split)
    assert f"`split={split!r}`" in str(refused.value)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("skip_bad", "no", r"`skip_bad='no'` must be True or False"),
        ("skip_bad", 1, r"`skip_bad=1` must be True or False"),
        ("max_bytes", 0, r"`max_bytes=0` must be a whole number of bytes, 1 or more"),
        ("max_bytes", 2.5, r"`max_bytes=2\.5` must be a whole number of bytes"),
        ("size", "64", r"`size='64'` must be a whole number of pixels"),
        ("channels", "3", r"`channels='3'` must be 1"),
    ],
)
def test_refuses_values_of_another_kind(option: str, value: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        OwnOptions(**{option: value})


def test_the_rule_of_a_split_is_read_from_a_record() -> None:
    known = {"size": 32, "split": 0.2, "split_rule": "content alone"}
    assert read_own_options(known) == SplitOptions(size=32, split=0.2, split_rule="content alone")
    assert type(read_own_options({"split": 0.2})) is OwnOptions
    with pytest.raises(InputError, match="rules are content, content alone, below the share"):
        read_own_options({"split_rule": "luck"})


@pytest.mark.parametrize("size", [0, -3, 32.5, True, "large", np.float64(32)])
def test_refuses_a_size_that_is_no_number_of_pixels(size: Any) -> None:
    assert OwnOptions(size="auto").size == "auto"
    with pytest.raises(InputError, match=r"`size=.*` must be a whole number of pixels, 1 or more, or auto"):
        OwnOptions(size=size)


@pytest.mark.parametrize("channels", [0, 2, True, 3.0, "3"])
def test_refuses_channels_that_no_image_has(channels: Any) -> None:
    with pytest.raises(InputError, match=r"`channels=.*` must be 1 \(grey\) or 3 \(colour\)"):
        OwnOptions(channels=channels)


def test_numbers_of_numpy_become_pythons() -> None:
    """A record in JSON holds them."""
    given: Any = OwnOptions(size=np.int64(16), split=np.float32(0.25), channels=np.uint8(3))  # type: ignore[arg-type]
    assert json.loads(json.dumps(asdict(given)))["size"] == 16
    assert (given.split, given.channels) == (0.25, 3)


@pytest.mark.parametrize("keys", ["", "x_train", "x_train=", "x=a", "x_train=a,x_train=b", "x_train=a,"])
def test_refuses_keys_that_name_no_arrays(keys: str) -> None:
    assert OwnOptions(keys="x_train=a, y_train=b").key_names() == {"x_train": "a", "y_train": "b"}
    with pytest.raises(InputError, match="must name arrays of the file for x_train, y_train, x_test, y_test, classes"):
        OwnOptions(keys=keys)
