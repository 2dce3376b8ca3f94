"""rkcnn bench: how fast networks train and answer, and how much memory that takes, beside other code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.data import WholeNumber
from rkcnn.cli.output import print_line
from rkcnn.error import InputError
from rkcnn.interrupt import EXIT_CODE

if TYPE_CHECKING:
    from rkcnn.record.bench import Bench

LONGEST_NOTE = 300
OTHER_FILE = "name another file with --json"


def bench(
    kind: str = "train",
    /,
    *,
    network: Annotated[list[str] | None, Parameter(negative=())] = None,
    batch: Annotated[str | None, Parameter(name=["--batch", "--batches"])] = None,
    precision: str = "fp32",
    engine: str | None = None,
    at_once: str = "1",
    peer: Annotated[list[str] | None, Parameter(negative=())] = None,
    rounds: WholeNumber | None = None,
    steps: WholeNumber | None = None,
    device: str = "auto",
    note: Annotated[str, Parameter(show_default=False)] = "",
    json_: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> int:
    """Measure networks beside each other and beside other code, in interleaved rounds. Returns the exit code.

    Parameters
    ----------
    kind
        train: a training step. infer: a forward pass. memory: the peak memory of a training step, in a fresh process.
        solve: training steps of ODE networks, and rkcnn.solve, beside torchdiffeq.
    network
        A network, for example RKCNN-I-2_2_2@k=120; give the option again for another. By default RKCNN-R-2@k=32, and
        for solve RKNet-rk4_38@k=32 and ODENet-ab@k=32.
    batch
        Images in a step, or several numbers: 1,8,32,128,512, which infer takes by default. Others take the recipe's.
    precision
        fp32, tf32 or bf16, or several: fp32,bf16.
    engine
        eager, compile, graph, graph-uncompiled or fused (kernels of our own, in bf16 or tf32), or several:
        graph,fused. infer has eager, compile, graph, fused (norms folded, compiled, on a GPU as one CUDA graph) and
        fused-eager. By default train takes all that the device can run but fused, infer these with fused, and memory
        and solve take eager and, on a GPU, graph.
    at_once
        Training runs side by side, or several numbers: 1,5,10.
    peer
        Other code, on the same weights: authors=PATH (a checkout of ZhuMai/RKCNN), cliquenet=PATH (iboing/CliqueNet),
        torchdiffeq, torchvision, timm, naive, or none. Again for another. By default what is installed, or naive.
    rounds
        How often each contender takes its turn: 7, and 3 for memory.
    steps
        Steps in a turn: 40 on a GPU, 5 on a CPU.
    device
        cpu, cuda, cuda:N, or auto: a GPU if there is one.
    note
        A remark for the record, for example on what else the machine was doing.
    json_
        Write the record, with every raw round, to this file.
    output
        A folder for a figure of time, or memory, against the batch: bench.svg and bench.png.
    """
    from rkcnn.bench.plan import make_plan

    plan = make_plan(
        kind,
        network or (),
        batch=batch,
        precision=precision,
        engine=engine,
        at_once=at_once,
        rounds=rounds,
        steps=steps,
        device=device,
        peers=peer,
    )
    if len(note) > LONGEST_NOTE:
        raise InputError(f"a note of {len(note)} characters given; it may have {LONGEST_NOTE}")
    _check_places(json_, output)

    from rkcnn.bench.measure import Measuring
    from rkcnn.cli.progress import BenchProgress
    from rkcnn.run.device import keep_freed_memory

    keep_freed_memory()
    measuring, shown = Measuring(plan, note), BenchProgress(sys.stderr)
    interrupted = False
    try:
        for progress in measuring.run():
            shown.show(*progress)
    except KeyboardInterrupt:
        interrupted = True
    finally:  # what was measured before an error is shown and written too
        shown.clear()
        if measuring.record.measurements:
            _show(measuring.record, json_, output)
    return EXIT_CODE if interrupted else 0


def _check_places(json: Path | None, output: Path | None) -> None:
    """Raise InputError, before anything is measured, if the record or the figure can't be written where it should."""
    from rkcnn.disk import check_output, writing_to

    if json is not None:
        if json.is_dir():
            raise InputError(f"`json={json}` given, which is a folder; name a file in it, as in {json / 'bench.json'}")
        if not json.parent.is_dir():
            raise InputError(
                f"`json={json}` given, and there is no folder {json.parent}; make it, or name another file"
            )
        check_output(json, OTHER_FILE)
    if output is not None:
        with writing_to(output, "name another folder with -o"):
            output.mkdir(parents=True, exist_ok=True)


def _show(record: Bench, json: Path | None, output: Path | None) -> None:
    """Print the tables, and write the record and the figure where they are asked for."""
    from rkcnn.disk import write_output
    from rkcnn.report.bench import bench_text

    try:  # the disk may have become full in the meantime, or the reader of the table has left
        if json is not None:
            write_output(json, record.to_json(), OTHER_FILE)
    finally:
        print(bench_text(record), flush=True)
    if json is not None:
        print_line(f"written   {json}")
    if output is not None:
        from rkcnn.report.figures.bench import draw_bench
        from rkcnn.report.figures.style import save_figure

        for path in save_figure(draw_bench(record), output / "bench"):
            print_line(f"written   {path}")
