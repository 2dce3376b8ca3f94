"""What is read out of nvidia-smi's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.evaluation.nvidia_smi import MIB, Gpu, list_gpus, list_processes


def put_smi(folder: Path, patch: pytest.MonkeyPatch, says: str, code: int = 0) -> None:
    smi = folder / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\nprintf '%s' '{says}'\nexit {code}\n")
    smi.chmod(0o755)
    patch.setenv("PATH", str(folder))


def test_gpus_by_their_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_smi(tmp_path, monkeypatch, "GPU-1, 580.65, 4, NVIDIA H200\nGPU-2, 580.65, 1024, One, with a comma\n")
    assert list_gpus() == {
        "GPU-1": Gpu("GPU-1", "580.65", 4 * MIB, "NVIDIA H200"),
        "GPU-2": Gpu("GPU-2", "580.65", 1024 * MIB, "One, with a comma"),
    }


def test_processes_whose_memory_is_hidden_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_smi(tmp_path, monkeypatch, "GPU-1, 17, 612\nGPU-1, 18, [N/A]\n[Insufficient Permissions]\n")
    assert list_processes() == {("GPU-1", 17): 612 * MIB}
    put_smi(tmp_path, monkeypatch, "not supported", code=6)
    assert list_processes() == {}


@pytest.mark.parametrize(
    ("says", "code", "message"),
    [
        ("NVIDIA-SMI has failed because it\ncould not reach the driver", 9, r"failed \(NVIDIA-SMI has failed because"),
        ("", 0, "nvidia-smi lists no GPU; measure on a machine with"),
        ("GPU-1, 580.65, [N/A], NVIDIA GB10\n", 0, "without the memory in use; measure on another GPU"),
        ("nonsense\n", 0, "nvidia-smi says 'nonsense'"),
    ],
)
def test_no_number_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int, message: str
) -> None:
    put_smi(tmp_path, monkeypatch, says, code)
    with pytest.raises(InputError, match=message) as error:
        list_gpus()
    assert "\n" not in str(error.value)


def test_no_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InputError, match="nvidia-smi, which reports a GPU's memory, is not installed here; measure on a machine with"
    ):
        list_gpus()
