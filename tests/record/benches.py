"""Records of benches, made up."""

from __future__ import annotations

from typing import Any

from rkcnn.record.bench import Bench, Measurement


def measured(code: str, seconds: list[float], **others: Any) -> Measurement:
    return Measurement("training step", "ResNet@k=4", 8, code, "eager", "fp32", seconds=seconds, **others)


def made(*measurements: Measurement) -> Bench:
    machine = {"system": "Linux", "processor": "x86_64", "threads": 1, "gpu": None, "cores": 2}
    return Bench(
        "train",
        3,
        5,
        machine,
        {"rkcnn": "0.1.0"},
        None,
        "0123456789abcdef",
        2,
        "2026-01-01 00:00",
        product_size=64,
        products={"fp32": [2e9, 1e9, 3e9]},
        measurements=list(measurements),
    )
