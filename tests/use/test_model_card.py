"""The card says what the record says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from rkcnn.escape import escape_markdown
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.families import FAMILIES, ORIGINALS, Family
from rkcnn.model.period import Period
from rkcnn.record.result import Result, read_result
from rkcnn.use.model_card import describe_data, describe_start, without_folders, write_card
from zoo import ZOO

RECORD = Path(__file__).parents[2] / "results" / "mnist-mini" / "RKCNN-R-2@k=32" / "mini" / "seed-0" / "result.json"
DIGITS = NetworkDescription("RKCNN-R-2@k=32", 1, (28, 28), tuple("0123456789"), (0.1307,), (0.3081,))


@pytest.fixture
def result() -> Result:
    return read_result(RECORD)


def test_the_last_epoch_is_the_headline_and_the_best_is_said_to_be_chosen(result: Result) -> None:
    card = write_card(DIGITS, result, "me/digits", "mit")
    last = card.index("**The test error after the last epoch is 1.30 %.**")
    best = card.index("The lowest of all 18 epochs is 1.25 %, after epoch")
    assert last < best < card.index("That epoch is chosen on the test set")
    assert card.partition("\n---\n")[0].endswith("\n      value: 0.987")
    assert "1.25" not in card.partition("\n---\n")[0]


def test_it_has_the_facts_of_the_record(result: Result) -> None:
    card = write_card(DIGITS, result, "me/digits", "cc-by-4.0")
    for fact in (
        'license: "cc-by-4.0"\n',
        "library_name: rkcnn\npipeline_tag: image-classification\n",
        "# RKCNN-R-2@k=32, trained on mnist-mini\n",
        "    x_i = E_i(y, x_1 .. x_(i-1))\n    e_i = I_i(y, x_1 .. x_(i-1), x_(i+1) .. x_s)\n    y_next = y + e_1 + ",
        "| images | 28 x 28 pixels, 1 channel |",
        "with mean = [0.1307] and std = [0.3081] |",
        "| classes | 10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 |",
        "| parameters | 78,410 |",
        "| data | mnist-mini; its content has the published checksums |",
        "| recipe | `mini`: epochs 18, batch 128, lr 0.1, schedule steps, milestones 9_14,",
        "| seed | 0 |",
        "commit `a7e1412888fa`",
        'rkcnn.Classifier.from_pretrained("me/digits")',
        "The licence of these weights is `cc-by-4.0`",
    ):
        assert fact in card, fact


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("RKCNN-I-2_2_2@k=26_28_28.cifar10", "RKCNN-I-2_2_2@k=26_28_28.cifar10"),
        ("/home/me/runs/mnist-mini/ResNet@k=4/mini/seed-0", "mnist-mini/ResNet@k=4/mini/seed-0"),
        ("/home/me/runs/mnist/a@k=4/mini/seed-0/weights.safetensors", "mnist/a@k=4/mini/seed-0/weights.safetensors"),
        (None, "weights of sha256 22ec07331e8f..."),
    ],
)
def test_it_names_the_weights_that_it_started_from(result: Result, given: str | None, said: str) -> None:
    assert describe_start(result) == ""
    assert "started from" not in write_card(DIGITS, result, "me/digits", "mit")
    run = replace(result.run, recipe=replace(result.run.recipe, initial_weights="22ec07331e8f"))
    tuned = replace(result, run=run, data={**result.data, **({"init_from": given} if given else {})})
    assert describe_start(tuned) == said
    assert f"| started from | {escape_markdown(said)} |" in write_card(DIGITS, tuned, "me/digits", "mit")
    assert "/home/me" not in str(without_folders(tuned).as_dict())


def test_other_seeds_are_told(result: Result) -> None:
    assert "With seeds" not in write_card(DIGITS, result, "me/digits", "mit", [result])
    others = [replace(result, run=replace(result.run, seed=seed), error=0.013 + 0.001 * seed) for seed in (2, 1)]
    card = write_card(DIGITS, result, "me/digits", "mit", [result, *others])
    assert (
        "With seeds 0, 1, 2 the same run ends at 1.400 ± 0.100 % (mean ± standard deviation); this is seed 0." in card
    )


def test_a_data_set_has_the_name_it_has_there(result: Result) -> None:
    card = write_card(DIGITS, replace(result, run=replace(result.run, data="mnist")), "me/digits", "mit")
    assert "datasets:\n- ylecun/mnist\n" in card
    validated = replace(result, run=replace(result.run, data="mnist~validation-100"))
    card = write_card(DIGITS, validated, "me/digits", "mit")
    assert "**The validation error after the last epoch" in card


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("folder:/home/me/photos", "folder:photos"),
        ("folder:photos", "folder:photos"),
        ("npz:C:\\me\\digits.npz", "npz:digits.npz"),
        ("mnist-mini", "mnist-mini"),
    ],
)
def test_no_folder_of_the_user_is_told(data: str, shown: str) -> None:
    assert describe_data(data) == shown


def test_without_a_record_it_says_so() -> None:
    card = write_card(DIGITS, None, "me/digits", "mit")
    assert "The record of its training is not with these weights" in card
    assert "model-index" not in card


def test_class_names_stay_in_their_cell() -> None:
    card = write_card(replace(DIGITS, classes=("a|b", "c")), None, "me/digits", "mit")
    assert "| classes | 2: a\\|b, c |" in card


@pytest.mark.parametrize("network", [*ZOO, *ORIGINALS, "resnet-1001"])
def test_every_network_has_a_card(network: str) -> None:
    card = write_card(replace(DIGITS, network=network), None, "me/digits", "mit")
    assert f"| network | `{network}` |" in card
    assert ("A period of its time-steps computes\n\n    " in card) != ("as its own authors published it" in card)
    assert ("timm" in card) == ("as its own authors published it" not in card)


def test_a_step_from_outside_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Period):
        """y' = y / 2"""

        def __init__(self, *_: object) -> None:
            nn.Module.__init__(self)

    monkeypatch.setitem(FAMILIES, "Mine", Family("Mine", about="half of it", period=Mine))
    card = write_card(replace(DIGITS, network="Mine@k=8"), None, "me/digits", "mit")
    assert "Mine: half of it. It is not part of rkcnn: register its class before you load it." in card
    assert "    y' = y / 2\n" in card


def test_the_error_has_its_interval_where_the_number_of_images_is_known(result: Result) -> None:
    few = replace(result, error=7 / 42, data={**result.data, "held_out_images": 42})
    card = write_card(DIGITS, few, "me/digits", "mit")
    assert "is 16.67 % of 42 images (95 % interval 8.3 to 30.6 %).**" in card, "Wilson's, as the table of a run has it"
