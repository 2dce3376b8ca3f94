"""Predictions: every image, in order, and the network is left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.evaluation.predictor import Predictor
from rkcnn.model.create import create_model

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> Images:
    return load_data_set("mnist-mini")[1].split(150)[1]


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    return create_model("ResNet@k=4", channels=1)


@pytest.mark.parametrize("batch", [1, 64, 150, 1000])
def test_each_image_gets_its_own_prediction_whatever_the_batch(digits: Images, network: nn.Module, batch: int) -> None:
    network.eval()
    with torch.no_grad():
        expected = network(digits.pixels.float() / 255)  # mnist-mini is normalised by 1/255 alone
    found = Predictor(digits, CPU, batch=batch).logits(network)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_network_is_left_as_it_was(digits: Images, network: nn.Module) -> None:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for mode in (True, False):
        network.train(mode)
        Predictor(digits, CPU).logits(network)
        assert network.training is mode
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_the_error_is_the_fraction_that_is_wrong(digits: Images) -> None:
    predictor = Predictor(digits, CPU)
    answers = digits.labels.clone()
    assert predictor.error(answers) == 0
    answers[:15] = (answers[:15] + 1) % 10
    assert predictor.error(answers) == pytest.approx(0.1)


def test_bf16_answers_in_float32(digits: Images, network: nn.Module) -> None:
    rounded = Predictor(digits, CPU, "bf16").logits(network)
    assert rounded.dtype == torch.float32
    exact = Predictor(digits, CPU).logits(network)
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.1, atol=0.1)
