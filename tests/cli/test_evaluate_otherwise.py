"""rkcnn evaluate --with and --corrupt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from rkcnn.data.load import load_data_set
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ode(tmp_path: Path, digits: str) -> tuple[str, ...]:
    """The weights of an untrained RKNet, and the option that names images."""
    torch.manual_seed(0)
    description = NetworkDescription.of("RKNet-euler@k=4", load_data_set("mnist-mini")[0])
    path = tmp_path / "weights.safetensors"
    save_file(create_model("RKNet-euler@k=4", 10, 1).state_dict(), path, description.as_metadata())
    return str(path), "--data", digits


def test_other_solvers_stand_below_the_trainings(rkcnn: Run, ode: tuple[str, ...]) -> None:
    choices = ("--with", "method=dopri5,tol=1e-2", "--with", "method=rk4,steps=2")
    code, out, _ = rkcnn("evaluate", *ode, *choices)
    assert code == 0
    _, _, head, *rows = out.splitlines()
    assert head.split()[:2] == ["solver", "error"]
    assert [row.partition("  ")[0] for row in rows] == ["euler, 1 step", "dopri5, tol 0.01", "rk4, 2 steps"]
    assert "as trained" in rows[0]
    found = json.loads(rkcnn("evaluate", *ode, *choices, "--json")[1])["solvers"]
    assert [each["solver"] for each in found] == ["euler, 1 step", "dopri5, tol 0.01", "rk4, 2 steps"]
    assert [found[0]["evaluations"], found[2]["evaluations"]] == [1, 8]
    assert found[0]["metrics"]["images"] == 100


def test_corruptions_are_printed_and_drawn(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    code, out, _ = rkcnn("evaluate", str(trained), "--corrupt", "-o", str(tmp_path / "new"))
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows] == ["noise", "blur", "contrast", "shift"]
    for _, *grades, mean in rows:
        assert float(mean) == pytest.approx(sum(map(float, grades)) / 5, abs=0.01)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["corruptions.png", "corruptions.svg"]
    found = json.loads(rkcnn("evaluate", str(trained), "--corrupt", "-o", str(tmp_path / "new"), "--json")[1])
    assert f"error        {100 * found['clean']:.2f} % of the clean images" in out
    assert [f"{100 * error:.2f}" for error in found["corrupted"]["noise"]] == rows[0][1:6]


def test_bad_input_gets_one_sentence(rkcnn: Run, trained: Path, ode: tuple[str, ...]) -> None:
    for arguments, says in (
        ((str(trained), "--with", "method=rk4"), "ResNet@k=4 has no f that another method could solve"),
        ((*ode, "--with", "method=rk5"), "no method 'rk5'"),
        ((*ode, "--with", "rk4"), "as in --with method=dopri5,tol=1e-3"),
        ((*ode, "--with", "method=rk4", "--corrupt"), "--with and --corrupt given; give one of the two at a time"),
        ((str(trained), "--corrupt", "-o", "/dev/null/x"), "name another folder with -o"),
    ):
        code, out, err = rkcnn("evaluate", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert says in err
