"""Made-up records of what a run errs with other running statistics."""

from __future__ import annotations

from pathlib import Path

from rkcnn.record.errors_by_statistics import ErrorsByStatistics
from rkcnn.record.result import Result, read_result
from rkcnn.run_folder import ERRORS_BY_STATISTICS, RESULT


def measured(result: Result, each: int = 60) -> ErrorsByStatistics:
    """A record of a run on 1,000 test images."""
    wrong = {"of the run": round(1000 * (result.error or 0)), "shared": 190, "each": each, "of the batch": 100}
    ratios = {"periods.0.f.norm1": [0.5, 1.5]}
    return ErrorsByStatistics(result.run, 1000, 40, wrong, ratios, "cpu", {"rkcnn": "0.1.0"}, None, "0" * 16, 2)


def put_measured(folder: Path, each: int) -> None:
    """Write the record of the run in a folder."""
    record = measured(read_result(folder / RESULT), each)
    (folder / ERRORS_BY_STATISTICS).write_bytes(record.to_json())
