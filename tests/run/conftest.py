"""The images that the tests of this room share."""

from __future__ import annotations

import pytest

from digits import write_digits


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """400 + 100 real digits as an own set: seven steps an epoch, the last a kept partial batch of 16."""
    return write_digits(tmp_path_factory.mktemp("data") / "digits.npz")
