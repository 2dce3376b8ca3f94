"""Batch norm statistics that are computed anew from training images before a network is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from rkcnn.data.batches import Batches
from rkcnn.fit.trainer import Trainer
from rkcnn.model.layers import Conv

MOST_IMAGES = 512  # a pass over so many takes about as long as over a third of them in training
BATCH = 128  # images; statistics of larger batches are no better, and take more memory


@contextmanager
def recomputed_norms(trainer: Trainer) -> Iterator[None]:
    """Give the network's batch norms the statistics of its training images for a while, if the recipe asks for it.

    In training they follow the batches as a running average. The paper's momentum of 0.01 forgets the first weights
    only after several hundred steps. Here the images, at most MOST_IMAGES and not augmented, go through the network
    once, and each norm takes the mean over their batches. At the end the network has its running averages again, so
    that training does not depend on evaluations. Several ranks must all enter; each computes the same.
    """
    norms = [module for module in trainer.network.modules() if isinstance(module, nn.BatchNorm2d)]
    if not trainer.recipe.recompute_norms or trainer.recipe.head_only or not norms:
        yield
        return
    buffers = [buffer for norm in norms for buffer in norm.buffers()]
    saved = [buffer.clone() for buffer in buffers]
    try:
        _recompute(trainer, norms)
        yield
    finally:
        for buffer, value in zip(buffers, saved, strict=True):
            buffer.copy_(value)


@torch.no_grad()
def _recompute(trainer: Trainer, norms: list[nn.BatchNorm2d]) -> None:
    network, images = trainer.network, trainer.batches.images
    chosen = images.choose(MOST_IMAGES) if len(images) > MOST_IMAGES else images
    size = -(-len(chosen) // -(-len(chosen) // BATCH))  # of nearly equal size
    batches = Batches(chosen, size, seed=0, device=trainer.device)
    convolutions = [module for module in network.modules() if isinstance(module, Conv)]
    momenta, dropouts = [norm.momentum for norm in norms], [conv.dropout for conv in convolutions]
    training = network.training
    try:
        network.train()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # torch's sign for the mean of all batches
        for conv in convolutions:
            conv.dropout = 0.0
        for batch in batches.epoch(0):
            with torch.autocast(trainer.device.type, torch.bfloat16, enabled=trainer.recipe.precision == "bf16"):
                network(batch.pixels.contiguous(memory_format=trainer.layout))
    finally:
        network.train(training)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for conv, dropout in zip(convolutions, dropouts, strict=True):
            conv.dropout = dropout
