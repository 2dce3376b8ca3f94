"""A small real problem for the tests of training."""

from __future__ import annotations

from dataclasses import replace

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.recipe import Recipe
from rkcnn.fit.trainer import Trainer
from rkcnn.model.create import create_model

RECIPE = Recipe("mini", epochs=2, batch=16, lr=0.05, padding=2)


def digits(count: int) -> Images:
    """The first of the bundled digits."""
    train, _ = load_data_set("mnist-mini")
    return replace(train, pixels=train.pixels[:count], labels=train.labels[:count])


def trainer(
    spec: str = "RKCNN-R-2@k=4",
    count: int = 56,
    device: str = "cpu",
    seed: int = 3,
    recipe: Recipe = RECIPE,
    ranks: Ranks | None = None,
) -> Trainer:
    """56 images in batches of 16: three whole steps and a kept partial one."""
    torch.manual_seed(seed)
    network = create_model(spec, classes=10, channels=1, dropout=recipe.dropout)
    return Trainer(network, digits(count), recipe, seed, torch.device(device), ranks)
