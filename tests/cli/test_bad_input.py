"""Whatever is wrong with what was given: one sentence, exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.families import FAMILIES, OPTIONS, ORIGINALS
from rkcnn.model.network import Network
from rkcnn.model.spec import ModelSpec, parse

Run = Callable[..., tuple[int, str, str]]

NAMES = {
    # unknown families, with the nearest
    "RKCN-I-2@k=32": "did you mean RKCNN?",
    "Resnett@k=32": "did you mean ResNet?",
    "ResNet-1002": "did you mean ResNet-1001?",
    "xyz@k=3": "families are RKCNN, ResNet",
    "": "a name is needed",
    "   ": "a name is needed",
    "@k=3": "a name is needed",
    "日本@k=32": "no family '日本'",
    # lists
    "RKCNN-I-2__2@k=32": "whole numbers",
    "RKCNN-I-2_@k=32": "whole numbers",
    "RKCNN-I-²@k=32": "whole numbers",
    "RKCNN-I-2@k=٣": "whole numbers",
    "RKCNN-I-2@k=3.5": "whole numbers",
    "RKCNN-I-2@k=-4": "whole numbers",
    "RKCNN-I-2_2@k=1_2_3": "give 1 or 3",
    "RKCNN-I-2-3@k=32": "'2' can't be read",
    "RKCNN-I-2@k=4@k=5": "'4@k=5'",
    # stages
    "RKCNN-I-1@k=32": "Phase II renews each stage from the others, so RKCNN-I needs at least 2",
    "RKCNN-R-2_1_2@k=32": "Phase II renews each stage from the others, so RKCNN-R needs at least 2",
    "RKCNN-I-0@k=32": "needs at least 2",
    "CliqueNet-1@k=32": "needs at least 2",
    "RKCNN-E-0@k=32": "needs at least 1",
    "RKCNN@k=32": "-E, -I, -R",
    "RKCNN-E@k=32": "as in RKCNN-E-2_2_2@k=32",
    "ResNet-2@k=32": "as in ResNet@k=32",
    "RKNet@k=32": "no variant given",
    "RKNet-radau4@k=32": "did you mean radau3?",
    # channels
    "RKCNN-E-1": "as in RKCNN-E-1@k=32",
    "RKCNN-E-1@": "as in RKCNN-E-1@k=32",
    "RKCNN-E-1@k=": "name=value",
    "RKCNN-E-1@k": "name=value",
    "RKCNN-E-1@k=0": "at least 1 channel",
    "RKCNN-E-1_1@k=4_0": "at least 1 channel",
    "ResNet-bottleneck@k=30": "multiple of 4",
    "Hamiltonian@k=3": "multiple of 2",
    # options
    "RKCNN-I-2@k=4,sweep=2": "did you mean sweeps?",
    "RKCNN-I-2@k=4,family=2": "no option family",
    "RKCNN-I-2@k=4,K=5": "k given twice",
    "RKCNN-I-2@k=4,sweeps=0": "at least 1",
    "RKCNN-I-2@k=4,y=maybe": "on or off",
    "RKCNN-I-2@k=4,stem=foo": "odenet, conv",
    "RKCNN-I-2@k=4,attention=on": "no option attention",
    "RKNet-radau3@k=4,tol=0": "positive",
    "RKNet-radau3@k=4,tol=nan": "as in tol=0.001",
    "RKNet-radau3@k=4,tol=1_0": "as in tol=0.001",
    "RKNet-dopri5@k=4,tol=0.1,r=2": "leave r out",
    # time-steps
    "ODENet-ab@k=4,r=2": "r >= 3",
    "ODENet-abm@k=4,r=2": "r >= 3",
    "SONODE-ab@k=4,r=2": "r >= 3",
    "Momentum@k=4,r=1": "r >= 2",
    "LM@k=4,r=1": "r >= 2",
    "Leapfrog@k=4,r=1": "r >= 2",
    "Midpoint@k=4_4,r=2_1": "r >= 2",
    "ResNet@k=4,r=0": "r >= 1",
    "Identity@k=4,r=1": "leave r out",
    # absurdly large
    "RKCNN-E-1@k=999999": "at most 65536",
    "RKCNN-E-1@k=9999999": "up to 6 digits",
    "RKCNN-E-999999@k=1": "at most 100",
    "ResNet@k=1,r=999999": "at most 1000",
    "RKCNN-I-2@k=1,sweeps=999999": "at most 100",
    "ANODE@k=1,p=999999": "at most 1000",
    f"ResNet@k={'_'.join('1' * 60)}": "at most 10",
}
OPTIONS_OF_DESCRIBE = {
    "--classes 0": "0 classes",
    "--classes -3": "-3 classes",
    "--channels 0": "0 channels",
    "--size 0": "size 0",
    "--size -8": "size -8",
    "--size 9": "smallest it can take is 10x10",
    "--size 1e3": "1e3",
    "--size 28.6": "28.6 is not a whole number",
    f"--size {10**22}": "65536",
    f"--size {3 * 10**9}": "65536",
    f"--classes {10**22}": "1000000",
    f"--channels {10**16}": "1000000",
    "--siz 4": "--size",
    "--size 28 --size 30": "--size",
    "extra": "extra",
}
COMMANDS = {
    "modelz": "models",
    "--verison": "--verison",
    "models extra": "extra",
    "models --jsn": "--json",
    "describe": "NAME",
    "draw RKCNN-I-2@k=32": "--out",
}


def check_refusal(answer: tuple[int, str, str], words: str) -> None:
    code, out, err = answer
    assert (code, out) == (2, ""), err
    assert err.startswith("rkcnn: ")
    assert err.count("\n") == 1
    assert len(err) < 300
    assert words in err, err


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cant_be_built(rkcnn: Run, name: str) -> None:
    check_refusal(rkcnn("describe", name), NAMES[name])


def test_a_missing_k_suggests_no_other_network(rkcnn: Run) -> None:
    assert "did you mean" not in rkcnn("describe", "RKCNN-E-1")[2]


@pytest.mark.parametrize("options", OPTIONS_OF_DESCRIBE)
def test_numbers_that_no_network_takes(rkcnn: Run, options: str) -> None:
    check_refusal(rkcnn("describe", "RKCNN-I-2@k=32", *options.split()), OPTIONS_OF_DESCRIBE[options])


@pytest.mark.parametrize("arguments", COMMANDS)
def test_commands_and_flags_that_are_not_there(rkcnn: Run, arguments: str) -> None:
    check_refusal(rkcnn(*arguments.split()), COMMANDS[arguments])


# P is a path of hundreds of characters: missing, an empty folder, a file of anything, and one that is too long.
WITH_PATH = (
    *(
        "runs --from P",
        "report --from P",
        "report mnist --from P -o P",
        "report --readme P",
        "report --readme P --from P",
    ),
    *("compare P", "compare P P -o P", "log P --to tensorboard -o P", "push P owner/name --dry-run P"),
    *("evaluate P", "evaluate P --data npz:P -o P", "evaluate P --data folder:P", "predict P P", "export P -o P"),
    *("train --config P", "train --data npz:P", "train --data folder:P --out P", "train --init-from P --out P"),
    "train ResNet@k=4 --init-from P --data npz:P --out P",
    *("data show npz:P -o P", "data show folder:P -o P", "data show folder:P --split 0.2 -o P", "data show P -o P"),
    *("data show mnist --data-dir P --offline -o P", "data get mnist --data-dir P --offline", "draw ResNet@k=4 -o P"),
    "memory mnist --out P",
)


@pytest.mark.parametrize("kind", ["missing", "folder", "file", "too long"])
@pytest.mark.parametrize("command", WITH_PATH)
def test_a_long_path_is_not_repeated_whole(
    rkcnn: Run, command: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ("a folder with a long name " * 6) / ("another-folder-" * 12) / ("x" * 200)
    if kind == "folder":
        path.mkdir(parents=True)
    elif kind == "file":
        path.parent.mkdir(parents=True)
        path.write_bytes(b"anything")
    elif kind == "too long":
        path = path / ("y" * 300)
    code, _, err = rkcnn(*(word.replace("P", str(path)) if word in _PATHS else word for word in command.split()))
    assert code in (0, 2), err
    assert [len(line) for line in err.splitlines() if len(line) > 320] == [], err
    assert sum(line.startswith("rkcnn: ") for line in err.splitlines()) == (code == 2)


_PATHS = ("P", "npz:P", "folder:P")

SMALLEST = {
    "RKCNN-I-2@k=32": 10,
    "ResNet@k=32,stem=conv": 2,
    "RKCNN-I-2_2_2@k=8": 8,
    "RKCNN-I-2_2_2@k=8,stem=odenet": 34,
    "ODENet-ab@k=8_8_8": 8,
    "ResNet-1001": 5,  # its strides round up, poolings round down
    "DenseNet-L100-k24": 8,
    "DenseNet-BC-L250-k24": 8,
    "DenseNet-BC-L190-k40": 8,
    "CliqueNet-k80-T18": 8,
    "CliqueNet-k150-T30": 8,
    "MomentumResNet-101": 9,
    "RKNet-64": 10,
    "ODENet-64": 10,
    "SONODE-64": 10,
}


def test_every_published_original_says_its_smallest_image() -> None:
    assert set(ORIGINALS) <= set(SMALLEST)


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_image_works_and_one_less_cant(rkcnn: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    side = SMALLEST[name]
    check_refusal(rkcnn("describe", name, "--size", str(side - 1)), f"smallest it can take is {side}x{side}")
    with torch.device("meta"):
        network = create_model(name)
    assert cost(network, side).flops > 0
    monkeypatch.setattr(Network if isinstance(network, Network) else type(network), "smallest", 1)
    if side > 2 and "64" not in name:  # groups of two channels still have a variance at one pixel
        with pytest.raises((ValueError, RuntimeError)):
            cost(network, side - 1)


PIECES = (
    *FAMILIES,
    *OPTIONS,
    *("-", "@", "=", ",", "_", "k", "r", "k=", "E", "I", "R", "bottleneck", "rk4_38", "abm", "0", "1", "2", "2_2"),
    *("32", "on", "off", "gn", "1e-3", "nan", "٣", "²", "\x00", "\n", " "),
)


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=14).map("".join)))
@settings(deadline=None)  # other tests share the two cores
@example("RKCNN-I-2@k=32,tol=1e999")
@example("RKCNN-I-2@k=" + "9" * 5000)
@example("ß-2@k=3")
def test_any_text_is_a_network_or_one_sentence(text: str) -> None:
    with suppress(InputError):
        spec = parse(text)
        assert isinstance(spec, ModelSpec)
        assert parse(str(spec)) == spec
