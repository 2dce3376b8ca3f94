"""The command line as a function."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rkcnn.cli import main


@pytest.fixture
def rkcnn(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Arguments -> (exit code, standard output, standard error); what is not an exit is a failure."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        code = end.value.code
        assert isinstance(code, int)
        return code, *capsys.readouterr()

    return run
