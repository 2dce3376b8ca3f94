"""rkcnn describe: one network as a tree."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
KNOWN = "RKCNN-I-2_2_2@k=120"


def ask(rkcnn: Run, *arguments: str) -> dict[str, Any]:
    code, out, err = rkcnn("describe", *arguments, "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_known_network_part_by_part(rkcnn: Run) -> None:
    answer = ask(rkcnn, KNOWN)
    assert [answer[key] for key in ("name", "classes", "channels", "size")] == [KNOWN, 10, 3, 32]
    assert {part["title"]: part["shape"] for part in answer["tree"]["parts"]} == {
        "preprocessor": [120, 32, 32],
        "period 1": [120, 32, 32],
        "transition 1": [120, 16, 16],
        "period 2": [120, 16, 16],
        "transition 2": [120, 8, 8],
        "period 3": [120, 8, 8],
        "postprocessor, readout 1": [120],
        "postprocessor, readout 2": [120],
        "postprocessor, readout 3": [120],
        "postprocessor, classifier": [10],
    }
    (step,) = answer["tree"]["parts"][1]["parts"]
    stages = {part["title"]: part["params"] for part in step["parts"]}
    k = 120  # 2c + ck + 2k + 9k^2 on c channels: y alone, and y with one other
    one, two = (2 * c + c * k + 2 * k + 9 * k * k for c in (k, 2 * k))
    assert stages == {
        "Phase I, stage 1": one,
        "Phase I, stage 2": two,
        "Phase II, stage 1": two,
        "Phase II, stage 2": two,
    }
    cost = answer["cost"]
    assert (cost["params"], cost["paper_flops"], cost["evaluations"]) == (1_931_530, 1_706_941_080, 12)


@pytest.mark.parametrize("option", ["--classes", "--channels", "--size"])
def test_no_number_is_rounded(rkcnn: Run, option: str) -> None:
    code, _, err = rkcnn("describe", KNOWN, option, "2.7")
    assert (code, err) == (2, f"rkcnn: Invalid value for {option}: 2.7 is not a whole number\n")


def test_options_reach_the_network(rkcnn: Run) -> None:
    usual = ask(rkcnn, KNOWN)
    other = ask(rkcnn, KNOWN, "--classes", "100", "--channels", "1", "--size", "48")
    assert (other["classes"], other["channels"], other["size"]) == (100, 1, 48)
    assert other["tree"]["shape"] == [100]
    assert other["tree"]["parts"][0]["shape"] == [120, 48, 48]
    assert other["cost"]["params"] - usual["cost"]["params"] == 90 * (360 + 1) - 2 * 9 * 120


@pytest.mark.parametrize(("name", "channels", "size"), [("rknet-64", 1, 28), ("cliquenet-k80-t18", 3, 32)])
def test_an_image_is_mnists_for_one_period_and_cifars_else(rkcnn: Run, name: str, channels: int, size: int) -> None:
    answer = ask(rkcnn, name)
    assert (answer["channels"], answer["size"]) == (channels, size)


def test_json_says_what_the_paper_printed_and_its_misprints(rkcnn: Run) -> None:
    (row,) = ask(rkcnn, "DenseNet-2@k=32")["paper"]
    assert (row["table"], row["params"], row["params_unit"], row["flops"], row["flops_unit"]) == (
        "tb:MNIST",
        "57.55",
        "K",
        "8.65",
        "M",
    )
    assert set(row["misprints"]) == {"params"}


PRINTED = {
    KNOWN: [
        "paper prints   1.932 M params (1.964 M with 100 classes), 1.707 G FLOPs "
        "(table “SVHN, CIFAR-10 and CIFAR-100”, RKCNN-I-2_2_2)\n"
    ],
    "RKCNN-E-2@k=32": [
        "55.50 K params, 8.65 M FLOPs (table “MNIST”, RKCNN-E-2)",
        "0.06 M params (table “State of the art on MNIST”, RKCNN-E-2)",
    ],
    "RKNet-radau3@k=32": ["52.94 K params (table “MNIST”, RK-Net (5th-order IRK))"],
    "ODENet-abm@k=32": [">19.49 M FLOPs", ">20,793,216", ">19,485,024", ">10 of f", ">13,685,760 FLOPs", "  640 FLOPs"],
    "MomentumResNet-101": [
        "misprint",
        "params with 100 classes: 139.2 M matches no 4-stage",
        "FLOPs: 14.79 G is the count at double width",
    ],
    "RKNet-64": ["misprint", "params: quoted from Chen et al."],
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_tree_ends_with_what_the_paper_printed(rkcnn: Run, name: str) -> None:
    code, out, _ = rkcnn("describe", name)
    assert code == 0
    assert out.startswith(f"{name}: ")
    assert all(words in out for words in PRINTED[name]), out


def test_a_network_that_the_paper_lacks_has_nothing_printed(rkcnn: Run) -> None:
    code, out, _ = rkcnn("describe", "RKCNN-I-3@k=7")
    assert code == 0
    assert "paper prints" not in out


def test_a_line_is_a_part(rkcnn: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parts = [line for line in rkcnn("describe", "MomentumResNet-101")[1].splitlines() if "──" in line]
    assert all(line.endswith("FLOPs") for line in parts)
