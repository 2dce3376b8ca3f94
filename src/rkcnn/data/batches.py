"""Batches of a data set, on the device, as a pure function of (seed, epoch, step)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn.data import randomness
from rkcnn.data.augmentation import NONE, Augmentation
from rkcnn.data.images import Images
from rkcnn.error import InputError

DEVICE_SHARE = 0.5  # of the device's memory that pixels may take; a larger set streams from the host


class Batch(NamedTuple):
    """One step's pictures for this rank."""

    pixels: Tensor  # float32 (B, C, H, W), normalised
    labels: Tensor  # int64 (B,)


class Batches:
    """The batches of `images`, `size` pictures for all ranks together.

    The order of epoch n is a function of (seed, n); crop, flip and cutout of (seed, epoch, position in it).
    Rank r of `world` gets its consecutive share of each batch, so all ranks together see the pixels of one.
    Nothing is remembered but the epoch last drawn: `epoch(n, start=k)` continues from step k exactly.
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
            raise InputError(f"a batch of {size} with the last one dropped leaves none of {len(images)} images")
        self.images, self.size, self.seed = images, size, seed
        self.augmentation, self.shuffle, self.drop_last = augmentation, shuffle, drop_last
        self.rank, self.world, self.device = rank, world, torch.device(device)
        self.streamed = self.device.type == "cuda" and images.pixels.nbytes > device_share * _memory(self.device)
        self._pixels = images.pixels if self.streamed else images.pixels.to(self.device)
        self._labels = images.labels.to(self.device)
        self._shift, self._scale = (tensor.to(self.device) for tensor in images.normalisation())
        self._drawn: tuple[int, Tensor, Tensor] | None = None  # epoch, its order (N,) and its draws (N, 5)
        self._buffers: list[tuple[Tensor, torch.cuda.Event]] = []  # of a streamed set, and when each is free again

    def __len__(self) -> int:
        """Steps in an epoch."""
        return len(self.images) // self.size if self.drop_last else -(-len(self.images) // self.size)

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number` from step `start` on."""
        if not 0 <= start <= len(self):
            raise InputError(f"step {start} is not in an epoch of {len(self)} steps")
        for step in range(start, len(self)):
            yield self.at(number, step)

    def at(self, epoch: int, step: int) -> Batch:
        """The batch of one step, made from nothing but (seed, epoch, step)."""
        return self.make(*self.plan(epoch, step))

    def plan(self, epoch: int, step: int) -> tuple[Tensor, Tensor]:
        """Which images (B,) this rank gets at this step, and what is drawn (B, 5) for each.

        On the device; the images' numbers of a streamed set on the host, which gathers by them.
        """
        if not 0 <= step < len(self):
            raise InputError(f"step {step} is not in an epoch of {len(self)} steps")
        _, order, drawn = self._draw(epoch)
        mine = self._share(step)
        return order[mine], drawn[mine]

    def whole(self, step: int) -> int:
        """How many images all ranks together get at this step."""
        return min(self.size, len(self.images) - step * self.size)

    def _share(self, step: int) -> slice:
        """The positions in the epoch that are this rank's at this step."""
        start, whole = step * self.size, self.whole(step)
        return slice(start + whole * self.rank // self.world, start + whole * (self.rank + 1) // self.world)

    def _draw(self, epoch: int) -> tuple[int, Tensor, Tensor]:
        if self._drawn is None or self._drawn[0] != epoch:
            count, _, height, width = self.images.pixels.shape
            positions = torch.arange(count, device=self.device)
            order = randomness.order(self.seed, epoch, count, self.device) if self.shuffle else positions
            if self.streamed:
                order = order.cpu()  # once: asking the device at each step would wait for its work
            self._drawn = epoch, order, self.augmentation.draw(self.seed, epoch, positions, height, width)
        return self._drawn

    def make(self, indices: Tensor, drawn: Tensor) -> Batch:
        """Those images with those randomness.

        Tensor code alone, which torch.compile and CUDA graphs can take in; of a streamed set, a gather on the host
        comes before it, which a compiler leaves out and a graph can't hold.
        """
        pixels = self._gather(indices) if self.streamed else self._pixels.index_select(0, indices)
        return Batch(
            self.augmentation.apply(pixels, drawn, self._shift, self._scale),
            self._labels.index_select(0, indices.to(self.device, non_blocking=True)),
        )

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _gather(self, indices: Tensor) -> Tensor:
        """Pixels from the host through two pinned buffers in turn: the host runs ahead while the device works."""
        if not self._buffers or len(indices) > len(self._buffers[0][0]):
            shape = (max(len(indices), self.size // self.world), *self._pixels.shape[1:])
            self._buffers = [
                (torch.empty(shape, dtype=torch.uint8, pin_memory=True), torch.cuda.Event()) for _ in range(2)
            ]
        self._buffers.reverse()
        buffer, copied = self._buffers[0]
        copied.synchronize()  # the copy of two calls ago has left this buffer
        rows = buffer[: len(indices)]
        torch.index_select(self._pixels, 0, indices.cpu(), out=rows)
        on_device = rows.to(self.device, non_blocking=True)
        copied.record(torch.cuda.current_stream(self.device))
        return on_device


def _memory(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).total_memory
