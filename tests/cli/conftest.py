"""The command line as a function, and a small trained network for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
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


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """npz:PATH of 256 digits to train on and 100 to test with; decoded data goes to a folder of its own."""
    from rkcnn.data.load import load_data_set

    folder = tmp_path_factory.mktemp("digits")
    train, test = load_data_set("mnist-mini")
    pixels = [images.pixels.permute(0, 2, 3, 1).numpy() for images in (train, test)]
    np.savez(
        folder / "digits.npz",
        x_train=pixels[0][:256],
        y_train=train.labels[:256].numpy(),
        x_test=pixels[1][:100],
        y_test=test.labels[:100].numpy(),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKCNN_DATA", str(folder / "data"))
        yield f"npz:{folder / 'digits.npz'}"


@pytest.fixture(scope="session")
def trained(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of ResNet@k=4."""
    out = tmp_path_factory.mktemp("trained")
    with pytest.raises(SystemExit) as end:
        main(["train", "ResNet@k=4", "--data", digits, "--set", "epochs=1", "--out", str(out)])
    assert end.value.code == 0
    return next(out.rglob("result.json")).parent
