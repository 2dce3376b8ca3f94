"""`import rkcnn.timm` registers the networks with timm, which builds them as it builds its own.

>>> import timm, rkcnn.timm  # doctest: +SKIP
>>> timm.create_model("rkcnn_i_2_2_2_k120", num_classes=100)  # a network of the paper  # doctest: +SKIP
>>> timm.create_model("rkcnn_r_2_k32.mnist", pretrained=True)  # with the package's weights  # doctest: +SKIP
>>> timm.create_model("rkcnn", network="RKCNN-R-2_2@k=32_64", features_only=True)  # any other  # doctest: +SKIP
>>> timm.create_model("hf-hub:OWNER/NAME", pretrained=True)  # what `rkcnn push` uploaded  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.error import InputError, how_to_install
from rkcnn.json_file import parse_json
from rkcnn.model.create import initialise
from rkcnn.model.network import Network
from rkcnn.model.period import Period
from rkcnn.model.spec import ModelSpec, spec_of
from rkcnn.record.tables import list_identifiers
from rkcnn.use.hub import configure_timm
from rkcnn.use.pretrained.catalogue import read_catalogue

try:
    from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "timm":
        raise
    how = how_to_install("timm")
    raise ModuleNotFoundError(f"timm is not installed; install it with: {how}", name="timm") from None

DEFAULT = "RKCNN-I-2_2_2@k=120"
UNTRAINED = {
    "channels": 3,
    "size": (32, 32),
    "classes": tuple(map(str, range(10))),
    "mean": (0.5,) * 3,
    "std": (0.5,) * 3,
}
"""The images of a network without weights: as large as the paper's in colour."""


class TimmNetwork(Network):
    """A network with periods and with timm's methods. Its parameters have the names that rkcnn's weights files have."""

    def __init__(
        self,
        network: str = DEFAULT,
        num_classes: int = 10,
        in_chans: int = 3,
        drop_rate: float = 0.0,
        global_pool: str = "avg",
    ) -> None:
        super().__init__(_spec(network), max(num_classes, 1), in_chans)
        initialise(self)
        self.drop_rate = drop_rate
        self.unread = len(self.periods) - len(self.readouts)  # periods that the classifier doesn't read
        self.num_features = self.head_hidden_size = self.classifier.in_features
        stride = 4 if self.spec.stem == "odenet" else 1
        self.feature_info = [
            {"num_chs": period.classifier_channels, "reduction": stride * 2**i, "module": f"periods.{i}"}
            for i, period in enumerate(self._periods)
        ]
        self.num_classes, self.global_pool = num_classes, global_pool
        if num_classes == 0 or global_pool != "avg":
            self.reset_classifier(num_classes, global_pool)

    @property
    def _periods(self) -> list[Period]:
        return [period for period in self.periods if isinstance(period, Period)]

    def get_classifier(self) -> nn.Module:
        """Return the last layer."""
        return self.classifier

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the last layer by a new one; 0 classes leave it out, and global_pool="" the pooling before it."""
        if global_pool is not None:
            if global_pool not in ("avg", ""):
                raise InputError(f"global_pool={global_pool!r} given; the networks of rkcnn have 'avg', or '' for none")
            self.global_pool = global_pool
        if num_classes and not self.global_pool:
            raise InputError("global_pool='' given with classes; the classifier reads pooled features")
        self.num_classes = num_classes
        old = next(self.periods.parameters(), None)
        new = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()
        self.classifier = new if old is None else new.to(old.device, old.dtype)  # type: ignore[assignment]
        initialise(self.classifier, "he")

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | Sequence[int] | None = None,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = "NCHW",
        intermediates_only: bool = False,
    ) -> list[Tensor] | tuple[Tensor, list[Tensor]]:
        """Return the maps that the classifier reads of some periods; before them all features, unless told otherwise.

        With `norm`, the maps went through the norm and ReLU of the classifier, where it reads that period.
        """
        if output_fmt != "NCHW":
            raise InputError(f"output_fmt={output_fmt!r} given; it is 'NCHW'")
        taken = _take(len(self.periods), indices)
        last = max(taken) + 1 if stop_early and intermediates_only else len(self.periods)
        maps = self.read_periods(x, last)
        read = self._activate(maps) if norm else maps
        intermediates = [read[i] for i in taken]
        return intermediates if intermediates_only else (self._join(maps), intermediates)

    def prune_intermediate_layers(
        self, indices: int | Sequence[int] = 1, prune_norm: bool = False, prune_head: bool = True
    ) -> list[int]:
        """Remove the periods behind the last that is wanted, and the classifier; return the indices."""
        taken = _take(len(self.periods), indices)
        last = max(taken) + 1
        self.readouts = nn.ModuleList([] if prune_norm else self.readouts[: max(last - self.unread, 0)])
        self.periods, self.transitions = self.periods[:last], self.transitions[: last - 1]
        if prune_head:
            self.reset_classifier(0, "")
        return taken

    def forward_features(self, x: Tensor) -> Tensor:
        """Return what the classifier averages, as one map of the last period's size.

        A classifier that reads several periods has them side by side, each averaged down to that size.
        """
        return self._join(self.read_periods(x))

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Average the map, and classify it unless `pre_logits` asks for the average."""
        if self.global_pool:
            x = x.mean((2, 3))
        x = F.dropout(x, self.drop_rate, self.training)
        return x if pre_logits else self.classifier(x)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, as `rkcnn.create_model` computes them."""
        return self.forward_head(self.forward_features(images))

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        """Return which parameters belong to which layer, for learning rates that decay from layer to layer."""
        if coarse:
            return {"stem": r"^preprocessor", "blocks": r"^(?:periods|transitions)\.(\d+)"}
        blocks = [(r"^periods\.(\d+)\.steps\.(\d+)", None), (r"^(?:periods|transitions)\.(\d+)", (99999,))]
        return {"stem": r"^preprocessor", "blocks": blocks}

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Raise InputError if it is wanted: it is not offered."""
        if enable:
            raise InputError("gradient checkpointing given; the networks of rkcnn don't offer it")

    def _activate(self, maps: list[Tensor]) -> list[Tensor]:
        """Return the maps through the norms and ReLU of the classifier, where it reads them."""
        norms = [None] * self.unread + [readout.norm for readout in self.readouts]
        norms += [None] * (len(maps) - len(norms))
        return [
            each if norm is None else F.relu(norm(each))  # type: ignore[operator]
            for norm, each in zip(norms, maps, strict=False)
        ]

    def _join(self, maps: list[Tensor]) -> Tensor:
        read = self._activate(maps)[self.unread :] or maps[-1:]
        return torch.cat([_shrink(each, *read[-1].shape[2:]) for each in read], 1)


def _shrink(x: Tensor, height: int, width: int) -> Tensor:
    """Average a map down to a size, and keep its mean, which windows of unequal size would change."""
    if x.shape[2:] == (height, width):
        return x
    small = F.adaptive_avg_pool2d(x, (height, width))
    if x.shape[2] % height == x.shape[3] % width == 0:
        return small
    return small + (x.mean((2, 3), keepdim=True) - small.mean((2, 3), keepdim=True))


def _take(count: int, indices: int | Sequence[int] | None) -> list[int]:
    """Return the indices of periods as timm means them: None is all, a number n the last n of them, from 1 on."""
    if isinstance(indices, int):
        wanted: Iterable[int] = range(count - indices, count) if 1 <= indices <= count else ()
    else:
        wanted = range(count) if indices is None else indices
    taken = [index + count if index < 0 else index for index in wanted]
    if not taken or not all(0 <= index < count for index in taken):
        raise InputError(f"out_indices={indices!r} given; this network has {count} period{'s' * (count != 1)}")
    return taken


def _spec(network: str) -> ModelSpec:
    """Return the configuration of a network; raises InputError for an original that has no periods."""
    spec = spec_of(network)
    if spec is None:
        raise InputError(f"{network} is a published original without periods; build it with rkcnn.create_model")
    return spec


def list_configurations(identifier: str, network: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield timm's configurations of a network: one for each of its pretrained weights, as IDENTIFIER.SET, or one."""
    spec = _spec(network)
    weights = [each for each in read_catalogue() if identifier != "rkcnn" and each.network == network]
    if not weights:
        yield identifier, {"url": "", **configure_timm(spec, UNTRAINED), "label_names": None, "license": "mit"}
    for each in weights:
        own = configure_timm(spec, parse_json(each.metadata["rkcnn"], dict))
        yield f"{identifier}.{each.data}", {"url": "", "file": str(each.path), **own, "license": "mit"}


def _entry_point(identifier: str, default: str) -> Callable[..., nn.Module]:
    """Return the function that timm calls to build a network; it is given to timm under the identifier."""

    def build(
        pretrained: bool = False,
        network: str = default,
        pretrained_cfg_overlay: dict[str, Any] | None = None,
        **options: Any,
    ) -> nn.Module:
        spec = _spec(network)
        stem = configure_timm(spec, UNTRAINED)["first_conv"]
        return build_model_with_cfg(
            TimmNetwork,
            identifier,
            pretrained,
            feature_cfg={"feature_cls": "getter", "out_indices": spec.periods},
            pretrained_cfg_overlay={"first_conv": stem, **(pretrained_cfg_overlay or {})},
            network=network,
            **options,
        )

    build.__name__ = build.__qualname__ = identifier
    return build


NETWORKS = {
    identifier: name
    for identifier, name in {"rkcnn": DEFAULT, **list_identifiers()}.items()
    if spec_of(name) is not None
}
"""What is registered: timm's name to ours. `rkcnn` takes any other name as `network=...`."""
default_cfgs = generate_default_cfgs(  # timm looks for it here
    dict(each for identifier, name in NETWORKS.items() for each in list_configurations(identifier, name))
)
for _identifier, _name in NETWORKS.items():
    register_model(_entry_point(_identifier, _name))
