"""A stand-in for a GPU: an nvidia-smi of a few lines on PATH, and a child that takes memory by writing a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rkcnn.evaluation import memory

UUID = "0f1e2d3c-aaaa-bbbb-cccc-000000000001"
BEFORE = 404  # MiB in use

SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*) printf 'GPU-{other}, 580.65.06, 999, NVIDIA A100\\n'
                 printf 'GPU-{uuid}, 580.65.06, %s, NVIDIA H200\\n' "$(cat {folder}/used)" ;;
  --query-compute-apps=*) cat {folder}/processes ;;
esac
"""
CHILD = """
echo "$@" >> {folder}/asked
printf 'output of a library\\n'
printf '%s\\n' "$(cat {folder}/complaint)" >&2
test -s {folder}/complaint && exit 2
before=$(cat {folder}/used)
expr $before + $(cat {folder}/takes) > {folder}/used
test -e {folder}/listed && printf 'GPU-{uuid}, %s, %s\\n' $$ "$(cat {folder}/listed)" > {folder}/processes
cat {folder}/report
cat > /dev/null
expr $before + $(cat {folder}/leaves) > {folder}/used
"""


class StandIn:
    """Files say how many MiB are in use, how many a child takes and leaves behind, and what the child reports."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        names = {"folder": folder, "uuid": UUID, "other": UUID.replace("f", "e")}
        smi = folder / "nvidia-smi"
        smi.write_text(SMI.format(**names))
        smi.chmod(0o755)
        (folder / "child").write_text(CHILD.format(**names))
        patch.setenv("PATH", str(folder), prepend=":")
        patch.setattr(memory, "CHILD", ("sh", str(folder / "child")))
        patch.setattr(memory, "WAIT", 0.0)
        self.set(used=BEFORE, takes=612, leaves=0, processes="", complaint="", asked="")
        self.report(allocated=700_000, reserved=2 << 20, uuid=UUID)

    def set(self, **files: Any) -> None:
        for name, content in files.items():
            (self.folder / name).write_text(str(content))

    def report(self, **values: Any) -> None:
        (self.folder / "report").write_text(json.dumps(values) + "\n")

    @property
    def asked(self) -> list[str]:
        """The children's arguments so far."""
        return (self.folder / "asked").read_text().splitlines()
