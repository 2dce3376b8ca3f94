"""The trainer and its optimiser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fit.bench import RECIPE, trainer
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.trainer import SGD, Trainer


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_ten_steps_are_those_of_torch(nesterov: bool, decay: float) -> None:
    torch.manual_seed(0)
    ours = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    optimiser = torch.optim.SGD(theirs, lr=0.3, momentum=0.9, nesterov=nesterov, weight_decay=decay)
    mine = SGD(ours, 0.9, nesterov, decay)
    for step in range(10):
        for group in (ours, theirs):
            for p in group:
                p.grad = p.detach().sin() + step
        optimiser.param_groups[0]["lr"] = 0.3 / (step + 1)
        optimiser.step()
        mine.step(torch.tensor(0.3 / (step + 1), dtype=torch.float64))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def steps(run: Trainer, count: int) -> None:
    for _ in range(count):
        run.learn(*run.prepare())
        run.step += 1


def test_the_decay_acts_on_the_parameters_that_it_is_asked_for() -> None:
    torch.manual_seed(0)
    ours = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    groups: list[dict[str, Any]] = [{"params": [theirs[0], theirs[2]]}, {"params": [theirs[1]], "weight_decay": 0.0}]
    optimiser = torch.optim.SGD(groups, lr=0.3, momentum=0.9, weight_decay=0.1)
    mine = SGD(ours, 0.9, False, 0.1, [True, False, True])
    for _ in range(3):
        for p in (*ours, *theirs):
            p.grad = p.detach().sin()
        optimiser.step()
        mine.step(torch.tensor(0.3, dtype=torch.float64))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_step_by_hand() -> None:
    """p <- p - lr (g + decay p) for the first step, with the mean loss of the batch."""
    run = trainer(recipe=replace(RECIPE, weight_decay=0.01, label_smoothing=0.1))
    before = [p.detach().clone() for p in run.network.parameters()]
    batch = run.batches.at(0, 0)
    loss = F.cross_entropy(run.network.train()(batch.pixels), batch.labels, label_smoothing=0.1)
    gradients = torch.autograd.grad(loss, list(run.network.parameters()))
    other = trainer(recipe=run.recipe)
    other.begin_epoch()
    steps(other, 1)
    for p, old, g in zip(other.network.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(p.detach(), old - 0.05 * (g + 0.01 * old), rtol=1e-5, atol=1e-6)
    mean, wrong, seen, good = other.totals.tolist()
    assert good == 1
    assert mean / 16 == pytest.approx(float(loss.detach()), rel=1e-5)
    assert (0 <= wrong <= 16, seen) == (True, 16)


def test_a_step_with_cutmix_by_hand() -> None:
    """The loss of each label counts by its share of the image's area; the answer is the label with the larger share."""
    run = trainer(recipe=replace(RECIPE, cutmix=1.0))
    batch = run.batches.at(0, 0)
    assert batch.mix is not None
    own, other = (F.one_hot(labels, 10).double() for labels in (batch.labels, batch.mix.labels))
    target = own * (1 - batch.mix.share[:, None]) + other * batch.mix.share[:, None]
    logits = run.network.train()(batch.pixels).detach().double()
    loss = -(target * logits.log_softmax(1)).sum(1).mean()
    same = trainer(recipe=run.recipe)
    same.begin_epoch()
    steps(same, 1)
    mean, wrong, seen, _ = same.totals.tolist()
    assert mean / seen == pytest.approx(float(loss), rel=1e-5)
    assert wrong == (logits.argmax(1) != target.argmax(1)).sum()


def test_the_answer_to_a_mixed_image_is_the_label_with_the_larger_share() -> None:
    run = trainer(recipe=replace(RECIPE, batch=56, cutmix=1.0))
    batch = run.batches.at(0, 0)
    assert batch.mix is not None
    own, other = batch.labels, batch.mix.labels
    assert ((own != other) & (batch.mix.share > 0.5)).any()
    assert ((own != other) & (batch.mix.share < 0.5)).any()
    largest = torch.where(batch.mix.share > 0.5, other, own)
    for answers, wrong in ((largest, 0), (own, int((own != largest).sum())), (other, int((other != largest).sum()))):
        run.model = Answers(answers)
        assert int(run.forward(*run.prepare())[1][1]) == wrong


class Answers(nn.Module):
    """Gives these classes, whatever the images."""

    def __init__(self, classes: torch.Tensor) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return F.one_hot(self.classes, 10).float()


def test_norms_and_biases_need_not_decay() -> None:
    run = trainer(recipe=replace(RECIPE, weight_decay=0.5, decay_norms=False))
    plain = trainer(recipe=replace(RECIPE, weight_decay=0.0))
    for each in (run, plain):
        each.begin_epoch()
        steps(each, 1)
    for (name, p), q in zip(run.network.named_parameters(), plain.network.parameters(), strict=True):
        assert torch.equal(p, q) == (p.dim() == 1), name


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_same_seed_trains_the_same_weights_whatever_else_draws(dropout: float) -> None:
    recipe = replace(RECIPE, dropout=dropout)
    one, two = trainer(recipe=recipe), trainer(recipe=recipe)
    steps(one, 3)
    torch.rand(7)
    steps(two, 2)
    torch.rand(11)
    steps(two, 1)
    assert all(torch.equal(a, b) for a, b in zip(one.state().values(), two.state().values(), strict=True))
    other = trainer(seed=4, recipe=recipe)
    steps(other, 3)
    assert not all(torch.equal(a, b) for a, b in zip(one.state().values(), other.state().values(), strict=True))


def test_dropout_differs_from_step_to_step() -> None:
    run = trainer(recipe=replace(RECIPE, dropout=0.5, lr=0.0, padding=0))
    losses = []
    for step in (0, 1):
        run.step = step
        run.prepare()
        run.begin_epoch()
        run.learn(*run.batches.plan(0, 0))
        losses.append(float(run.totals[0]))
    assert losses[0] != losses[1]


def test_dropout_differs_from_rank_to_rank() -> None:
    masks = []
    for rank in (0, 1):
        trainer(recipe=replace(RECIPE, dropout=0.5), ranks=Ranks(rank, 2)).prepare()
        masks.append(torch.rand(8))  # as a dropout layer draws next
    assert not torch.equal(*masks)


def test_the_average_follows_the_weights() -> None:
    run = trainer(recipe=replace(RECIPE, ema_decay=0.75))
    start = [p.clone() for p in run.averaged]
    steps(run, 1)
    for mean, old, p in zip(run.averaged, start, run.network.parameters(), strict=True):
        torch.testing.assert_close(mean, 0.75 * old + 0.25 * p.detach())


def test_the_first_step_that_is_not_finite_is_remembered() -> None:
    run = trainer(recipe=replace(RECIPE, lr=1e4))
    run.begin_epoch()
    steps(run, 1)
    with torch.no_grad():
        run.network.get_parameter("classifier.weight").fill_(torch.inf)
    steps(run, 2)
    assert int(run.totals[3]) == 1


def test_ranks_agree_on_what_is_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rank asks the others, also one whose own loss already says no: asking takes part of all of them."""
    run, asked = trainer(), []
    assert run.is_finite

    def largest(_: Ranks, value: int) -> int:
        asked.append(value)
        return 1  # as another rank says

    monkeypatch.setattr(Ranks, "largest", largest)
    assert not run.is_finite
    run.totals[3] = 7
    assert not run.is_finite
    assert asked == [0, 0]


def test_an_epoch_ends_after_most_steps() -> None:
    assert trainer().steps > 2
    assert trainer(recipe=replace(RECIPE, max_steps_per_epoch=2)).steps == 2
    assert trainer(recipe=replace(RECIPE, max_steps_per_epoch=10**6)).steps == trainer().steps


def test_head_only_changes_the_classifier_alone() -> None:
    run = trainer(recipe=replace(RECIPE, head_only=True, ema_decay=0.5, weight_decay=0.1))
    before = {name: value.clone() for name, value in run.network.state_dict().items()}
    steps(run, 2)
    changed = {name for name, value in run.network.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"classifier.weight", "classifier.bias"}
    assert {name for name in run.state() if name.startswith(("momentum.", "average."))} == {
        f"{kind}.classifier.{part}" for kind in ("momentum", "average") for part in ("weight", "bias")
    }


def test_classes_of_unequal_size_can_weigh_the_same() -> None:
    """The loss of a whole epoch at lr 0: each class counts N / classes, whatever its number of images."""
    run = trainer(recipe=replace(RECIPE, weigh_classes=True, lr=0.0, padding=0))
    run.network.eval()
    labels = run.batches.images.labels
    counts = torch.bincount(labels, minlength=10)
    indices = torch.arange(len(labels))
    losses, _ = run.forward(indices, torch.zeros(len(labels), 5, dtype=torch.int64))
    with torch.no_grad():
        each = F.cross_entropy(
            run.network(run.batches.make(indices, torch.zeros(56, 5).long()).pixels), labels, reduction="none"
        )
    by_class = torch.stack([each[labels == label].mean() for label in range(10)])
    assert counts.min() > 0
    torch.testing.assert_close(losses, 56 / 10 * by_class.sum())
