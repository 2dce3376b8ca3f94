"""Create a network from its name, with fresh weights or with those that come with the package."""

from __future__ import annotations

from rkcnn.error import InputError
from rkcnn.evaluation.weights import read_weights
from rkcnn.model.create import create_model as build
from rkcnn.model.network import Network, Published
from rkcnn.use.pretrained.catalogue import list_pretrained, select_pretrained


def create_model(
    name: str,
    classes: int | None = None,
    channels: int | None = None,
    dropout: float = 0.0,
    init: str = "paper",
    *,
    pretrained: str | None = None,
) -> Network | Published:
    """Build a network by its name, as in RKCNN-I-2_2_2@k=120, with fresh weights from torch's random generator.

    classes    how many it tells apart; 10, or those of the pretrained weights. With another number than theirs, the
               classifier is new
    channels   of an image; 3, or those of the pretrained weights
    dropout    follows every convolution of the blocks and transitions (0.2 on SVHN)
    init       chooses the initial weights: `paper` is torch's default for networks of one period, He's and Xavier's
               rules for several periods and for the published originals; `torch` or `he` is one of them for all
    pretrained the data set of weights that come with the package, as in pretrained="mnist" (`list_pretrained`). The
               network is then in evaluation mode, in float32; `rkcnn.load` also returns its classes and normalisation
    """
    if pretrained is None and name in list_pretrained():  # NETWORK.SET, as in timm
        name, _, pretrained = name.rpartition(".")
    if pretrained is None or not isinstance(name, str):
        return build(name, 10 if classes is None else classes, 3 if channels is None else channels, dropout, init)
    weights = select_pretrained(name, pretrained)
    trained, description = read_weights(weights.path)
    if channels not in (None, description.channels):
        raise InputError(
            f"{weights.name}: `channels={channels!r}` given; these weights are for images of {description.channels}"
        )
    count = len(description.classes)
    network = build(weights.network, count if classes is None else classes, description.channels, dropout, init)
    state = trained.state_dict()
    if classes not in (None, count):
        state |= {key: value for key, value in network.state_dict().items() if key.startswith("classifier.")}
    network.load_state_dict(state)
    return network.eval()
