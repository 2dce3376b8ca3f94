"""Names of networks as identifiers."""

from __future__ import annotations

import pytest

from rkcnn.record.tables import list_models
from rkcnn.use.identifiers import list_identifiers, to_identifier


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("RKCNN-I-2_2_2@k=120", "rkcnn_i_2_2_2_k120"),
        ("RKCNN-R-2_2_2@k=26_28_28", "rkcnn_r_2_2_2_k26_28_28"),
        ("ResNet-bottleneck@k=32", "rkcnn_resnet_bottleneck_k32"),
        ("DenseNet-BC-L250-k24", "rkcnn_densenet_bc_l250_k24"),
    ],
)
def test_a_name_as_an_identifier(name: str, identifier: str) -> None:
    assert to_identifier(name) == identifier


def test_every_network_has_one_of_its_own() -> None:
    found = list_identifiers()
    assert list(found.values()) == list(list_models())
    assert all(identifier.isidentifier() for identifier in found)
