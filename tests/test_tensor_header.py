"""The header of a safetensors file: what is larger than any of ours is refused before it is parsed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
import torch
from safetensors.torch import save

from rkcnn.tensor_header import LONGEST, check_tensor_header


def check(header: bytes, said: int | None = None) -> None:
    check_tensor_header(io.BytesIO((len(header) if said is None else said).to_bytes(8, "little") + header))


def test_headers_of_large_networks_with_many_classes_pass() -> None:
    classes = json.dumps([f'class "{number}" \\ of many' for number in range(65_536)])
    content = save({f"stages.{number}.weight": torch.zeros(1) for number in range(10_000)}, {"rkcnn": classes})
    check_tensor_header(io.BytesIO(content))


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (
            lambda: json.dumps({"__metadata__": {str(number): "" for number in range(120_000)}}),
            "240,001 names and texts",
        ),
        (
            lambda: json.dumps({"__metadata__": {f"{number}\\": "\\" for number in range(120_000)}}),
            "240,001 names and texts",
        ),
        (
            lambda: json.dumps({str(n): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(50_000)}),
            "250,000",
        ),
    ],
    ids=["metadata", "backslashes", "tensors"],
)
def test_many_entries_are_refused(header: Callable[[], str], says: str) -> None:
    with pytest.raises(ValueError, match=f"its header has {says}"):
        check(header().encode())


def test_a_long_header_is_refused_unread() -> None:
    with pytest.raises(ValueError, match=r"a header of 8,000,001 bytes, and at most 8,000,000 are read"):
        check(b"", LONGEST + 1)
    check(b"", LONGEST)  # the library refuses a file that ends before its header
