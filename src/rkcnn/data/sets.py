"""Every data set by name."""

from __future__ import annotations

from dataclasses import dataclass

from rkcnn.data import class_names, packaging
from rkcnn.data.packaging import Layout


@dataclass(frozen=True)
class Content:
    """A part's number of images and the sha256 of its pixels (N, H, W, C) and labels (uint8), where known."""

    images: int
    pixels: str = ""
    labels: str = ""
    coarse: str = ""


@dataclass(frozen=True)
class DataSet:
    """A published set: what it holds, what its content must hash to, and how it is packed."""

    name: str
    train: Content
    test: Content
    shape: tuple[int, int, int]  # H, W, C
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    layouts: tuple[Layout, ...]
    home: str  # the folder its files are kept in
    stored: str  # the decoded copy it is read from
    coarse: bool = False
    elsewhere: tuple[str, ...] = ()  # folders of other software that may hold the files

    @property
    def bytes(self) -> int:
        """Of all its pixels and labels."""
        height, width, channels = self.shape
        return (self.train.images + self.test.images) * (height * width * channels + 2)

    @property
    def limit(self) -> int:
        """The most bytes a packaging comes to: Python 3's pickle for Python 2 takes half as much again."""
        return self.bytes * 8 // 5 + (16 << 20)


_AS_IS = (0.0,), (1.0,)  # SPEC 5: MNIST and SVHN are divided by 255 and no more
_AS_IS_RGB = (0.0,) * 3, (1.0,) * 3
_GREY, _RGB = (28, 28, 1), (32, 32, 3)

_MINI = (
    Content(
        10_000,
        "2f7182bf021ffc5c1f62db987487f14d899b5c639f421a80f3095affc09a7db2",
        "2f345bad07338ec537641465e169cc4b7288a44244f251211c7f842641e7d927",
    ),
    Content(
        2_000,
        "170ff6838184f9ec6aaa1bbb5932ed59b7463585418d2da081525165ef21edae",
        "949a3782a9c308bf8ca08ff720810fe1de358fe09887727264c684c785d1ec53",
    ),
)
_MNIST = (
    Content(
        60_000,
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    ),
    Content(
        10_000,
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    ),
)
_FASHION = (  # as in Debian's dataset-fashion-mnist 0.0~git20200523; mean and deviation as published
    Content(
        60_000,
        "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
    ),
    Content(
        10_000,
        "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    ),
)
_CIFAR10 = (
    Content(
        50_000,
        "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
    ),
    Content(
        10_000,
        "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    ),
)
_CIFAR100 = (
    Content(
        50_000,
        "4e457917601a66aed021f5fa37957b56c6319557c0a8ed5484de3c390af45430",
        "9f11b9f97aad759ba6df0a33e3218b01d8deaf4ed3a14aa1185d69b9ad7ebcb3",
        "1804078d4e89b6b90bd5da6ffead1404596f6eecba15ceb8d95b6a09dfbba4c0",
    ),
    Content(
        10_000,
        "4cb8e5d9309da489bf6b19cc10cd96c3ae6f8daf225380b605aaee4c0d6aee19",
        "4dad7d09c7c97d33f6cb928d705cf4196221316fd6e31bdd978a08ed9103ee0b",
        "48df17fb3bf299f43dd7e131db11ca0ea8b07d750be8b6dcf7ad6ff1b4cc721d",
    ),
)
_CIFAR10_STATISTICS = (0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784)
_CIFAR100_STATISTICS = (0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)
_FASHION_STATISTICS = (0.2860,), (0.3530,)

_ALL = (
    DataSet("mnist-mini", *_MINI, _GREY, class_names.DIGITS, *_AS_IS, (packaging.BUNDLED,), "", ""),
    DataSet("mnist", *_MNIST, _GREY, class_names.DIGITS, *_AS_IS, packaging.MNIST, "mnist", "mnist"),
    DataSet(
        *("fashion-mnist", *_FASHION, _GREY, class_names.FASHION, *_FASHION_STATISTICS),
        *(packaging.FASHION_MNIST, "fashion-mnist", "fashion-mnist"),
        elsewhere=("/usr/share/datasets/fashion-mnist",),  # where Debian's dataset-fashion-mnist puts it
    ),
    DataSet(
        *(
            "cifar10",
            *_CIFAR10,
            _RGB,
            class_names.CIFAR10,
            *_CIFAR10_STATISTICS,
            packaging.CIFAR10,
            "cifar10",
            "cifar10",
        ),
    ),
    DataSet(
        *("cifar100", *_CIFAR100, _RGB, class_names.CIFAR100, *_CIFAR100_STATISTICS),
        *(packaging.CIFAR100, "cifar100", "cifar100"),
    ),
    DataSet(
        *("cifar100-coarse", *_CIFAR100, _RGB, class_names.CIFAR100_COARSE, *_CIFAR100_STATISTICS),
        *(packaging.CIFAR100, "cifar100", "cifar100"),
        coarse=True,
    ),
    DataSet(
        *(
            "svhn",
            Content(73_257),
            Content(26_032),
            _RGB,
            class_names.DIGITS,
            *_AS_IS_RGB,
            packaging.SVHN,
            "svhn",
            "svhn",
        ),
    ),
    DataSet(
        *("svhn+extra", Content(604_388), Content(26_032), _RGB, class_names.DIGITS, *_AS_IS_RGB),
        *(packaging.SVHN_EXTRA, "svhn", "svhn+extra"),
    ),
)

SETS = {data.name: data for data in _ALL}
