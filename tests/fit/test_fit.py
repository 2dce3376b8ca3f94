"""The loop over epochs, of one run and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fit.bench import RECIPE, trainer
from rkcnn.fit.engine import Engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.fit import Diverged, fit


def test_epochs_come_in_order_with_their_means() -> None:
    run = trainer()
    epochs = [epoch for _, epoch in fit([Engine(run)])]
    assert all(isinstance(epoch, TrainingEpoch) for epoch in epochs)
    assert [epoch.number for epoch in epochs if isinstance(epoch, TrainingEpoch)] == [0, 1]
    assert run.finished
    first = epochs[0]
    assert isinstance(first, TrainingEpoch)
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


def test_a_step_that_breaks_the_weights_is_seen_at_the_epochs_end() -> None:
    """The loss of the last step was finite: it was taken before the step."""
    run = trainer()
    engine = Engine(run)

    def observe() -> bool:
        if run.step == run.steps:
            with torch.no_grad():
                run.network.get_parameter("classifier.bias").fill_(torch.inf)
        return False

    ((_, outcome),) = fit([engine], observe)
    assert isinstance(outcome, Diverged)
    assert str(outcome) == "the weights are not finite at epoch 1, step 4, lr 0.05"
    assert not run.sound


def test_it_is_observed_after_every_step_and_can_be_stopped_at_rest() -> None:
    run = trainer()
    seen = []

    def observe() -> bool:
        seen.append((run.epoch, run.step))
        return len(seen) >= 6

    def rest() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(fit([Engine(run)], observe, rest))
    assert seen == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]
    assert (run.epoch, run.step) == (1, 2)


def test_asked_after_the_last_step_it_is_finished_not_stopped() -> None:
    run = trainer()

    def rest() -> None:
        assert not run.finished

    assert len(list(fit([Engine(run)], lambda: True, rest))) == 2


def test_an_epoch_broken_off_goes_on_where_it_stood() -> None:
    whole, broken = trainer(), trainer()
    list(fit([Engine(whole)]))
    stop = iter([False, True])

    def rest() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(fit([Engine(broken)], lambda: next(stop, False), rest))
    list(fit([Engine(broken)]))
    assert all(torch.equal(a, b) for a, b in zip(whole.state(), broken.state(), strict=True))


class Clock:
    """Moved by hand."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """One on which a step takes a second."""
    made, advance = Clock(), Engine.advance

    def advance_slowly(engine: Engine) -> None:
        made.pass_by(1.0)
        advance(engine)

    monkeypatch.setattr("rkcnn.fit.fit.time", made)
    monkeypatch.setattr(Engine, "advance", advance_slowly)
    return made


def test_seconds_are_those_of_the_steps(clock: Clock) -> None:
    """Not of what is done with an epoch, with that of a run beside, or at rest; and images are those it saw."""
    runs = [trainer(seed=seed, recipe=replace(RECIPE, epochs=1)) for seed in (1, 2)]
    found = []
    for _, outcome in fit([Engine(run) for run in runs], lambda: True, lambda: clock.pass_by(100)):
        found.append(outcome)
        clock.pass_by(1000)
    for outcome in found:
        assert isinstance(outcome, TrainingEpoch)
        assert outcome.images == 56
        assert outcome.seconds == 8, "four steps of both: they share the device"


def test_a_run_that_goes_on_has_the_seconds_before(clock: Clock) -> None:
    run = trainer(recipe=replace(RECIPE, epochs=1))
    run.begin_epoch()
    Engine(run).advance()
    run.seconds = 1000.0
    ((_, outcome),) = fit([Engine(run)])
    assert isinstance(outcome, TrainingEpoch)
    assert outcome.seconds == 1003


def test_a_solver_that_may_fail_is_counted() -> None:
    run = trainer("ODENet-abm@k=4", recipe=replace(RECIPE, epochs=1))
    ((_, epoch),) = fit([Engine(run)])
    assert isinstance(epoch, TrainingEpoch)
    assert epoch.evaluations is not None
    assert 10 <= epoch.evaluations <= 13
    assert epoch.unconverged is not None
    assert 0 <= epoch.unconverged <= 1
    assert run.finished


def test_solves_of_an_evaluation_are_not_counted() -> None:
    run = trainer("ODENet-abm@k=4", recipe=replace(RECIPE, epochs=2))
    counts = []
    for _, outcome in fit([Engine(run)]):
        assert isinstance(outcome, TrainingEpoch)
        run.network.eval()
        run.network(torch.zeros(2, 1, 28, 28))
        counts.append(run.tallies[0].solves)
    assert counts == [0, 0]
