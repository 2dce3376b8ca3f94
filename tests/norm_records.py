"""Made-up records of a network's errors with other running statistics."""

from __future__ import annotations

from rkcnn.record.norm_statistics import NormStatistics
from rkcnn.record.run import Run


def measured(run: Run, each: int = 60) -> NormStatistics:
    """A record of a run on 1,000 test images."""
    return NormStatistics(
        run,
        images=1000,
        batches=40,
        wrong={"of the run": 200, "shared": 190, "each": each, "of the batch": 100},
        variances={"periods.0.f.norm1": [0.5, 1.5]},
        device="cpu",
        versions={"rkcnn": "0.1.0"},
        commit=None,
        source="0" * 16,
        hash_version=2,
    )
