"""Train on a machine that is lent for some minutes, has no network and takes or gives back a few files at a time.

python benchmarks/lent_machine.py pack ~/.cache/rkcnn/decoded/cifar10 PARTS    here: a data set in parts of a few MB
python benchmarks/lent_machine.py unpack PARTS ~/.cache/rkcnn/decoded/cifar10  there, when all parts have been copied
python benchmarks/lent_machine.py collect runs OUT                             there: the runs as files of 15 MiB
python benchmarks/lent_machine.py restore OUT .                                here, or there to go on: the runs again

A data set is packed without loss. Each pixel is predicted from its neighbours as in JPEG-LS (the median of left, above
and left + above - corner), red and blue relative to green, and what is left is compressed with xz: CIFAR-100 takes 102
of its 184 MB, in five minutes on one core, and is unpacked in ten seconds on two. rkcnn checks the content when it
opens the set. Of a run that has not ended, `collect` takes the newest checkpoint alone, and of one that has ended
everything but checkpoints.
"""

from __future__ import annotations

import io
import lzma
import os
import shutil
import sys
import tarfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.cache import read_description
from rkcnn.run_folder import RESULT, find_checkpoint_files, find_checkpoints, find_incomplete_files, tensors_of

IMAGES = 4000  # in a part; 6.6 MB of CIFAR
PIECE = 15 << 20  # bytes of a file of `collect`
PIECES = 4  # files that can be brought back at once: 64 MiB together

Pixels = NDArray[np.uint8]  # N, C, H, W


def predict(image: NDArray[np.int16], i: int, j: int) -> NDArray[np.int16] | int:
    """Return what the pixels at row i and column j of many images (H, W, N) are predicted to be."""
    if i == 0 or j == 0:
        return image[i - 1, j] if i else image[i, j - 1] if j else 0
    up, left, corner = image[i - 1, j], image[i, j - 1], image[i - 1, j - 1]
    return np.maximum(np.minimum(left, up), np.minimum(np.maximum(left, up), left + up - corner))


def mix(pixels: Pixels, sign: int) -> Pixels:
    """Return pixels with red and blue relative to green (sign -1), or the other way round (1)."""
    mixed = pixels.copy()
    if pixels.shape[1] == 3:
        mixed[:, ::2] = pixels[:, ::2] + np.uint8(sign % 256) * pixels[:, 1:2]
    return mixed


def compress(pixels: Pixels) -> bytes:
    """Return the pixels as the differences from their predictions, compressed."""
    planes = mix(pixels, -1).transpose(1, 2, 3, 0).astype(np.int16)
    differences = np.empty(planes.shape, np.uint8)
    for plane, out in zip(planes, differences, strict=True):
        for i, j in np.ndindex(*plane.shape[:2]):
            out[i, j] = (plane[i, j] - predict(plane, i, j)) & 255
    packed = io.BytesIO()
    np.save(packed, np.ascontiguousarray(differences.transpose(0, 3, 1, 2)))
    return lzma.compress(packed.getvalue(), preset=6)


def decompress(packed: bytes) -> Pixels:
    """Return the pixels that `compress` was given."""
    differences = np.load(io.BytesIO(lzma.decompress(packed))).transpose(0, 2, 3, 1)
    planes = np.zeros(differences.shape, np.int16)
    for plane, given in zip(planes, differences, strict=True):
        for i, j in np.ndindex(*plane.shape[:2]):
            plane[i, j] = (given[i, j] + predict(plane, i, j)) & 255
    return mix(np.ascontiguousarray(planes.astype(np.uint8).transpose(3, 0, 1, 2)), 1)


def pack(decoded: Path, parts: Path) -> None:
    """Write a decoded set to a folder: its pixels in parts, and its other files as they are."""
    description = read_description(decoded)
    if description is None:
        sys.exit(f"{decoded} holds no decoded data set; `rkcnn data get` writes one")
    parts.mkdir(parents=True)
    with ProcessPoolExecutor() as pool:
        for name, part in description.parts.items():
            count, height, width, channels = part.shape
            stored = np.fromfile(decoded / f"{name}.pixels", np.uint8).reshape(count, channels, height, width)
            chunks = (stored[start : start + IMAGES] for start in range(0, count, IMAGES))
            for number, packed in enumerate(pool.map(compress, chunks)):
                (parts / f"{name}.pixels.{number:04d}.xz").write_bytes(packed)
    for path in decoded.iterdir():
        if path.suffix != ".pixels":
            shutil.copyfile(path, parts / path.name)
    print(
        f"{parts}: {len(list(parts.iterdir()))} files, {sum(path.stat().st_size for path in parts.iterdir()):,} bytes"
    )


def unpack(parts: Path, decoded: Path) -> None:
    """Write the decoded set that `pack` was given."""
    decoded.mkdir(parents=True)
    try:
        with ProcessPoolExecutor() as pool:
            for name in ("train", "test"):
                with open(decoded / f"{name}.pixels", "wb") as file:
                    packed = (path.read_bytes() for path in sorted(parts.glob(f"{name}.pixels.*.xz")))
                    for pixels in pool.map(decompress, packed):
                        file.write(pixels.tobytes())
        for path in parts.iterdir():
            if path.suffix != ".xz":
                shutil.copyfile(path, decoded / path.name)
        if read_description(decoded) is None:
            sys.exit(f"{parts} lacks some of the files that `pack` wrote; copy all of them there and try again")
    except BaseException:  # so that another try finds no folder of that name
        shutil.rmtree(decoded)
        raise


def collect(runs: Path, out: Path) -> None:
    """Write the runs below a folder, without what they no longer need, as a tar file in pieces."""
    if not runs.is_dir():
        sys.exit(f"there is no folder {runs}; name the one that the runs are in")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for top, _, files in os.walk(runs):
            folder = Path(top)
            newest = [] if (folder / RESULT).exists() else find_checkpoints(folder)[-1:]
            kept = {path.name for checkpoint in newest for path in (checkpoint, tensors_of(checkpoint))}
            dropped = {path.name for path in (*find_checkpoint_files(folder), *find_incomplete_files(folder))} - kept
            for name in sorted({*files} - dropped - {".lock"}):
                tar.add(folder / name, Path(runs.name, folder.relative_to(runs), name))
    content = archive.getbuffer()
    if len(content) > PIECES * PIECE:
        sys.exit(f"the runs take {len(content):,} bytes, and {PIECES} files of {PIECE:,} can be taken: collect fewer")
    out.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(content), PIECE)):
        (out / f"runs.tar.{number:02d}").write_bytes(content[start : start + PIECE])


def restore(pieces: Path, place: Path) -> None:
    """Write the folder of runs that `collect` was given into another folder."""
    content = b"".join(path.read_bytes() for path in sorted(pieces.glob("runs.tar.*")))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        tar.extractall(place, filter="data")


COMMANDS = {"pack": pack, "unpack": unpack, "collect": collect, "restore": restore}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
