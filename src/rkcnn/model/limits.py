"""The largest network that is built: limits on its parameters, evaluations and activations, which a user can raise.

A name of a few letters can ask for terabytes or for hours, and names also come from files that others have written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from rkcnn.error import InputError, is_out_of_memory
from rkcnn.model.spec import ModelSpec

PARAMETERS, EVALUATIONS, ACTIVATIONS = "RKCNN_MAX_PARAMS", "RKCNN_MAX_EVALUATIONS", "RKCNN_MAX_ACTIVATION_BYTES"
DEFAULTS = {  # by the environment variable that says another
    PARAMETERS: 1_000_000_000,  # 4 GB
    EVALUATIONS: 1_000,  # of f or of stage networks, for one image; `rkcnn describe` took 17 s for 880, on one core
    ACTIVATIONS: 4 << 30,  # for one image
}
_LARGE = 20_000_000  # parameters; to fill so many takes 0.2 s
_NOUNS = {PARAMETERS: "parameters", EVALUATIONS: "evaluations", ACTIVATIONS: "bytes of activations for one image"}


def read_limit(variable: str) -> int:
    """Return a limit: what its environment variable says, or the default."""
    given = os.environ.get(variable, "").strip()
    if given and not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise InputError(f"{variable}={given[:40]!r} is set; it is a whole number of up to 18 digits, or not set")
    return int(given) if given else DEFAULTS[variable]


def check_limit(name: str, variable: str, least: int) -> None:
    """Raise InputError if a network needs at least `least`, and that is over the limit."""
    limit = read_limit(variable)
    if least > limit:
        raise InputError(
            f"{name} has {least:,} or more {_NOUNS[variable]}, over the limit of {limit:,}; choose smaller numbers, or "
            f"set {variable} in the environment to allow more"
        )


def check_evaluations(spec: ModelSpec) -> None:
    """Raise InputError if a network needs more evaluations than allowed, by numbers of its name alone.

    They are at least r x stages x (1 + sweeps) in each period, and so is the number of layers that would be built.
    """
    stages, steps = (numbers or (1,) * spec.periods for numbers in (spec.stages, spec.r))
    least = sum(s * r * (1 + (spec.sweeps or 0)) for s, r in zip(stages, steps, strict=True))
    check_limit(str(spec), EVALUATIONS, least)


def check_activations(network: nn.Module, size: tuple[int, int]) -> None:
    """Raise InputError if the activations of one image, of that height and width, take more bytes than allowed.

    Counted are the image, one map of its size in the preprocessor, and one for each evaluation of a period: fewer than
    there are, so that what is refused is too large indeed. Of a published original 16 channels are counted.
    """
    height, width = size
    channels: int = network.channels  # type: ignore[assignment]
    spec: ModelSpec | None = getattr(network, "spec", None)
    numbers = (channels + (16 if spec is None else spec.k[0])) * height * width
    if spec is not None:
        shrink = 4 if spec.stem == "odenet" else 1
        evaluations: list[int] = network.evaluations  # type: ignore[assignment]
        for k, count in zip(spec.k, evaluations, strict=False):  # timm can take the last periods away
            numbers += count * k * (height // shrink) * (width // shrink)
            shrink *= 2
    check_limit(getattr(network, "name", type(network).__name__), ACTIVATIONS, 4 * numbers)


def may_be_large(spec: ModelSpec) -> bool:
    """Whether a network may have so many parameters that they should be counted before any of them is filled.

    Two convolutions of 3 x 3 in each stage, which reads what the stages before it gave, have 18 k^2 parameters for each
    pair of stages.
    """
    stages, steps = (numbers or (1,) * spec.periods for numbers in (spec.stages, spec.r))
    return sum(18 * k * k * s * s * r for k, s, r in zip(spec.k, stages, steps, strict=True)) > _LARGE


class TooManyParameters(InputError):
    """A network that is being built has more parameters than a context of `limited_parameters` allows."""


@contextmanager
def limited_parameters(name: str, parameters: int | None = None, tensors: int | None = None) -> Iterator[None]:
    """A context in which a network with more parameters, or tensors of them, than allowed is not built to its end.

    It stops before the parameters that are too many are filled, so they take no memory. Without numbers the limit on
    parameters is the user's. Parameters on the meta device count only if the context itself is on that device.
    """
    most = read_limit(PARAMETERS) if parameters is None else parameters
    refusal = (
        f"{name} has over {most:,} parameters, which is the limit; choose smaller numbers, or set {PARAMETERS} in the "
        "environment to allow more"
    )
    count = found = 0
    on_meta = torch.get_default_device().type == "meta"
    thread = threading.get_ident()  # the hook is called by all threads of the process

    def add(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal count, found
        if parameter is None or parameter.is_meta != on_meta or threading.get_ident() != thread:
            return
        count, found = count + parameter.numel(), found + 1
        if count > most or (tensors is not None and found > tensors):
            raise TooManyParameters(refusal)

    hook = register_module_parameter_registration_hook(add)
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # the latter is torch's
        if not is_out_of_memory(error):
            raise
        raise TooManyParameters(f"{name} needs more memory than there is; choose smaller numbers") from None
    finally:
        hook.remove()
