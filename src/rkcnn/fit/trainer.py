"""One run in progress: everything that a step reads and changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.data.augmentation import Augmentation
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.recipe import Recipe
from rkcnn.fit.sgd import SGD
from rkcnn.model.period import Period
from rkcnn.model.solver_stats import SolverStats


@dataclass(frozen=True)
class Precision:
    """fp32, tf32 or bf16: what autocast and the matrix units may do."""

    name: str

    def autocast(self, device: torch.device) -> torch.autocast:
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.name == "bf16")


class Trainer:
    """A network, its optimiser and its batches at a position (epoch, step).

    What happens at a step is a function of the weights, the buffers and (seed, epoch, step) alone: no random state
    has to be kept. `totals` holds the epoch so far of all ranks, on the device: loss, wrong, seen, and how many steps
    had a finite loss, which stops counting at the first that had not.
    """

    def __init__(
        self,
        network: nn.Module,
        images: Images,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        ranks: Ranks | None = None,
    ) -> None:
        self.recipe, self.seed, self.device = recipe, seed, device
        self.network = network.to(device)
        # Tensor cores want channels last; on a CPU the small maps of MNIST train 1.3 times slower that way.
        self.layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
        self.network.to(memory_format=self.layout)  # type: ignore[call-overload]
        self.ranks = ranks or Ranks()
        self.batches = Batches(
            images,
            recipe.batch,
            seed,
            augmentation=Augmentation(recipe.padding, recipe.flip, recipe.cutout),
            drop_last=recipe.drop_last,
            rank=self.ranks.rank,
            world=self.ranks.world,
            device=device,
        )
        self.ranks.check_share(self.batches.whole(self.steps - 1))
        self.model = self.ranks.wrap(self.network, recipe.sync_norm)
        self.loss: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = self.forward  # or that, compiled
        self.sgd = SGD(self.network.parameters(), recipe.momentum, recipe.nesterov, recipe.weight_decay)
        self.averaged = [p.detach().clone() for p in self.network.parameters()] if recipe.average else []
        self.epoch = self.step = 0
        self.seconds = 0.0  # that the epoch took so far
        self.tallies: list[SolverStats] = [
            m.solver_stats for m in self.network.modules() if isinstance(m, Period) and m.solver_stats is not None
        ]
        self.lr = torch.zeros((), device=device)
        self.totals = torch.zeros(4, dtype=torch.float64, device=device)

    @property
    def steps(self) -> int:
        return min(len(self.batches), self.recipe.most_steps or len(self.batches))

    @property
    def finished(self) -> bool:
        return self.epoch >= self.recipe.epochs

    @property
    def sound(self) -> bool:
        """Whether every loss of the epoch so far was finite, and all weights are; asks the device."""
        return int(self.totals[3]) == self.step and self.finite

    @property
    def finite(self) -> bool:
        """Whether every weight and every statistic of a norm is: a last step can break them unseen by any loss."""
        tensors = [t.detach() for t in (*self.network.parameters(), *self.network.buffers()) if t.is_floating_point()]
        return bool(torch.stack(torch._foreach_norm(tensors, torch.inf)).isfinite().all())

    def state(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        network = [*self.network.parameters(), *self.network.buffers()]
        return [*network, *self.sgd.buffers, *self.averaged, self.totals]

    def forward(self, indices: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """The summed loss of those images with those draws, and (loss, wrong, seen) for the totals."""
        batch = self.batches.make(indices, drawn)
        pixels = batch.pixels.contiguous(memory_format=self.layout)
        with Precision(self.recipe.precision).autocast(self.device):
            logits = self.model(pixels)
        losses = F.cross_entropy(
            logits.float(), batch.labels, reduction="sum", label_smoothing=self.recipe.label_smoothing
        )
        with torch.no_grad():
            wrong = (logits.argmax(1) != batch.labels).sum()
            facts = torch.stack([losses.double(), wrong.double(), torch.full_like(wrong, len(indices)).double()])
        return losses, facts

    def learn(self, indices: Tensor, drawn: Tensor) -> None:
        """One step on those images with those draws: the only code that trains, whatever engine runs it."""
        losses, facts = self.loss(indices, drawn)
        whole = len(indices) if self.ranks.world == 1 else self.batches.whole(self.step)
        for parameter in self.network.parameters():
            parameter.grad = None
        (losses * (self.ranks.world / whole)).backward()
        self.sgd.step(self.lr)
        with torch.no_grad():
            if self.averaged:
                torch._foreach_lerp_(self.averaged, list(self.network.parameters()), 1 - self.recipe.average)
            self.totals[:3] += self.ranks.sum(facts)
            self.totals[3] += self.totals[0].isfinite()

    def begin_epoch(self) -> None:
        self.step, self.seconds = 0, 0.0
        self.totals.zero_()
        for tally in self.tallies:
            tally.reset()

    def prepare(self) -> tuple[Tensor, Tensor]:
        """Set the learning rate, and the seed where the step draws dropout masks; the step's images and draws."""
        if not self.network.training:  # walking the modules at every step would cost as much as a graph's launch
            self.network.train()
        self.lr.fill_(self.recipe.lr_at(self.epoch, self.step, self.steps))
        if self.recipe.dropout:
            torch.manual_seed(_mixed(self.seed, self.epoch, self.step, self.ranks.rank))
        return self.batches.plan(self.epoch, self.step)


def _mixed(*words: int) -> int:
    """One seed out of several numbers (splitmix64's mixing)."""
    state = 0
    for word in words:
        state = (state + word + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state & 0x7FFFFFFFFFFFFFFF
