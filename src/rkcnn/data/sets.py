"""Every published data set by name: its size, its classes, its normalisation and the checksums of its content."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from rkcnn.error import InputError, did_you_mean

# the class names in the order of their labels
DIGITS = tuple("0123456789")

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
    "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
    "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man",
    "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew",
    "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower",
    "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor", "train", "trout",
    "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip

CIFAR100_COARSE = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes", "large_omnivores_and_herbivores",
    "medium_mammals", "non-insect_invertebrates", "people", "reptiles", "small_mammals", "trees",
    "vehicles_1", "vehicles_2",
)  # fmt: skip


@dataclass(frozen=True)
class Content:
    """The number of images of a training or test set, and the sha256 of its pixels (N, H, W, C) and labels (uint8).

    A checksum that is not known is empty.
    """

    images: int
    pixels: str = ""
    labels: str = ""
    coarse: str = ""


@dataclass(frozen=True)
class DataSet:
    """A published data set; how it is packed into files is in `packaging.PACKAGINGS`."""

    name: str
    train: Content
    test: Content
    shape: tuple[int, int, int]  # H, W, C
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # of pixel / 255, one for each channel
    std: tuple[float, ...]
    folder: str = ""  # in a data folder, holds the published files; empty for the bundled set
    decoded: str = ""  # the name of the decoded copy
    coarse: bool = False  # whether the labels are the coarse ones of the decoded copy
    other_folders: tuple[str, ...] = ()  # where other software may have put the published files
    debian: str = ""  # Debian's package that puts them there

    @property
    def bytes(self) -> int:
        """The number of bytes of all its pixels and labels."""
        height, width, channels = self.shape
        return (self.train.images + self.test.images) * (height * width * channels + 2)

    @property
    def limit(self) -> int:
        """The most bytes that published files can take; pickled by Python 3 for Python 2, they grow by half."""
        return self.bytes * 8 // 5 + (16 << 20)


_GREY, _RGB = (28, 28, 1), (32, 32, 3)
# docs/spec.md 5: MNIST and SVHN are divided by 255 and not normalised further, so their mean is 0 and deviation 1

_CIFAR100 = DataSet(
    "cifar100",
    train=Content(
        50_000,
        pixels="4e457917601a66aed021f5fa37957b56c6319557c0a8ed5484de3c390af45430",
        labels="9f11b9f97aad759ba6df0a33e3218b01d8deaf4ed3a14aa1185d69b9ad7ebcb3",
        coarse="1804078d4e89b6b90bd5da6ffead1404596f6eecba15ceb8d95b6a09dfbba4c0",
    ),
    test=Content(
        10_000,
        pixels="4cb8e5d9309da489bf6b19cc10cd96c3ae6f8daf225380b605aaee4c0d6aee19",
        labels="4dad7d09c7c97d33f6cb928d705cf4196221316fd6e31bdd978a08ed9103ee0b",
        coarse="48df17fb3bf299f43dd7e131db11ca0ea8b07d750be8b6dcf7ad6ff1b4cc721d",
    ),
    shape=_RGB,
    classes=CIFAR100,
    mean=(0.5071, 0.4867, 0.4408),
    std=(0.2675, 0.2565, 0.2761),
    folder="cifar100",
    decoded="cifar100",
)
_SVHN = DataSet(  # only the md5 of the published files is known
    "svhn",
    train=Content(73_257),
    test=Content(26_032),
    shape=_RGB,
    classes=DIGITS,
    mean=(0.0,) * 3,
    std=(1.0,) * 3,
    folder="svhn",
    decoded="svhn",
)
_ALL = (
    DataSet(
        "mnist-mini",
        train=Content(
            10_000,
            pixels="2f7182bf021ffc5c1f62db987487f14d899b5c639f421a80f3095affc09a7db2",
            labels="2f345bad07338ec537641465e169cc4b7288a44244f251211c7f842641e7d927",
        ),
        test=Content(
            2_000,
            pixels="170ff6838184f9ec6aaa1bbb5932ed59b7463585418d2da081525165ef21edae",
            labels="949a3782a9c308bf8ca08ff720810fe1de358fe09887727264c684c785d1ec53",
        ),
        shape=_GREY,
        classes=DIGITS,
        mean=(0.0,),
        std=(1.0,),
    ),
    DataSet(
        "mnist",
        train=Content(
            60_000,
            pixels="741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            labels="1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        ),
        test=Content(
            10_000,
            pixels="6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            labels="ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        ),
        shape=_GREY,
        classes=DIGITS,
        mean=(0.0,),
        std=(1.0,),
        folder="mnist",
        decoded="mnist",
    ),
    DataSet(  # checksums of Debian's dataset-fashion-mnist 0.0~git20200523; mean and deviation as published
        "fashion-mnist",
        train=Content(
            60_000,
            pixels="2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
            labels="657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        ),
        test=Content(
            10_000,
            pixels="c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
            labels="3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
        ),
        shape=_GREY,
        classes=FASHION,
        mean=(0.2860,),
        std=(0.3530,),
        folder="fashion-mnist",
        decoded="fashion-mnist",
        other_folders=("/usr/share/datasets/fashion-mnist",),
        debian="dataset-fashion-mnist",
    ),
    DataSet(
        "cifar10",
        train=Content(
            50_000,
            pixels="47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            labels="2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        ),
        test=Content(
            10_000,
            pixels="f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            labels="cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        ),
        shape=_RGB,
        classes=CIFAR10,
        mean=(0.49139968, 0.48215841, 0.44653091),
        std=(0.24703223, 0.24348513, 0.26158784),
        folder="cifar10",
        decoded="cifar10",
    ),
    _CIFAR100,
    replace(_CIFAR100, name="cifar100-coarse", classes=CIFAR100_COARSE, coarse=True),
    _SVHN,
    replace(_SVHN, name="svhn+extra", train=Content(604_388), decoded="svhn+extra"),
)

SETS = {data.name: data for data in _ALL}


def find_set(name: str) -> DataSet:
    """Return the published set of that name, in upper or lower case.

    Raises InputError with the names that exist if there is none, or with the right form if it is the path of a folder
    or an .npz file.
    """
    if name.lower() not in SETS:
        kind = "folder" if os.path.isdir(name) else "npz" if name.endswith(".npz") and os.path.isfile(name) else ""
        if kind:
            raise InputError(f"no data set is called {name!r}; for your own images there give `data={kind}:{name}`")
        known = f"{', '.join(SETS)}, folder:PATH and npz:PATH"
        raise InputError(f"no data set is called {name!r}{did_you_mean(name, SETS)}; there are {known}")
    return SETS[name.lower()]
