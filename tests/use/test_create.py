"""Networks with the weights that come with the package."""

from __future__ import annotations

import pytest
import torch

import rkcnn
from rkcnn.model.create import create_model as build
from rkcnn.use.create import create_model
from rkcnn.use.load import load


def test_fresh_weights_are_those_of_the_model_room() -> None:
    for arguments in ({}, {"classes": 7, "channels": 1, "dropout": 0.1, "init": "he"}):
        torch.manual_seed(3)
        ours = create_model("RKCNN-R-2@k=4", **arguments)  # type: ignore[arg-type]
        torch.manual_seed(3)
        theirs = build("RKCNN-R-2@k=4", **arguments)  # type: ignore[arg-type]
        assert ours.training
        pairs = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


def test_a_pretrained_network_is_ready_to_be_used(pretrained: str) -> None:
    trained = load(pretrained).network.state_dict()
    for network in (create_model("rkcnn-e-2@k=4", pretrained="mnist-mini"), rkcnn.create_model(pretrained)):
        assert not network.training
        assert network.name == "RKCNN-E-2@k=4"
        assert {value.dtype for value in network.parameters()} == {torch.float32}
        assert all(torch.equal(value, trained[name]) for name, value in network.state_dict().items())
        assert network(torch.zeros(1, 1, 28, 28)).shape == (1, 10)


def test_another_number_of_classes_has_a_new_classifier(pretrained: str) -> None:
    network = create_model("RKCNN-E-2@k=4", 3, pretrained="mnist-mini")
    trained = load(pretrained).network.state_dict()
    for name, value in network.state_dict().items():
        assert name.startswith("classifier.") or torch.equal(value, trained[name])
    assert network(torch.zeros(1, 1, 28, 28)).shape == (1, 3)


def test_what_does_not_fit_is_refused(pretrained: str) -> None:
    with pytest.raises(rkcnn.InputError, match="`channels=3` given; these weights are for images of 1"):
        create_model("RKCNN-E-2@k=4", channels=3, pretrained="mnist-mini")
    with pytest.raises(
        rkcnn.InputError, match="no weights of RKCNN-E-2@k=4 trained on True; there are some trained on"
    ):
        create_model("RKCNN-E-2@k=4", pretrained=True)  # type: ignore[arg-type]
    with pytest.raises(rkcnn.InputError, match="no pretrained weights of ResNet@k=4"):
        create_model("ResNet@k=4", pretrained="mnist-mini")
    with pytest.raises(rkcnn.InputError, match="a name of type int given"):
        create_model(4, pretrained="mnist-mini")  # type: ignore[arg-type]
