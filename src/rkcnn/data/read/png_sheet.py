"""PNG sheets: a whole batch of pictures as one image, a picture a row; the labels beside them as JSON."""

from __future__ import annotations

import io
import json
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.part import Part
from rkcnn.data.read.picture import open_picture
from rkcnn.error import InputError

MOST_JSON = 1 << 20  # bytes; 50,000 labels take 100,000, and "[]," becomes 21 times itself in memory


def read_png_sheet(file: BinaryIO, labels: NDArray[np.int64], where: str, limit: int, side: int = 32) -> Part:
    """The RGB pictures of a sheet whose rows are pictures of side x side pixels."""
    with open_picture(file, where, limit, ("PNG",)) as sheet:
        if sheet.size[0] != side * side or sheet.mode != "RGB":
            raise InputError(
                f"{where}: is {sheet.mode}, {sheet.size[0]} pixels wide; a sheet is RGB, {side * side} wide"
            )
        sheet.load()
        pixels = np.asarray(sheet)
    return Part(where, pixels.reshape(-1, side, side, 3), labels)


def read_json_labels(file: BinaryIO, where: str) -> NDArray[np.int64]:
    """A JSON list of whole numbers."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > MOST_JSON:
        raise InputError(f"{where}: holds {size} bytes, and labels take {MOST_JSON} at most")
    try:
        labels = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: is not readable as JSON ({error})") from None
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise InputError(f"{where}: must be a list of whole numbers 0 to 255")
    return np.array(labels, np.int64)
