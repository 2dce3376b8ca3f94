"""Names of networks and changes of recipes as anybody might type them, and the commands that take them."""

from __future__ import annotations

from dataclasses import fields
from random import Random

from fuzz.mutations import NUMBERS, TEXTS
from rkcnn.fit.recipe import RECIPES
from rkcnn.model.families import FAMILIES, OPTIONS, ORIGINALS
from rkcnn.record.tables import list_models

PIECES = (
    *FAMILIES,
    *OPTIONS,
    *("-", "@", "=", ",", "_", "k", "r", "k=", "E", "I", "R", "bottleneck", "rk4_38", "abm", "0", "1", "2", "2_2"),
    *("32", "on", "off", "gn", "1e-3", "nan", "٣", "²", "\n", " ", "65536", "1000", "100", "999999"),
)
NAMES = (*list_models(), *ORIGINALS, *(f"{family}@k=4" for family in FAMILIES))
FIELDS = [field.name for field in fields(RECIPES["own"]) if field.name != "name"]
# With N the name of a network and F=V the change of a recipe.
COMMANDS = {
    "describe": ("network name", "describe N"),
    "describe --json": ("network name", "describe N --json"),
    "draw": ("network name", "draw N -o W/out/step.svg"),
    "train NAME": ("network name", "train N --data npz:W/digits.npz --device cpu --out W/out/runs"),
    "train --set": (
        "recipe change",
        "train ResNet@k=4 --data npz:W/digits.npz --device cpu --out W/out/runs --set F=V",
    ),
}
SOUND = {"N": "ResNet@k=4", "F=V": "momentum=0.8"}


def make_argument(random: Random, reader: str) -> str:
    """Return a text that may be the name of a network or a change of a recipe, or nearly."""
    return make_change(random) if reader == "recipe change" else make_name(random)


def make_name(random: Random) -> str:
    """Return the name of a network with a piece or a number changed, or pieces in any order."""
    if random.random() < 0.2:
        return "".join(random.choices(PIECES, k=random.randint(1, 12)))
    name = random.choice(NAMES)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(name) + 1)
        way = random.choice(("insert", "option", "option", "number", "cut", "text"))
        if way == "insert":
            name = name[:at] + random.choice(PIECES) + name[at:]
        elif way == "option":
            value = random.choice(
                ("0", "1", "2", "3", "100", "1000", "65536", "on", "off", "gn", "bn", "1e-9", "nan", "4_4")
            )
            name += f"{',' if '@' in name else '@'}{random.choice(list(OPTIONS))}={value}"
        elif way == "number":
            digits = [i for i, letter in enumerate(name) if letter.isdigit()] or [0]
            at = random.choice(digits)
            name = (
                name[:at] + random.choice(("0", "7", "99", "100", "512", "1000", "65536", "99999999")) + name[at + 1 :]
            )
        elif way == "cut":
            name = name[:at]
        else:
            name = name[:at] + random.choice(TEXTS) + name[at:]
    return name


def make_change(random: Random) -> str:
    """Return a change of a recipe with a value that is perhaps none."""
    field = random.choice((*FIELDS, random.choice(TEXTS)))
    value = random.choice((*NUMBERS, *TEXTS, "on", "off", "steps", "1_2_3"))
    return f"{field}={value}" if random.random() < 0.8 else f"{field}{value}"
