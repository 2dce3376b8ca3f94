"""Power cuts: copies an ext4 image while a run trains on it, and continues the run from each copy (Linux, as root).

    python benchmarks/power_cuts.py FOLDER [--lying]

What the kernel has not yet written to the image is missing from a copy, as it is missing from a disk after a power cut.
With --lying fsync does nothing (by LD_PRELOAD of a library that gcc makes), as with a disk that only says that it has
written. Prints for each copy how the run continued, and whether its weights are those of a run without a cut.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN = """
import sys
from rkcnn.run.train import train
train("ResNet@k=4", "mnist-mini", "mini", [0], changes={"epochs": 2, "max_steps_per_epoch": 60}, device="cpu",
      out=sys.argv[1], checkpoint_interval=float(sys.argv[2]))
"""
LIBRARY = "int fsync(int file) { (void)file; return 0; }"
CUTS = 12


@contextmanager
def mounted(image: Path, where: Path) -> Iterator[Path]:
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", where], check=True)


def weights(out: Path) -> bytes | None:
    return next((path.read_bytes() for path in out.rglob("weights.safetensors")), None)


def train(out: Path) -> str:
    done = subprocess.run([sys.executable, "-c", RUN, out, "1000"], capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def main(folder: Path, lying: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    train(folder / "whole")
    expected = weights(folder / "whole")
    assert expected
    environment = dict(os.environ)
    if lying:
        (folder / "lying.c").write_text(LIBRARY)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "lying.so", folder / "lying.c"], check=True)
        environment["LD_PRELOAD"] = str(folder / "lying.so")
    image = folder / "disk"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    copies: list[Path] = []
    with mounted(image, folder / "mounted") as disk:
        process = subprocess.Popen([sys.executable, "-c", RUN, disk / "runs", "0.01"], env=environment)
        while process.poll() is None and len(copies) < CUTS:
            time.sleep(0.4)
            if not any(disk.rglob("checkpoint-*.json")):
                continue
            process.send_signal(signal.SIGSTOP)
            copies.append(folder / f"copy-{len(copies)}")
            shutil.copyfile(image, copies[-1])
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
    found: Counter[str] = Counter()
    for copy in copies:
        with mounted(copy, folder / "mounted") as disk:
            files = sorted(path.name for path in disk.rglob("checkpoint-*") if path.stat().st_size)
            said = train(disk / "runs")
            same = "equal weights" if weights(disk / "runs") == expected else "OTHER WEIGHTS"
            outcome = said or f"continued, {same}"
            print(f"{copy.name}: {len(files)} files of checkpoints with content; {outcome}", flush=True)
            found[said.partition(":")[0] or f"continued, {same}"] += 1
    print(dict(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), "--lying" in sys.argv)
