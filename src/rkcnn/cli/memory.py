"""rkcnn memory: measures the GPU memory of a table's networks."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.cli.output import print_error, print_line
from rkcnn.disk import MissingFile
from rkcnn.error import InputError
from rkcnn.record.memory import Memory, memory_path, read_memory

if TYPE_CHECKING:
    from rkcnn.evaluation.memory import Gpu


def memory(table: str, /, *, rows: str = "*", device: str = "cuda", out: Path = Path("results")) -> int:
    """Measure the GPU memory of each network of a table and of Identity.

    A record that can't be read is named on standard error and measured again. Returns the exit code: 1 if a network
    can't be measured, or if a record of another network below the folder can't be read and is left out.

    Parameters
    ----------
    table
        A table of `rkcnn reproduce`.
    rows
        Only the networks that match a pattern, for example 'RKCNN-*@k=32'; several patterns with commas between them.
    device
        cuda or cuda:N; no other process should use that GPU meanwhile.
    out
        The folder for the records, DATA/NETWORK/memory.json; `rkcnn report --from` reads them.
    """
    from rkcnn.evaluation.memory import MIB, list_gpus
    from rkcnn.record.memory import read_memories
    from rkcnn.record.tables import find_table
    from rkcnn.report.report import build_report
    from rkcnn.report.results import build_result_table
    from rkcnn.report.tables.text import memory_text

    chosen = find_table(table)
    picked = chosen.pick(rows)
    gpus = list_gpus()  # first, so that a machine without a GPU says so at once; it may take 10 s
    gpu = _find_gpu(device, gpus.values())
    failed = 0
    for spec in dict.fromkeys((chosen.control, *picked)):
        path = memory_path(out, chosen.data, spec)
        try:
            recorded = _find_current(path, gpu)
            found = recorded or _measure(spec, chosen.data, device, path)
        except InputError as error:
            if spec == chosen.control:  # the others are compared with it, and what stops it stops them too
                raise
            print_error(str(error))
            failed += 1
        else:
            print_line(
                f"{'recorded' if recorded else 'measured':9} {spec}: {found.driver_bytes // MIB} MiB", flush=True
            )
    memories, damaged = read_memories(out)
    for trouble in damaged:
        print_error(str(trouble))
    report = build_report([build_result_table(chosen, (), memories=memories)])
    print(f"\n{memory_text(report.tables[0])}")
    print_line(f"next      rkcnn report {table} --from {out}")
    return 1 if failed or damaged else 0


def _find_gpu(device: str, gpus: Iterable[Gpu]) -> Gpu | None:
    """Return the GPU that `device` names; None if torch can't use it, which measuring on it will explain."""
    try:
        uuid = _uuid_of(device)
    except (AssertionError, RuntimeError, ValueError):  # torch is without CUDA, there is no such GPU, or it is none
        return None
    return next((gpu for gpu in gpus if gpu.uuid.lower().removeprefix("gpu-") == uuid.lower()), None)


def _uuid_of(device: str) -> str:
    import torch

    return str(torch.cuda.get_device_properties(torch.device(device)).uuid).removeprefix("GPU-")


def _find_current(path: Path, gpu: Gpu | None) -> Memory | None:
    """Return the record if this code has made it with the same versions on that kind of GPU."""
    from rkcnn.record.source import MEMORY_MODULE, source_hash

    if gpu is None:
        return None
    try:
        record = read_memory(path)
    except MissingFile:
        return None
    except InputError as error:  # it is measured again
        print_error(str(error))
        return None
    here = source_hash(MEMORY_MODULE), gpu.name, _versions(gpu.driver)
    return record if (record.source, record.gpu, record.versions) == here else None


def _measure(spec: str, data: str, device: str, path: Path) -> Memory:
    """Measure a network's memory and write the record."""
    from rkcnn.data.sets import SETS
    from rkcnn.disk import write_atomically, writing_to
    from rkcnn.evaluation.memory import measure_memory
    from rkcnn.record.source import MEMORY_MODULE, current_source

    classes, shape = len(SETS[data].classes), SETS[data].shape
    measured = measure_memory(spec, classes, shape, device)
    record = Memory(
        network=spec,
        data=data,
        shape=list(shape),
        classes=classes,
        driver_bytes=measured.driver,
        reserved_bytes=measured.reserved,
        allocated_bytes=measured.allocated,
        counted=measured.counted,
        gpu=measured.gpu.name,
        versions=_versions(measured.gpu.driver),
        **asdict(current_source(MEMORY_MODULE)),
    )
    with writing_to(path.parent, "name another folder with --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, record.to_json(), "name another folder with --out")
    return record


def _versions(driver: str) -> dict[str, str]:
    import torch

    from rkcnn import __version__

    return {
        "rkcnn": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "driver": driver,
    }
