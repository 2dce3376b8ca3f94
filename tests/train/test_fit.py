"""The loop over epochs, of one run and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rkcnn.train.engine import Engine
from rkcnn.train.fit import Diverged, Epoch, fit
from train.bench import RECIPE, trainer


def test_epochs_come_in_order_with_their_means() -> None:
    run = trainer()
    epochs = [epoch for _, epoch in fit([Engine(run)])]
    assert all(isinstance(epoch, Epoch) for epoch in epochs)
    assert [epoch.number for epoch in epochs if isinstance(epoch, Epoch)] == [0, 1]
    assert run.finished
    first = epochs[0]
    assert isinstance(first, Epoch)
    assert 1.5 < first.loss < 3.5
    assert first.error * 56 == pytest.approx(round(first.error * 56))


def test_runs_side_by_side_are_those_alone() -> None:
    alone = [trainer(seed=seed) for seed in (1, 2)]
    for run in alone:
        list(fit([Engine(run)]))
    together = [trainer(seed=seed) for seed in (1, 2)]
    order = [i for i, _ in fit([Engine(run) for run in together])]
    assert order == [0, 1, 0, 1]
    for one, two in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.state(), two.state(), strict=True))


def test_a_diverging_run_ends_and_the_others_go_on() -> None:
    bad, good = trainer(seed=1), trainer(seed=2)
    with torch.no_grad():
        bad.network.get_parameter("classifier.weight").fill_(torch.nan)
    outcomes = list(fit([Engine(bad), Engine(good)]))
    diverged = [outcome for i, outcome in outcomes if i == 0]
    assert len(diverged) == 1
    assert isinstance(diverged[0], Diverged)
    assert str(diverged[0]) == "the loss is not finite at epoch 1, step 1, lr 0.05"
    assert good.finished


def test_between_is_called_after_every_step_and_can_stop() -> None:
    run = trainer()
    seen = []

    def between() -> None:
        seen.append((run.epoch, run.step))
        if len(seen) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(fit([Engine(run)], between))
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]


def test_an_epoch_broken_off_goes_on_where_it_stood() -> None:
    whole, broken = trainer(), trainer()
    list(fit([Engine(whole)]))
    stop = iter([False, True])

    def between() -> None:
        if next(stop, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(fit([Engine(broken)], between))
    list(fit([Engine(broken)]))
    assert all(torch.equal(a, b) for a, b in zip(whole.state(), broken.state(), strict=True))


def test_a_solver_that_may_fail_is_counted() -> None:
    run = trainer("ODENet-abm@k=4", recipe=replace(RECIPE, epochs=1))
    ((_, epoch),) = fit([Engine(run)])
    assert isinstance(epoch, Epoch)
    assert epoch.evaluations is not None
    assert 10 <= epoch.evaluations <= 13
    assert epoch.unconverged is not None
    assert 0 <= epoch.unconverged <= 1
    assert run.finished
