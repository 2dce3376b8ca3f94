"""Batches of a data set, on the device, as a pure function of (seed, epoch, step)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn.data.augmentation import NONE, PARTNER, Augmentation, permutation, random_integers
from rkcnn.data.images import Images
from rkcnn.error import InputError

DEVICE_SHARE = 0.5  # of the device's memory that pixels may take


class Mix(NamedTuple):
    """What CutMix took from other images."""

    labels: Tensor  # int64 (B,), of the other images
    share: Tensor  # float32 (B,), of each image's area


class Batch(NamedTuple):
    """The images of one step for this rank."""

    pixels: Tensor  # float32 (B, C, H, W), normalised
    labels: Tensor  # int64 (B,)
    mix: Mix | None = None  # with CutMix


class Batches:
    """The batches of `images`, each of `size` images for all ranks together.

    The order of epoch n is a function of (seed, n), what is changed in an image a function of (seed, n, its position in
    the epoch). Rank r of `world` gets its consecutive share of each batch, so that all ranks together see
    the pixels that one would. There is no other state: `epoch(n, start=k)` continues from step k exactly.

    `device_share` is the share of the device's memory that the pixels may take. A larger set stays in the memory of the
    host and is copied to a GPU batch by batch (`streamed`).
    """

    def __init__(
        self,
        images: Images,
        size: int,
        seed: int,
        *,
        augmentation: Augmentation = NONE,
        shuffle: bool = True,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        device: str | torch.device = "cpu",
        device_share: float = DEVICE_SHARE,
    ) -> None:
        if size < 1 or world < 1 or size % world:
            raise InputError(f"a batch of {size} can't be shared by {world} ranks; give a positive multiple of {world}")
        if not 0 <= rank < world:
            raise InputError(f"rank {rank} of {world} doesn't exist; give 0 to {world - 1}")
        if not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise InputError(f"seed {seed!r} must be a whole number from 0 to {2**63 - 1}")
        if drop_last and size > len(images):
            raise InputError(
                f"a batch of {size} given for {len(images)} training images, and incomplete batches are dropped; "
                "choose a smaller batch or keep incomplete ones (recipe fields batch=16, drop_last=off)"
            )
        self.images, self.size, self.seed = images, size, seed
        self.augmentation, self.shuffle, self.drop_last = augmentation, shuffle, drop_last
        self.rank, self.world, self.device = rank, world, torch.device(device)
        self.streamed = self.device.type == "cuda" and images.pixels.nbytes > device_share * _memory(self.device)
        self._pixels = images.pixels if self.streamed else images.pixels.to(self.device)
        self._labels = images.labels.to(self.device)
        self._shift, self._scale = (tensor.to(self.device) for tensor in images.normalisation())
        self._last: tuple[int, Tensor, Tensor] | None = (
            None  # the last epoch, its order and its choices, of N rows each
        )
        self._buffers: list[tuple[Tensor, torch.cuda.Event]] = []  # of a streamed set, and when each is free again
        self._gather: Callable[[Tensor], Tensor] = self._gather_from_host
        if self.streamed:  # only here: naming the compiler imports it, which takes a second
            self._gather = torch.compiler.disable(self._gather_from_host)

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        return len(self.images) // self.size if self.drop_last else -(-len(self.images) // self.size)

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of epoch `number`, beginning at step `start`."""
        if not 0 <= start <= len(self):
            raise InputError(f"step {start} is not in an epoch of {len(self)} steps")
        for step in range(start, len(self)):
            yield self.at(number, step)

    def at(self, epoch: int, step: int) -> Batch:
        """Return the batch of one step."""
        return self.make(*self.plan(epoch, step))

    def plan(self, epoch: int, step: int) -> tuple[Tensor, Tensor]:
        """Return the indices (B,) of the images that this rank gets at this step, and their random choices.

        With CutMix the indices are (B, 2): those of the images, and of another image for each. Both are on the device,
        except that the indices of a streamed set are on the host, which gathers the pixels.
        """
        if not 0 <= step < len(self):
            raise InputError(f"step {step} is not in an epoch of {len(self)} steps")
        _, order, choices = self._begin(epoch)
        share = self._share(step)
        return order[share], choices[share]

    def count_images(self, step: int) -> int:
        """Return how many images all ranks together get at this step."""
        return min(self.size, len(self.images) - step * self.size)

    def _share(self, step: int) -> slice:
        """Return the positions in the epoch that are this rank's at this step."""
        start, whole = step * self.size, self.count_images(step)
        return slice(start + whole * self.rank // self.world, start + whole * (self.rank + 1) // self.world)

    def _begin(self, epoch: int) -> tuple[int, Tensor, Tensor]:
        """Return the epoch with its order and its choices, which are kept until another epoch is asked for."""
        if self._last is None or self._last[0] != epoch:
            count, _, height, width = self.images.pixels.shape
            positions = torch.arange(count, device=self.device)
            order = permutation(self.seed, epoch, count, self.device) if self.shuffle else positions
            if self.augmentation.cutmix:
                others = random_integers(self.seed, epoch, PARTNER, positions) % count
                order = torch.stack([order, others], 1)
            if self.streamed:
                order = order.cpu()  # once, because asking the device at each step would wait for its work
            self._last = epoch, order, self.augmentation.choose(self.seed, epoch, positions, height, width)
        return self._last

    def make(self, indices: Tensor, choices: Tensor) -> Batch:
        """Return the batch of these images with these choices, as `plan` gives them.

        This is tensor code that torch.compile and CUDA graphs can include. Only for a streamed set the pixels are first
        gathered on the host, which isn't compiled and can't be part of a graph.
        """
        chosen = indices.t().reshape(-1)  # with CutMix the images, and behind them the other ones
        pixels = self._gather(chosen) if self.streamed else self._pixels.index_select(0, chosen)
        labels = self._labels.index_select(0, chosen.to(self.device, non_blocking=True))
        changed = self.augmentation.apply(pixels, choices, self._shift, self._scale)
        if not self.augmentation.cutmix:
            return Batch(changed, labels)
        own, others = labels.chunk(2)
        return Batch(changed, own, Mix(others, self.augmentation.share_of_other(choices, *changed.shape[2:])))

    def _gather_from_host(self, indices: Tensor) -> Tensor:
        """Copy pixels from the host through two pinned buffers in turn, so that it needn't wait for the device."""
        if not self._buffers or len(indices) > len(self._buffers[0][0]):
            shape = (max(len(indices), self.size // self.world), *self._pixels.shape[1:])
            self._buffers = [
                (torch.empty(shape, dtype=torch.uint8, pin_memory=True), torch.cuda.Event()) for _ in range(2)
            ]
        self._buffers.reverse()
        buffer, copied = self._buffers[0]
        copied.synchronize()  # until the copy that last used this buffer is done
        rows = buffer[: len(indices)]
        torch.index_select(self._pixels, 0, indices.cpu(), out=rows)
        on_device = rows.to(self.device, non_blocking=True)
        copied.record(torch.cuda.current_stream(self.device))
        return on_device


def _memory(device: torch.device) -> int:
    """Return the bytes of memory that the GPU has."""
    return torch.cuda.get_device_properties(device).total_memory
