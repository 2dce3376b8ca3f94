"""The names of engines."""

from __future__ import annotations

import pytest

from rkcnn.error import InputError
from rkcnn.fit.engine_names import ENGINES, check_engine


def test_an_engine_is_known_by_its_name() -> None:
    for name in ENGINES:
        check_engine(name)
    with pytest.raises(InputError, match="no engine 'steam'; engines are auto, eager, compile, graph, fused"):
        check_engine("steam")
