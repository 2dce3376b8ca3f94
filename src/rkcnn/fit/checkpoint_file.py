"""The JSON file of a checkpoint: where the run is, with checksums of itself and of the tensors beside it.

Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rkcnn.json_file import LONG, Kinds, check_fields, read_json

SCHEMA = 3  # the version of the file's shape

_FIELDS: Kinds = {
    **dict.fromkeys(("schema", "epoch", "step"), int),
    "seconds": (int, float),
    "solver_stats": list,
    **dict.fromkeys(("identity", "history"), dict),
    "sha256": str,
}

Json = dict[str, Any]


def seal_facts(facts: Json) -> bytes:
    """Return the content of a checkpoint's JSON file: its facts and a checksum of them."""
    return json.dumps(facts | {"check": _checksum(facts)}, indent=1).encode()


def read_facts(path: Path) -> Json:
    """Return what a checkpoint's JSON file says, `sha256` of the tensors included; the tensors are not read.

    Raises InputError if the file can't be opened, and KeyError, TypeError or ValueError if it holds something else than
    the facts of a checkpoint or has changed since it was written.
    """
    facts = read_json(path, LONG)
    check = facts.pop("check")
    check_fields("checkpoint", facts, _FIELDS)
    if check != _checksum(facts):
        raise ValueError("its checksum differs")
    if facts["epoch"] < 0 or facts["step"] < 0 or facts["seconds"] < 0:
        raise ValueError("a position before the start")
    for sums in facts["solver_stats"]:
        if not isinstance(sums, list) or len(sums) != 5 or not all(type(each) in (int, float) for each in sums):
            raise ValueError("totals of a solver that are not five numbers")
    return facts


def _checksum(facts: Json) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
