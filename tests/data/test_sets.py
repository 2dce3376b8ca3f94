"""The sets agree with themselves and with docs/spec.md, section 5."""

from __future__ import annotations

import pytest

from rkcnn.data import sets
from rkcnn.data.packaging import PACKAGINGS
from rkcnn.data.sets import SETS, find_set
from rkcnn.error import InputError


def test_every_set_of_the_paper_is_there() -> None:
    images = {name: (data.train.images, data.test.images, len(data.classes)) for name, data in SETS.items()}
    assert images == {
        "mnist-mini": (10_000, 2_000, 10),
        "mnist": (60_000, 10_000, 10),
        "fashion-mnist": (60_000, 10_000, 10),
        "cifar10": (50_000, 10_000, 10),
        "cifar100": (50_000, 10_000, 100),
        "cifar100-coarse": (50_000, 10_000, 20),
        "svhn": (73_257, 26_032, 10),
        "svhn+extra": (604_388, 26_032, 10),
    }


def test_normalisation_is_that_of_the_paper() -> None:
    assert SETS["mnist"].mean == (0.0,)
    assert SETS["mnist"].std == (1.0,)
    assert SETS["svhn"].mean == (0.0, 0.0, 0.0)
    assert SETS["svhn"].std == (1.0, 1.0, 1.0)
    assert SETS["cifar10"].mean == (0.49139968, 0.48215841, 0.44653091)
    assert SETS["cifar100-coarse"].std == (0.2675, 0.2565, 0.2761)


def test_names_are_unique_and_checksums_whole() -> None:
    for data in SETS.values():
        assert len(set(data.classes)) == len(data.classes)
        assert len(data.mean) == len(data.std) == data.shape[2]
        for content in (data.train, data.test):
            assert {len(value) for value in (content.pixels, content.labels, content.coarse)} <= {0, 64}
            assert content.pixels or all(packaging.md5 for packaging in PACKAGINGS[data.name])


def test_class_names_are_sorted_where_the_publisher_sorted_them() -> None:
    assert list(sets.CIFAR10) == sorted(sets.CIFAR10)
    assert list(sets.CIFAR100) == sorted(sets.CIFAR100)
    assert list(sets.CIFAR100_COARSE) == sorted(sets.CIFAR100_COARSE)


def test_no_packaging_comes_near_its_limit() -> None:
    assert SETS["cifar10"].limit > 277_000_000  # pickled by Python 3 in Python 2's protocol
    assert SETS["svhn+extra"].limit > 604_388 * 3072


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"no data set is called 'cifar-10' \(did you mean cifar10\?\); there are"):
        find_set("cifar-10")
    with pytest.raises(InputError, match="there are mnist-mini, mnist,"):
        find_set("zzz")
