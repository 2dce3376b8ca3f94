"""A network from its name."""

from __future__ import annotations

from rkcnn.error import InputError
from rkcnn.model.initialise import initialise
from rkcnn.model.network import Network
from rkcnn.model.published.network import Published
from rkcnn.model.published.originals import PUBLISHED
from rkcnn.model.spec import nearest, parse

MOST = 1_000_000  # classes, and channels of an image


def create_model(
    name: str, classes: int = 10, channels: int = 3, dropout: float = 0.0, init: str = "frame"
) -> Network | Published:
    """Build any network of the paper by its name, with fresh weights from torch's random generator.

    One period: torch's default initialisation; several, and the published originals: He and Xavier.
    Dropout (0.2 on SVHN) follows every convolution of the blocks and transitions.
    """
    if not (1 <= classes <= MOST and 1 <= channels <= MOST):
        raise InputError(
            f"{name}: {classes} classes and {channels} channels given; both must be at least 1 and at most {MOST}"
        )
    if not 0 <= dropout < 1:
        raise InputError(f"{name}: dropout {dropout} given; it must be at least 0 and below 1")
    fixed = {known.lower(): known for known in PUBLISHED}.get(name.strip().lower(), "")
    builder = PUBLISHED.get(fixed, name)
    if not isinstance(builder, str):
        original = builder(classes, channels, dropout)
        original.name = fixed
        initialise(original, init)
        return original
    try:
        spec = parse(builder)
    except InputError as error:
        hint = "" if "@" in name else nearest(name, tuple(PUBLISHED), cutoff=0.7)
        raise InputError(f"{error}{hint}") from None
    network = Network(spec, classes, channels, dropout)
    network.name = fixed or network.name
    initialise(network, init)
    return network
