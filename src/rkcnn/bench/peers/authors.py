"""The authors' own network (ZhuMai/RKCNN, pytorch_models/RKCNN.py) from a checkout, with our weights."""

from __future__ import annotations

import copy
import re

from torch import nn

from rkcnn.bench.peers.checkout import PLACES, import_file
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.error import InputError
from rkcnn.model.network import Network
from rkcnn.model.spec import norms_of

# Our names of a stage's layers, and theirs in Phase I and Phase II.
_LAYERS = {
    "norm1": ("init_bn_1x1", "update_bn_1x1"),
    "narrow": ("conv_1x1", "conv_1x1_update"),
    "norm2": ("init_bn_3x3", "update_bn_3x3"),
    "conv": ("conv_3x3", "conv_3x3_update"),
}
_STAGE = re.compile(r"periods\.(\d+)\.steps\.(\d+)\.(guess|refine)\.(\d+)\.(\w+)\.(.+)")
_FRAME = (
    (re.compile(r"preprocessor\."), "fir_trans."),
    (re.compile(r"transitions\.(\d+)\.norm\."), r"list_trans.\1.bn."),
    (re.compile(r"transitions\.(\d+)\.conv\."), r"list_trans.\1.conv."),
    (re.compile(r"transitions\.(\d+)\.attention\.squeeze\."), r"list_trans.\1.attention.fc1."),
    (re.compile(r"transitions\.(\d+)\.attention\.excite\."), r"list_trans.\1.attention.fc2."),
    (re.compile(r"readouts\.(\d+)\.norm\."), r"list_gb.\1.bn."),
    (re.compile(r"classifier\."), "fc."),
)


def build_authors(peer: PeerChoice, network: Network) -> nn.Module:
    """Return the authors' network with the weights of ours; CannotRun if their code has no such network.

    Their stem is a 3x3 convolution of three channels and their norm is batch norm. Where ours is another, as in the
    networks of one period, their blocks stand in our stem and readout.
    """
    spec, (frame, block) = network.spec, norms_of(network.spec)
    unlike = (
        spec.merge == "concat"
        or bool(spec.shared)
        or spec.y is False
        or block != "bn"
        or (frame != "bn" and spec.periods > 1)
    )
    if spec.family != "RKCNN" or unlike:
        raise CannotRun(f"the authors' code has no {network.name}: it has RKCNN-E, -I and -R with batch norm")
    build = getattr(import_file(peer, PLACES["authors"]), "build_RKCNN", None)
    if build is None:
        raise InputError(
            f"`peer={peer}` given; its {PLACES['authors']} has no build_RKCNN; give a checkout of ZhuMai/RKCNN"
        )
    theirs: nn.Module = build(
        growth_rates=list(spec.k),
        stages=list(spec.stages),
        if_att=bool(spec.attention),
        update_nums=[spec.sweeps or 0 for _ in spec.k],
        keep_prob=1,
        out_features=network.classifier.out_features,
        if_b=True,
        steps=list(spec.r),
        neck=1,
        multiscale=bool(spec.multiscale),
        replace=spec.variant == "I",
    )
    if spec.stem == "odenet" or network.channels != 3:
        theirs.fir_trans = copy.deepcopy(network.preprocessor)
    if frame != "bn":
        theirs.list_gb = copy.deepcopy(network.readouts)
    weights = {
        _rename(name, spec.r, their_readout=frame == "bn"): value for name, value in network.state_dict().items()
    }
    theirs.to(next(network.parameters()).dtype).load_state_dict(weights)
    return theirs


def _rename(name: str, steps: tuple[int, ...], their_readout: bool) -> str:
    """Return the authors' name of one of our tensors; they count the time-steps of all periods in one list."""
    if stage := _STAGE.fullmatch(name):
        period, step, phase, number, layer, rest = stage.groups()
        block = sum(steps[: int(period)]) + int(step)
        return f"list_block.{block}.{_LAYERS[layer][phase == 'refine']}.{number}.{rest}"
    if not their_readout and name.startswith("readouts."):
        return f"list_gb.{name.removeprefix('readouts.')}"
    for ours, theirs in _FRAME:
        if ours.match(name):
            return ours.sub(theirs, name)
    raise AssertionError(f"{name} has no counterpart")
