"""Networks from names."""

from __future__ import annotations

import pytest
import torch

import rkcnn
from rkcnn.error import InputError
from rkcnn.model.published.originals import ORIGINALS
from rkcnn.record.tables import list_models


@pytest.mark.parametrize("name", list_models())
def test_every_listed_network_is_built_under_its_name(name: str) -> None:
    with torch.device("meta"):
        assert rkcnn.create_model(name).name == name
        assert rkcnn.create_model(name.lower()).name == name


def test_every_original_stands_in_a_table() -> None:
    assert set(ORIGINALS) <= set(list_models())


def test_classes_and_channels() -> None:
    network = rkcnn.create_model("RKCNN-E-2@k=8", classes=7, channels=5)
    assert network(torch.randn(2, 5, 12, 14)).shape == (2, 7)


def test_a_seed_gives_the_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        states.append(rkcnn.create_model("RKCNN-I-2_2@k=8").state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("ResNet-1002", {}, "did you mean ResNet-1001?"),
        ("CliqueNet-k80", {}, "did you mean CliqueNet-k80-T18?"),
        ("nothing", {}, "families are"),
        ("ResNet@k=8", {"classes": 0}, "both must be at least 1"),
        ("ResNet@k=8", {"channels": -1}, "both must be at least 1"),
        ("ResNet@k=8", {"dropout": 1.0}, "below 1"),
    ],
)
def test_bad_input_gets_one_clear_sentence(name: str, settings: dict[str, float], says: str) -> None:
    with pytest.raises(InputError) as caught:
        rkcnn.create_model(name, **settings)  # type: ignore[arg-type]
    assert says in str(caught.value)
