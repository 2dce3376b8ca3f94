"""The list of networks."""

from __future__ import annotations

import pytest

import rkcnn
from rkcnn.error import InputError
from rkcnn.model.catalogue import TABLES


def test_the_paper_has_as_many_rows() -> None:
    """18, 16, 6 and 15 rows, and the control that we add to the first two."""
    assert {table: len(names) for table, names in TABLES.items()} == {
        "mnist": 19,
        "svhn": 17,
        "cifar10": 17,
        "cifar100": 17,
        "sota-mnist": 6,
        "sota-svhn": 15,
        "sota-cifar10": 15,
        "sota-cifar100": 15,
    }


def test_list_models_lists_each_once() -> None:
    names = rkcnn.list_models()
    assert len(names) == len(set(names)) == 19 + 17 + 3 + 15
    assert rkcnn.list_models("mnist") == list(TABLES["mnist"])
    with pytest.raises(InputError, match="tables are mnist"):
        rkcnn.list_models("imagenet")
