"""The training loop, of one run and of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from fit.bench import RECIPE, trainer
from rkcnn.fit.engine import Engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.fit import Diverged, EpochDone, Paused, StepsDone, fit
from rkcnn.fit.trainer import Trainer


def train(runs: Sequence[Trainer]) -> list[EpochDone | Diverged]:
    """Train to the end, and return what happened but the steps."""
    events = fit([Engine(run) for run in runs])
    return [event for event in events if isinstance(event, EpochDone | Diverged)]


def train_one(run: Trainer) -> list[TrainingEpoch]:
    return [event.epoch for event in train([run]) if isinstance(event, EpochDone)]


def test_epochs_come_in_order_with_their_means() -> None:
    run = trainer()
    epochs = train_one(run)
    assert [epoch.number for epoch in epochs] == [0, 1]
    assert run.finished
    assert 1.5 < epochs[0].loss < 3.5
    assert epochs[0].training_error * 56 == pytest.approx(round(epochs[0].training_error * 56))


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({"milestones": (1,)}, [0.05, 0.005]),
        ({"schedule": "triangle", "peak": 0.25}, [0.05 * 5 / 6, 0.05 * 1 / 6]),  # rises over 2 of 8 steps
    ],
)
def test_an_epoch_has_the_rate_of_its_last_step(schedule: dict[str, Any], rates: list[float]) -> None:
    found = [epoch.lr for epoch in train_one(trainer(recipe=replace(RECIPE, **schedule)))]
    assert found == pytest.approx(rates)


def test_runs_side_by_side_are_those_alone() -> None:
    alone = [trainer(seed=seed) for seed in (1, 2)]
    for run in alone:
        train([run])
    together = [trainer(seed=seed) for seed in (1, 2)]
    assert [event.run for event in train(together)] == [0, 1, 0, 1]
    for one, two in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.state().values(), two.state().values(), strict=True))


def test_a_diverging_run_ends_and_the_others_go_on() -> None:
    bad, good = trainer(seed=1), trainer(seed=2)
    with torch.no_grad():
        bad.network.get_parameter("classifier.weight").fill_(torch.nan)
    events = train([bad, good])
    assert [event for event in events if event.run == 0] == [
        Diverged(0, "the loss is not finite at epoch 1, step 1, lr 0.05")
    ]
    assert good.finished


def test_a_step_that_breaks_the_weights_is_seen_at_the_epochs_end() -> None:
    """The loss of the last step was finite: it was taken before the step."""
    run = trainer()
    ended = []
    for event in fit([Engine(run)]):
        if isinstance(event, StepsDone) and run.step == run.steps:
            with torch.no_grad():
                run.network.get_parameter("classifier.bias").fill_(torch.inf)
        elif not isinstance(event, StepsDone):
            ended.append(event)
    assert ended == [Diverged(0, "the weights are not finite at epoch 1, step 4, lr 0.05")]
    assert not run.is_finite


def test_it_says_when_steps_are_done_and_rests_where_asked() -> None:
    run = trainer()
    seen = []
    for event in fit([Engine(run)]):
        if isinstance(event, StepsDone):
            seen.append((run.epoch, run.step))
            event.pause = len(seen) >= 6
        elif isinstance(event, Paused):
            break
    assert seen == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]
    assert (run.epoch, run.step) == (1, 2)


def test_it_rests_between_epochs_and_not_after_the_last() -> None:
    """A rest asked for at an epoch's last step comes after that epoch, where a checkpoint can be written."""
    run = trainer()
    seen: list[object] = []
    for event in fit([Engine(run)]):
        if isinstance(event, StepsDone):
            event.pause = run.step == run.steps
        else:
            seen.append((type(event), run.epoch, run.step))
    assert seen == [(EpochDone, 1, 0), (Paused, 1, 0), (EpochDone, 2, 0)]


def test_an_epoch_broken_off_goes_on_where_it_stood() -> None:
    whole, broken = trainer(), trainer()
    train([whole])
    for event in fit([Engine(broken)]):
        if isinstance(event, StepsDone):
            event.pause = broken.step == 2
        elif isinstance(event, Paused):
            break
    assert (broken.epoch, broken.step) == (0, 2)
    train([broken])
    assert all(torch.equal(a, b) for a, b in zip(whole.state().values(), broken.state().values(), strict=True))


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
    for event in fit([Engine(run) for run in runs]):
        if isinstance(event, StepsDone):
            event.pause = True
        elif isinstance(event, Paused):
            clock.pass_by(100)
        else:
            found.append(event)
            clock.pass_by(1000)
    for event in found:
        assert isinstance(event, EpochDone)
        assert event.epoch.images == 56
        assert event.epoch.seconds == 8, "four steps of both: they share the device"


def test_a_device_is_waited_for_only_at_rest_and_at_an_epochs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that on a GPU the host stays ahead, and steps of several runs overlap."""
    waits: list[tuple[int, int]] = []
    runs = [trainer(seed=seed, recipe=replace(RECIPE, epochs=1)) for seed in (1, 2)]
    monkeypatch.setattr(Engine, "wait", lambda engine: waits.append((engine.trainer.seed, engine.trainer.step)))
    for event in fit([Engine(run) for run in runs]):
        if isinstance(event, StepsDone):
            event.pause = runs[0].step == 2
    assert waits == [(1, 2), (2, 2), (1, 4), (2, 4)]


def test_a_run_that_goes_on_has_the_seconds_before(clock: Clock) -> None:
    run = trainer(recipe=replace(RECIPE, epochs=1))
    run.begin_epoch()
    Engine(run).advance()
    run.seconds = 1000.0
    (epoch,) = train_one(run)
    assert epoch.seconds == 1003


def test_a_solver_that_may_fail_is_counted() -> None:
    run = trainer("ODENet-abm@k=4", recipe=replace(RECIPE, epochs=1))
    (epoch,) = train_one(run)
    assert epoch.evaluations is not None
    assert 10 <= epoch.evaluations <= 13
    assert epoch.unconverged is not None
    assert 0 <= epoch.unconverged <= 1
    assert run.finished


def test_solves_of_an_evaluation_are_not_counted() -> None:
    run = trainer("ODENet-abm@k=4", recipe=replace(RECIPE, epochs=2))
    counts = []
    for event in fit([Engine(run)]):
        if isinstance(event, EpochDone):
            run.network.eval()
            run.network(torch.zeros(2, 1, 28, 28))
            counts.append(run.solver_stats[0].solves)
    assert counts == [0, 0]
