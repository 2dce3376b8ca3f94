"""Names of networks as Python identifiers, for torch.hub and timm. Imports no torch."""

from __future__ import annotations

import re

from rkcnn.record.tables import list_models


def to_identifier(name: str) -> str:
    """Return a network's name in letters, digits and _: rkcnn_i_2_2_2_k120 of RKCNN-I-2_2_2@k=120.

    Other families start with rkcnn_ too, as in rkcnn_resnet_k32.
    """
    words = re.sub(r"[^a-z0-9]+", "_", name.lower().replace("=", "")).strip("_")
    return words if words.startswith("rkcnn_") else f"rkcnn_{words}"


def list_identifiers() -> dict[str, str]:
    """Return the networks of the paper's tables: identifier to name."""
    return {to_identifier(name): name for name in list_models()}
