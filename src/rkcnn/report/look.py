"""How a family looks in every figure: a colour, and a marker that tells it apart where colour can't."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.report.picture import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY


class Look(NamedTuple):
    colour: str
    marker: str
    size: float = 7.5


_LOOKS = {
    "RKCNN-E": Look(SKY, "o"),
    "RKCNN-I": Look(BLUE, "s"),
    "RKCNN-R": Look(GREEN, "D"),
    "ResNet": Look(ORANGE, "^"),
    "RKNN": Look(AMBER, "v"),
    "RK-Net": Look(PINK, "<"),
    "ODE-Net": Look(BLACK, ">"),
    "DenseNet": Look(ORANGE, "P", 9),
    "CliqueNet": Look(PINK, "X", 9),
    "SONODE": Look(AMBER, "p", 8),
    "Momentum ResNet": Look(BLACK, "h"),
    "Identity": Look(GREY, "*", 11),
}
_OTHER = Look(GREY, "H", 8)


def look_of(family: str) -> Look:
    return _LOOKS.get(family, _OTHER)
