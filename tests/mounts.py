"""For tests of disks that are full or read-only: root can write to any folder, so they use mount namespaces."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def can_mount() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode
    )


needs_mounts = pytest.mark.skipif(not can_mount(), reason="needs unshare and mount namespaces")
