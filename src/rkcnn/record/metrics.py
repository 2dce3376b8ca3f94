"""The numbers of each epoch as rows: metrics.csv in a run's folder, and what loggers are given. Imports no torch."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path

from rkcnn.disk import DiskError, open_to_write, write_atomically
from rkcnn.record.result import Epoch
from rkcnn.record.run import Run
from rkcnn.run_folder import METRICS

Metrics = dict[str, int | float]


def list_metrics(run: Run, epochs: Iterable[Epoch]) -> Iterator[Metrics]:
    """Yield one row for each epoch, by column. Errors are fractions, and seconds are those of the epoch's steps.

    `step` counts the steps from the start of the run to the end of the epoch, and epochs are counted from 1.
    """
    step = 0
    for epoch in epochs:
        step += ceil(epoch.images / run.recipe.batch)
        yield {
            "step": step,
            "epoch": epoch.number + 1,
            "train/loss": epoch.loss,
            "train/error": epoch.training_error,
            f"{run.held_out}/error": epoch.held_out_error,
            "lr": epoch.lr,
            "seconds": epoch.seconds,
        }


class MetricsFile:
    """metrics.csv of a run, which follows from its history and so never has to be read.

    It is written anew when a run starts or continues, which drops rows that belong to no kept checkpoint and lines that
    were cut off, and when the run ends. In between, each epoch's row is appended.
    """

    def __init__(self, folder: Path, run: Run, remedy: str) -> None:
        self._path, self._run, self._remedy = folder / METRICS, run, remedy
        self._size = 0  # in bytes, of the rows that are written completely

    def write(self, epochs: Sequence[Epoch]) -> None:
        """Write the rows of all epochs so far."""
        head = f"step,epoch,train/loss,train/error,{self._run.held_out}/error,lr,seconds\n".encode()
        content = head + b"".join(map(_line, list_metrics(self._run, epochs)))
        write_atomically(self._path, content, self._remedy)
        self._size = len(content)

    def append(self, epochs: Sequence[Epoch]) -> None:
        """Append the row of the last epoch. If that fails, training goes on: `write` completes the file later."""
        *_, last = list_metrics(self._run, epochs)
        line = _line(last)
        with suppress(OSError, DiskError), open_to_write(self._path, self._remedy, create=False) as file:
            file.seek(self._size)
            file.truncate()  # what an append that failed has left
            if file.write(line) == len(line):
                self._size += len(line)


def _line(metrics: Metrics) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(metrics.values())
    return text.getvalue().encode()
