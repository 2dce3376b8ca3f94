"""Whether another version of the code trains the same weights as this one, bit for bit.

python benchmarks/same_weights.py OTHER/src

Trains a few networks with both, by the recipe smoke and by one epoch of mini, on one CPU thread. Prints both source
hashes and which networks came out equal: what to add to EQUIVALENT in src/rkcnn/record/source.py. Both compute in the
contiguous layout of memory, as versions choose different ones on a CPU, and layouts round differently.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SMOKE = (
    "RKCNN-E-2@k=8",
    "RKCNN-I-2_2@k=8",
    "RKCNN-R-2@k=8",
    "ResNet@k=8",
    "ResNet-bottleneck@k=8",
    "RKNN-rk4_38@k=8",
    "RKNet-rk4_38@k=8",
    "RKNet-radau3@k=8",
    "ODENet-ab@k=8",
    "ODENet-abm@k=8",
    "DenseNet-2@k=8",
    "CliqueNet-2@k=8",
    "Identity@k=8",
)
RUNS = [*((spec, "smoke", ()) for spec in SMOKE), ("RKCNN-R-2@k=32", "mini", ("--set", "epochs=1"))]
HERE = Path(__file__).parents[1] / "src"
CONTIGUOUS = """
import runpy, torch, rkcnn.fit.trainer
if hasattr(rkcnn.fit.trainer, "set_layout"):
    rkcnn.fit.trainer.set_layout = lambda network, device: torch.contiguous_format
runpy.run_module("rkcnn", run_name="__main__")
"""


def train(source: Path, out: Path, spec: str, recipe: str, options: tuple[str, ...]) -> tuple[str, str]:
    """Train with the code in a folder; return the hash of the weights, and that of the code as its record has it."""
    command = [sys.executable, "-c", CONTIGUOUS, "train", spec, "--recipe", recipe, *options, "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", str(out)], env=environment, check=True, stdout=subprocess.DEVNULL)
    (weights,) = out.rglob("weights.safetensors")
    record = json.loads((weights.parent / "result.json").read_bytes())
    code = record["stretches"][-1]["source"] if "schema" in record else record["source"]
    return hashlib.sha256(weights.read_bytes()).hexdigest(), code


def main(other: str) -> None:
    for spec, recipe, options in RUNS:
        with TemporaryDirectory() as folder:
            ours, our_code = train(HERE, Path(folder, "ours"), spec, recipe, options)
            theirs, their_code = train(Path(other), Path(folder, "theirs"), spec, recipe, options)
        verdict = "equal" if ours == theirs else "DIFFERENT"
        print(f"{verdict:10} {spec:22} {recipe:6} {our_code} {their_code}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
