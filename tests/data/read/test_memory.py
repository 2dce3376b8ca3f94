"""Files made to exhaust memory, read in a process of their own whose whole growth is measured.

That process has a fixed environment and module path. With this one's, tests that ran before decided the outcome: ray
puts a folder on sys.path, and the Makefile tells malloc to keep large blocks on its heap, where a few hundred bytes
more or less at the start move them so that the same reading takes 64 or 69 MB.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

import rkcnn

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")


def png_claiming(width: int, height: int, size: int, colour: int = 2) -> bytes:
    """A PNG of `size` bytes whose header claims width x height."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1000)) + bytes(size)) + chunk(b"IEND", b"")


def crowded_zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(60_000):
            archive.writestr(f"{number:05}", b"")
    return file.getvalue()


def bomb(header: bytes, size: int) -> bytes:
    return gzip.compress(header + bytes(size), 1)


FILES = {
    "idx claims 47 MB and holds none": lambda: struct.pack(">4I", 0x803, 60_000, 28, 28),
    "idx.gz bomb of 200 MB": lambda: bomb(struct.pack(">4I", 0x803, 200, 1000, 1000), 200_000_000),
    "idx.gz pixels in millions": lambda: bomb(struct.pack(">4I", 0x803, 50_000_000, 1, 1), 50_000_000),
    "idx.gz labels in millions": lambda: bomb(struct.pack(">2I", 0x801, 60_000_000), 60_000_000),
    "pickle of empty lists": lambda: b"\x80\x02" + b"]" * 20_000_000,
    "pickle of a huge memo": lambda: b"\x80\x02]r\xff\xff\xff\xff.",
    "pickle of a huge bytearray": lambda: b"\x80\x05\x96" + (2**40).to_bytes(8, "little"),
    "json of empty lists": lambda: b"[" + b"[]," * 10_000_000 + b"[]]",
    "npz with a crowded table": crowded_zip,
    "png claims 80 million pixels": lambda: png_claiming(10_000, 8_000, 20_000),
    "png claims a chunk of 2 GB": lambda: png_claiming(100, 100, 100)[:33] + b"\x7f\xff\xff\xffIDATxyz",
    "png claims 4 billion pixels": lambda: png_claiming(65_000, 65_000, 20_000),
    "bmp claims 80 million pixels": lambda: (
        b"BM" + struct.pack("<6I2H6I", 0, 0, 54, 40, 10_000, 8_000, 1, 24, *[0] * 6)
    ),
    "mat claims an element of 2 GB": lambda: b"MATLAB 5.0".ljust(124) + b"\0\1IM" + struct.pack("<2I", 14, 2**31),
}
CODE = """
import io, sys
from pathlib import Path
import numpy as np
from PIL import Image
from rkcnn.data.read.cifar import read_cifar_pickle, read_json_labels
from rkcnn.data.read.folder import read_folder
from rkcnn.data.read.idx import read_idx
from rkcnn.data.read.mat5 import read_mat5
from rkcnn.data.read.npz import read_npz
from rkcnn.error import InputError
path, limit = Path(sys.argv[1]), 77_000_000
one_pixel = bytes.fromhex("00000803" + 3 * "00000001" + "ff")
def bad(path, error):
    raise error
readers = {
    "idx": lambda f: read_idx(f, io.BytesIO(b""), "here", limit),
    "labels": lambda f: read_idx(io.BytesIO(one_pixel), f, "here", limit),
    "pickle": lambda f: read_cifar_pickle(f, "here", limit),
    "json": lambda f: read_json_labels(f, "here"),
    "npz": lambda f: read_npz(f, "here", limit),
    "png": lambda f: list(read_folder(((path, 0),), 32, 3, limit * 50, bad)),
    "bmp": lambda f: list(read_folder(((path, 0),), 32, 3, limit * 50, bad)),
    "mat": lambda f: read_mat5(f, "here", limit),
}
def peak():  # ru_maxrss would begin at that of the process that started this one
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM"))
Path("/proc/self/clear_refs").write_text("5")  # the peak so far, that of the imports, is forgotten
before = peak()
with path.open("rb") as file:
    try:
        readers[sys.argv[2]](file)
    except InputError as error:
        print(error, file=sys.stderr)
    else:
        "may be read" in sys.argv or sys.exit("read, and should not have been")
print(1024 * (peak() - before))
"""


def run_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that inherits nothing that decides how much memory it takes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "PYTHON"))}
    environment = kept | {
        "PYTHONPATH": str(Path(rkcnn.__file__).parents[1]),
        "MALLOC_MMAP_THRESHOLD_": str(128 << 10),  # a large block is a mapping of its own, gone when it is freed
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("name", FILES)
def test_memory_stays_in_proportion_to_the_file(name: str, tmp_path: Path) -> None:
    reader = "labels" if "labels" in name else name.split()[0].split(".")[0]
    path = tmp_path / "file"
    path.write_bytes(FILES[name]())
    done = run_child(CODE, path, reader)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < (64 << 20) + 3 * path.stat().st_size
    assert done.stderr.count("\n") == 1


FLAT = {
    "webp": ("RGB", 9400, {"lossless": True}),
    "clear.webp": ("RGBA", 9400, {"lossless": True}),
    "deep.png": ("I;16", 9400, {}),
    "rgb.png": ("RGB", 9400, {}),
    "small.webp": ("RGB", 1550, {"lossless": True}),
    "small.clear.webp": ("RGBA", 1400, {"lossless": True}),
    "small.deep.png": ("I;16", 2800, {}),
    "small.rgb.png": ("RGB", 2800, {}),
    "small.grey.png": ("L", 4400, {}),
    "small.palette.png": ("P", 2600, {}),
    "small.clear.png": ("RGBA", 2100, {}),
    "large.jpeg": ("RGB", 9000, {}),
    "small.rgb.bmp": ("RGB", 2800, {}),
    "small.palette.bmp": ("P", 2600, {}),
    "small.progressive.jpeg": ("RGB", 1900, {"progressive": True}),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_picture_is_read_in_little_memory_or_refused(name: str, tmp_path: Path) -> None:
    mode, side, options = FLAT[name]
    path = tmp_path / f"file.{name}"
    make = f"from PIL import Image; Image.new({mode!r}, ({side}, {side})).save({str(path)!r}, **{options!r})"
    run_child(make).check_returncode()
    done = run_child(CODE, path, "png", "may be read")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < (64 << 20) + 3 * path.stat().st_size
    refused = not name.startswith(("small", "large"))
    assert done.stderr.count("\n") == refused
    assert ("are read at most; scale it down" in done.stderr) == refused
