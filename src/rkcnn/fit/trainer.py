"""A network in training: everything that a step reads and changes, and stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.data.augmentation import Augmentation
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.recipe import Recipe
from rkcnn.model.layout import set_layout
from rkcnn.model.period import Period
from rkcnn.solvers.solver_step import SolverStats


class SGD:
    """g <- g + decay p,  b <- m b + g,  p <- p - lr (b, or g + m b with Nesterov): torch.optim.SGD's rule.

    torch's own takes lr as a number, which a captured graph would freeze; here it is a tensor on the device.
    `decayed` says which parameters the decay acts on; by default all.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        momentum: float,
        nesterov: bool,
        weight_decay: float,
        decayed: Sequence[bool] | None = None,
    ) -> None:
        self.parameters = list(parameters)
        numbers = range(len(self.parameters))
        self.decayed = [number for number in numbers if weight_decay and (decayed is None or decayed[number])]
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.buffers = [torch.zeros_like(p) for p in self.parameters]
        self.fused: Callable[..., None] | None = None  # the same rule in kernels of model/fast/, up to rounding

    @torch.no_grad()
    def step(self, lr: Tensor) -> None:
        """Update every parameter by its gradient; a missing gradient counts as zero."""
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters]
        if self.fused is not None:
            self.fused(
                self.parameters,
                grads,
                self.buffers,
                lr,
                self.momentum,
                self.nesterov,
                self.weight_decay,
                frozenset(self.decayed),
            )
            return
        if self.decayed:
            chosen = [[tensors[number] for number in self.decayed] for tensors in (grads, self.parameters)]
            for number, grad in zip(self.decayed, torch._foreach_add(*chosen, alpha=self.weight_decay), strict=True):
                grads[number] = grad
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        change = torch._foreach_add(grads, self.buffers, alpha=self.momentum) if self.nesterov else self.buffers
        torch._foreach_sub_(self.parameters, torch._foreach_mul(change, lr))


class Trainer:
    """A network, its optimiser and its batches at a position (epoch, step).

    A step depends on the weights, the buffers and (seed, epoch, step) alone, so no random state has to be saved.
    `totals` sums over the epoch so far and over all ranks, on the device: loss, wrong answers, images, and the number
    of steps before the first loss that was not finite.
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
        self.layout = set_layout(self.network, device)
        self.ranks = ranks or Ranks()
        self.batches = Batches(
            images,
            recipe.batch,
            seed,
            augmentation=Augmentation(recipe.padding, recipe.flip, recipe.cutout, recipe.cutmix),
            drop_last=recipe.drop_last,
            rank=self.ranks.rank,
            world=self.ranks.world,
            device=device,
        )
        self.ranks.check_share(self.batches.count_images(self.steps - 1))
        self.trained = dict(self.network.named_parameters())  # by name; with `head_only` the classifier's alone
        if recipe.head_only:
            self.trained = _freeze_all_but_classifier(self.network)
        self.model = self.ranks.wrap(self.network, recipe.sync_norm)
        self.loss: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = self.forward  # or its compiled form
        self.class_weights = _weigh_classes(images).to(device) if recipe.weigh_classes else None
        decayed = [
            recipe.decay_norms or p.dim() > 1 for p in self.trained.values()
        ]  # norms and biases have one dimension
        self.sgd = SGD(self.trained.values(), recipe.momentum, recipe.nesterov, recipe.weight_decay, decayed)
        self.averaged = [p.detach().clone() for p in self.trained.values()] if recipe.ema_decay else []
        self.epoch = self.step = 0
        self.seconds = 0.0  # of training steps in this epoch so far
        found = (module.solver_stats for module in self.network.modules() if isinstance(module, Period))
        self.solver_stats: list[SolverStats] = [stats for stats in found if stats is not None]
        self.lr = torch.zeros((), device=device)
        self.totals = torch.zeros(4, dtype=torch.float64, device=device)

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""
        return min(len(self.batches), self.recipe.max_steps_per_epoch or len(self.batches))

    @property
    def finished(self) -> bool:
        """Whether every epoch of the recipe is done."""
        return self.epoch >= self.recipe.epochs

    @property
    def is_finite(self) -> bool:
        """Whether every loss of the epoch so far was finite and all weights are; waits for the device and all ranks."""
        weights_are_finite = self.weights_are_finite  # on every rank, as it waits for the others
        return int(self.totals[3]) == self.step and weights_are_finite

    @property
    def weights_are_finite(self) -> bool:
        """Whether all weights and norm statistics are finite; after an epoch's last step no loss would show it.

        Every rank must ask, and all get the same answer: unless norms are synchronised each has statistics of its own.
        """
        tensors = [t.detach() for t in (*self.network.parameters(), *self.network.buffers()) if t.is_floating_point()]
        finite = bool(torch.stack(torch._foreach_norm(tensors, torch.inf)).isfinite().all())
        return not self.ranks.largest(int(not finite))

    def state(self) -> dict[str, Tensor]:
        """Return every tensor that a step changes, by name; writing to one of them changes the trainer."""
        found: dict[str, Tensor] = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        found |= {f"momentum.{name}": value for name, value in zip(self.trained, self.sgd.buffers, strict=True)}
        if self.averaged:
            found |= {f"average.{name}": value for name, value in zip(self.trained, self.averaged, strict=True)}
        return found | {"totals": self.totals}

    def forward(self, indices: Tensor, choices: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summed loss of the images, augmented by `choices`, and (loss, wrong, images) for the totals."""
        batch = self.batches.make(indices, choices)
        pixels = batch.pixels.contiguous(memory_format=self.layout)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            logits = self.model(pixels)
        labels = batch.labels
        if batch.mix is None:
            losses = self._sum_losses(logits.float(), labels)
        else:
            others, share = batch.mix
            losses = self._sum_losses(logits.float(), labels, 1 - share) + self._sum_losses(
                logits.float(), others, share
            )
            labels = torch.where(share > 0.5, others, labels)
        with torch.no_grad():
            wrong = (logits.argmax(1) != labels).sum()
            facts = torch.stack([losses.double(), wrong.double(), torch.full_like(wrong, len(indices)).double()])
        return losses, facts

    def _sum_losses(self, logits: Tensor, labels: Tensor, shares: Tensor | None = None) -> Tensor:
        """Return the sum of the images' losses, each times the share of the image that its label has."""
        losses = F.cross_entropy(
            logits,
            labels,
            self.class_weights,
            reduction="sum" if shares is None else "none",
            label_smoothing=self.recipe.label_smoothing,
        )
        return losses if shares is None else (losses * shares).sum()

    def learn(self, indices: Tensor, choices: Tensor) -> None:
        """Take one step on the images, augmented by `choices`: the only code that trains, whatever engine runs it."""
        losses, facts = self.loss(indices, choices)
        whole = len(indices) if self.ranks.world == 1 else self.batches.count_images(self.step)
        for parameter in self.network.parameters():
            parameter.grad = None
        (losses * (self.ranks.world / whole)).backward()
        self.sgd.step(self.lr)
        with torch.no_grad():
            if self.averaged:
                torch._foreach_lerp_(self.averaged, list(self.trained.values()), 1 - self.recipe.ema_decay)
            self.totals[:3] += self.ranks.sum(facts)
            self.totals[3] += self.totals[0].isfinite()

    def begin_epoch(self) -> None:
        """Set the position, the clock, the totals and the solvers' counts to the start of an epoch."""
        self.step, self.seconds = 0, 0.0
        self.totals.zero_()
        for stats in self.solver_stats:
            stats.reset()

    def prepare(self) -> tuple[Tensor, Tensor]:
        """Set the learning rate and, with dropout, the seed of the next step.

        Returns the indices of its images and their random choices, as `Batches.plan` does.
        """
        if self.network.training == self.recipe.head_only:  # it visits every module: as long as launching a CUDA graph
            self.network.train(not self.recipe.head_only)  # a frozen network keeps its norms' statistics too
        self.lr.fill_(self.recipe.lr_at(self.epoch, self.step, self.steps))
        if self.recipe.dropout:
            torch.manual_seed(_mixed(self.seed, self.epoch, self.step, self.ranks.rank))
        return self.batches.plan(self.epoch, self.step)


def _freeze_all_but_classifier(network: nn.Module) -> dict[str, nn.Parameter]:
    """Let gradients reach the classifier alone, and return its parameters by name."""
    network.requires_grad_(False)
    trained = {name: p for name, p in network.named_parameters() if name.startswith("classifier.")}
    for parameter in trained.values():
        parameter.requires_grad_(True)
    return trained


def _weigh_classes(images: Images) -> Tensor:
    """Return a weight for each class, N / (classes x images of the class), and 0 for a class without an image."""
    counts = torch.bincount(images.labels, minlength=len(images.classes))
    present = int((counts > 0).sum())
    return torch.where(counts > 0, len(images) / (present * counts.clamp(min=1)), 0.0)


def _mixed(*words: int) -> int:
    """Mix several numbers into one seed, by splitmix64."""
    state = 0
    for word in words:
        state = (state + word + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state & 0x7FFFFFFFFFFFFFFF
