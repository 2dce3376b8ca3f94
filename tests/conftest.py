"""Shared rules of the tests: threads, and what may skip where."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
import torch
from hypothesis import settings

settings.register_profile("rkcnn", deadline=None)  # a shared core can be slow for a moment
settings.load_profile("rkcnn")

MAY_SKIP = ("GPU", "timm", "../shared", "Chromium")  # everything else must be there when CI=true


torch.set_num_threads(1)  # two workers with two threads each on two cores run 6 times slower than with one each


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skip for a missing extra or compiler is a failure."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in MAY_SKIP):
            report.outcome = "failed"
            report.longrepr = f"skipped in CI: {reason}"
    return report
