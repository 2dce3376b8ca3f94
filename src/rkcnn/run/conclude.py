"""The end of a run: its weights, its predictions and its result on disk."""

from __future__ import annotations

import io
import platform
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from rkcnn import __version__
from rkcnn.disk import write_whole
from rkcnn.evaluation.weights import ModelCard
from rkcnn.fit.checkpoint import REMEDY
from rkcnn.model.cost import cost
from rkcnn.record.result import Result
from rkcnn.record.source import commit, source_hash
from rkcnn.run.device import describe_machine, peak_bytes
from rkcnn.run.job import Job, averaged, checksums
from rkcnn.run_folder import PREDICTIONS, RESULT, WEIGHTS


def conclude(job: Job, status: str) -> Result:
    """Write the weights, the last predictions and, last of all, the result; one rank does."""
    return job.trainer.ranks.first(lambda: _write(job, status))


def _write(job: Job, status: str) -> Result:
    trainer, images = job.trainer, job.train
    errors = [epoch.test_error for epoch in job.history]
    seconds = sum(epoch.seconds for epoch in job.history)
    last = job.history[-1] if job.history else None
    height, width = images.pixels.shape[2:]
    costs = cost(trainer.network, (height, width))
    result = Result(
        run=job.run,
        status=status,
        error=errors[-1] if errors and status == "finished" else None,
        error_best=min(errors, default=None),
        epochs=tuple(job.history),
        seconds=seconds,
        images_per_second=sum(epoch.images for epoch in job.history) / seconds if seconds else 0.0,
        peak_bytes=peak_bytes(trainer.device),
        params=costs.params,
        evaluations=(last and last.evaluations) or costs.evaluations,
        unconverged=last.unconverged if last else None,
        engine=job.engine.kind,
        data={
            "verified": images.verified,
            **checksums(images, job.predictor.images),
            "classes": list(images.classes),
            "own": asdict(images.own),
        },
        versions={"rkcnn": __version__, "torch": torch.__version__, "python": platform.python_version()},
        machine=describe_machine(trainer.device) | {"ranks": trainer.ranks.world, "together": job.together},
        commit=commit(),
        source=source_hash(),
        flops=costs.flops,
        paper_flops=costs.paper_flops,
    )
    if result.finished:
        with averaged(trainer):
            predictions = job.predictor.predictions(trainer.network).cpu().numpy()
            state = {name: value.detach().cpu().contiguous() for name, value in trainer.network.state_dict().items()}
        write_whole(job.folder / WEIGHTS, save(state, ModelCard.of(job.run.spec, images).as_metadata()), REMEDY)
        write_whole(job.folder / PREDICTIONS, _npy(predictions.astype(np.int16)), REMEDY)
    write_whole(job.folder / RESULT, result.to_json(), REMEDY)
    return result


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
