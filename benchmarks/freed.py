"""What keeping freed memory saves on a CPU, side by side in turns:

    python benchmarks/freed.py [ROUNDS]

Each round trains two epochs of `mini` in a process that gives freed memory back, and in one that keeps it.
"""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import sys, tempfile, rkcnn
from rkcnn.run.device import keep_freed_memory
from rkcnn.fit.recipe import find_recipe
if sys.argv[1] == "kept":
    keep_freed_memory()
with tempfile.TemporaryDirectory() as out:
    result = rkcnn.train(recipe=replace(find_recipe("mini"), epochs=2), device="cpu", out=out, progress=False)
print(result.images_per_second, result.peak_bytes)
"""


def main(rounds: int = 3) -> None:
    best = {"given back": 0.0, "kept": 0.0}
    for _ in range(rounds):
        for way in best:
            said = subprocess.check_output([sys.executable, "-c", CHILD, way], text=True)
            rate, peak = map(float, said.split())
            best[way] = max(best[way], rate)
            print(f"{way:10} {rate:8,.0f} images/s {peak / 1e6:6,.0f} MB", flush=True)
    print(f"kept, best of {rounds}: {best['kept'] / best['given back']:.2f} x")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
