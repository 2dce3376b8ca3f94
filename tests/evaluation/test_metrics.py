"""Predictions and their metrics."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.evaluation.metrics import BINS, Predictor, calibration_error, measure
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


def test_an_exception_leaves_the_network_as_it_was(digits: Images) -> None:
    network = nn.Linear(3, 3).train()  # which takes no images
    with pytest.raises(RuntimeError):
        Predictor(digits, torch.device("cpu")).logits(network)
    assert network.training


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


@st.composite
def answers(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, int]:
    classes = draw(st.integers(1, 6))
    count = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    logits = draw(st.sampled_from([0.1, 1.0, 30.0])) * torch.randn(count, classes, generator=generator)
    return logits, torch.randint(classes, (count,), generator=generator), classes


def naive_calibration(probability: list[float], right: list[bool]) -> float:
    total = 0.0
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        inside = [i for i, p in enumerate(probability) if low < p <= high]
        if inside:
            confidence = sum(probability[i] for i in inside) / len(inside)
            accuracy = sum(right[i] for i in inside) / len(inside)
            total += len(inside) / len(right) * abs(confidence - accuracy)
    return total


@given(st.lists(st.tuples(st.floats(0.011, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_error_is_its_definition(pairs: list[tuple[float, bool]]) -> None:
    probability, right = [p for p, _ in pairs], [r for _, r in pairs]
    if any(abs(p * BINS - round(p * BINS)) < 1e-9 for p in probability if p < 1):
        return  # on a bin's very edge the two may round apart
    ours = calibration_error(torch.tensor(probability, dtype=torch.float64), torch.tensor(right))
    assert ours == pytest.approx(naive_calibration(probability, right), abs=1e-9)


def test_calibration_error_where_all_probabilities_are_one() -> None:
    sure = torch.ones(4, dtype=torch.float64)
    assert calibration_error(sure, torch.tensor([True] * 4)) == 0
    assert calibration_error(sure, torch.tensor([False] * 4)) == 1


@given(answers())
def test_every_number_is_its_definition(given_: tuple[torch.Tensor, torch.Tensor, int]) -> None:
    logits, labels, classes = given_
    found = measure(logits, labels, classes)
    predicted = logits.argmax(1).tolist()
    pairs = list(zip(labels.tolist(), predicted, strict=True))
    assert found.images == len(pairs)
    assert found.wrong == sum(a != b for a, b in pairs)
    for number in range(classes):
        hits, of, taken = (
            sum(a == b == number for a, b in pairs), sum(a == number for a, _ in pairs), predicted.count(number)
        )  # fmt: skip
        precision, recall = hits / taken if taken else 0.0, hits / of if of else 0.0
        expected = 2 * precision * recall / (precision + recall) if hits else (0.0 if of + taken else None)
        assert found.class_f1[number] == pytest.approx(expected)
    errors = [error for error in found.class_errors if error is not None]
    assert found.balanced_error == pytest.approx(sum(errors) / len(errors))
    assert found.error == found.wrong / found.images
    for i in range(classes):
        assert list(found.confusion[i]) == [pairs.count((i, j)) for j in range(classes)]
        mine = [b for a, b in pairs if a == i]
        assert found.class_errors[i] == (pytest.approx(sum(b != i for b in mine) / len(mine)) if mine else None)
    naive = 0.0
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        top = max(row)
        naive -= row[label] - top - math.log(sum(math.exp(value - top) for value in row))
    assert found.nll == pytest.approx(naive / len(pairs), rel=1e-9, abs=1e-12)
    assert [mistake.image for mistake in found.mistakes] == sorted(
        (i for i, (a, b) in enumerate(pairs) if a != b), key=lambda i: -float(logits[i].double().softmax(0).max())
    )
    assert all(m.label != m.taken_for == predicted[m.image] for m in found.mistakes)
    assert json.loads(json.dumps(found.as_dict()))["wrong"] == found.wrong
