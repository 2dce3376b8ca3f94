"""Create a network from its name, with initial weights."""

from __future__ import annotations

from numbers import Integral, Real

from torch import nn

from rkcnn.error import InputError, did_you_mean
from rkcnn.model.families import ORIGINALS, find_original
from rkcnn.model.layers import Conv
from rkcnn.model.limits import limited_parameters
from rkcnn.model.network import Network, Published
from rkcnn.model.period import load_class
from rkcnn.model.spec import parse, spec_of

INITS = ("paper", "torch", "he")
LARGEST = 1_000_000  # classes, and channels of an image


def usual_channels(name: str) -> int:
    """Return 1 for a network of one period, whose images are those of MNIST, and 3 for others and for wrong names."""
    try:
        spec = spec_of(name)
    except InputError:
        return 3  # whoever builds it says what is wrong
    return 1 if spec is not None and spec.periods == 1 else 3


def create_model(
    name: str, classes: int = 10, channels: int = 3, dropout: float = 0.0, init: str = "paper"
) -> Network | Published:
    """Build a network by its name, as in RKCNN-I-2_2_2@k=120, with fresh weights from torch's random generator.

    `channels` are those of an image. `dropout` (0.2 on SVHN) follows every convolution of the blocks and transitions.
    `init` chooses the initial weights: `paper` is torch's default for networks of one period, He's and Xavier's rules
    for several periods and for the published originals; `torch` or `he` is one of them for all.
    """
    if not isinstance(name, str):
        raise InputError(f"a name of type {type(name).__name__} given; a network's is text, as in 'RKCNN-R-2@k=32'")
    for option, value in (("classes", classes), ("channels", channels)):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InputError(f"{name}: `{option}={value!r}` given; it is a whole number, as in `{option}=3`")
    if isinstance(dropout, bool) or not isinstance(dropout, Real):
        raise InputError(f"{name}: `dropout={dropout!r}` given; it is a number, as in `dropout=0.2`")
    if not (1 <= classes <= LARGEST and 1 <= channels <= LARGEST):
        raise InputError(
            f"{name}: {classes} classes and {channels} channels given; both must be at least 1 and at most {LARGEST}"
        )
    if not 0 <= dropout < 1:
        raise InputError(f"{name}: dropout {dropout} given; it must be at least 0 and below 1")
    if init not in INITS:
        raise InputError(f"{name}: init {init!r} given; it is one of {', '.join(INITS)}")
    original = find_original(name)
    network: Network | Published
    if original is not None and original.network:
        with limited_parameters(original.name):
            network = load_class(original.network)(classes, channels, dropout, **original.arguments)
    else:
        try:
            spec = parse(original.same_as if original else name)
        except InputError as error:
            hint = "" if "@" in name else did_you_mean(name, ORIGINALS, cutoff=0.7)
            raise InputError(f"no network {name!r}{hint}; `rkcnn models` lists them" if hint else str(error)) from None
        network = Network(spec, classes, channels, dropout)
    if original is not None:
        network.name = original.name
    initialise(network, init)
    return network


def initialise(network: nn.Module, how: str = "paper") -> None:
    """Draw He's and Xavier's initial weights, or keep torch's, which are drawn already (docs/spec.md, 5).

    Convolutions come from N(0, 2 / fan-in), linear layers from Xavier's rule with zero bias. Norms (1, 0) and
    convolution biases keep torch's defaults: the authors' convolutions have no bias.
    """
    one_period = isinstance(network, Network) and network.spec.periods == 1
    if how == "torch" or (how == "paper" and one_period):
        return
    for module in network.modules():
        if any(weight.is_meta for weight in module.parameters(recurse=False)):
            continue  # meta tensors hold no numbers, and drawing takes a millisecond each
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if isinstance(module, Conv):
                module.scale_blocks()
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
