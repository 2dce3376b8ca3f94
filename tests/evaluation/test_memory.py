"""The GPU memory of a process, and nvidia-smi."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluation.gpu_stand_in import BEFORE, UUID, StandIn
from rkcnn.error import InputError
from rkcnn.evaluation import memory
from rkcnn.evaluation.memory import MIB, Gpu, infer, list_gpus, list_processes, measure_memory


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


SPEC, DIGITS = "RKCNN-R-2@k=4", (28, 28, 1)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch)


def test_it_is_the_memory_in_use_with_the_process_minus_that_before_it(gpu: StandIn) -> None:
    found = measure_memory(SPEC, 10, DIGITS, "cuda:0")
    assert found[:4] == (612 * MIB, 2 * MIB, 700_000, "device")
    assert (found.gpu.name, found.gpu.driver) == ("NVIDIA H200", "580.65.06")  # the second listed: found by its uuid
    assert gpu.asked == [f"{SPEC} 10 1 28 28 cuda:0"]


def test_a_process_that_the_driver_lists_is_counted_alone(gpu: StandIn) -> None:
    gpu.set(listed=608, leaves=5000)  # then others don't matter
    found = measure_memory(SPEC, 10, DIGITS)
    assert (found.driver, found.counted) == (608 * MIB, "process")


def test_a_process_of_others_is_not_taken_for_the_child(gpu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    class Every(dict[tuple[str, int], int]):
        def __contains__(self, _: object) -> bool:
            return True

    monkeypatch.setattr(memory, "list_processes", Every)
    assert measure_memory(SPEC, 10, DIGITS).counted == "device"


@pytest.mark.parametrize("change", [-300, 5, 5000])
def test_another_process_in_the_way_is_reported(gpu: StandIn, change: int) -> None:
    gpu.set(leaves=change)
    with pytest.raises(InputError, match=rf"\(404 MiB in use before, 1016 during, {BEFORE + change} after\); stop it"):
        measure_memory(SPEC, 10, DIGITS)


def test_less_than_torch_holds_shows_that_another_process_ended_meanwhile(gpu: StandIn) -> None:
    gpu.set(takes=1)
    with pytest.raises(InputError, match=r"something else changed the memory of NVIDIA H200 while RKCNN-R-2@k=4 was"):
        measure_memory(SPEC, 10, DIGITS)


def test_a_few_mib_do_not_matter(gpu: StandIn) -> None:
    gpu.set(leaves=4)
    assert measure_memory(SPEC, 10, DIGITS).driver == 612 * MIB


def test_a_child_that_fails_says_why(gpu: StandIn) -> None:
    gpu.set(complaint="Traceback ...\ntorch.OutOfMemoryError: CUDA out of memory.")
    with pytest.raises(InputError, match=r"can't be measured on cuda: torch\.OutOfMemoryError: CUDA out of memory\.$"):
        measure_memory(SPEC, 10, DIGITS)


def test_a_gpu_that_the_driver_does_not_list(gpu: StandIn) -> None:
    gpu.report(allocated=1, reserved=1, uuid="ffff")
    with pytest.raises(InputError, match="nvidia-smi doesn't list the GPU ffff that torch used"):
        measure_memory(SPEC, 10, DIGITS)


@pytest.mark.parametrize("device", ["cpu", "cuda:", "cuda:-1", "mps", ""])
def test_a_device_that_is_no_gpu(device: str) -> None:
    with pytest.raises(InputError, match="memory is measured on cuda or cuda:N"):
        measure_memory(SPEC, 10, DIGITS, device)


def put_cuda(patch: pytest.MonkeyPatch) -> list[str]:
    """Replace torch.cuda, for a CPU; return the names of its functions in the order of their calls."""
    asked: list[str] = []

    def answer(name: str, value: object) -> None:
        def tell(*_: object) -> object:
            asked.append(name)
            return value

        patch.setattr(torch.cuda, name, tell)

    answer("synchronize", None)
    answer("max_memory_allocated", 5)
    answer("max_memory_reserved", 7)
    answer("get_device_properties", SimpleNamespace(uuid=UUID))
    answer("device_count", 1)
    return asked


@pytest.fixture
def tf32() -> Iterator[None]:
    """Allow tf32 in a test, and restore the settings afterwards."""
    settings: Any = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [setting.allow_tf32 for setting in settings]
    for setting in settings:
        setting.allow_tf32 = True
    yield
    for setting, allowed in zip(settings, before, strict=True):
        setting.allow_tf32 = allowed


@pytest.mark.usefixtures("tf32")
def test_the_child_infers_one_image_in_fp32_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, seen = put_cuda(monkeypatch), list[tuple[object, ...]]()
    network = torch.nn.Conv2d(3, 10, 3)

    def look(module: torch.nn.Module, given: tuple[torch.Tensor], out: torch.Tensor) -> None:
        seen.append((given[0].shape, module.training, out.requires_grad))
        assert not torch.backends.cuda.matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32

    network.register_forward_hook(look)

    def build(*given: object) -> torch.nn.Module:
        seen.append(given)
        return network

    monkeypatch.setattr("rkcnn.model.create.create_model", build)
    assert infer("X", 10, (32, 24, 3), torch.device("cpu")) == {"allocated": 5, "reserved": 7, "uuid": UUID}
    assert seen == [("X", 10, 3), ((1, 3, 32, 24), False, False)]
    assert asked[0] == "synchronize"  # before anything is read


def test_the_child_prints_one_line_and_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cuda(monkeypatch)
    monkeypatch.setattr(torch, "device", lambda _: SimpleNamespace(index=None))
    monkeypatch.setattr(memory, "infer", lambda *given: {"given": given[:3]})
    stdin = io.StringIO("until here")
    monkeypatch.setattr(sys, "stdin", stdin)
    memory.main([SPEC, "10", "3", "32", "24", "cuda"])
    assert json.loads(capsys.readouterr().out) == {"given": [SPEC, 10, [32, 24, 3]]}
    assert stdin.read() == ""


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_real_child_without_a_gpu_is_one_sentence() -> None:
    words = [*memory.CHILD, SPEC, "10", "1", "28", "28", "cuda"]
    source = str(Path(memory.__file__).parents[2])
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source})
    assert done.returncode == 1
    assert done.stderr.startswith(f"torch {torch.__version__} sees 0 GPUs here; name one of them, or measure on")
    assert done.stderr.count("\n") == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_real_process_on_a_gpu() -> None:
    small, large = (measure_memory(f"ResNet@k={k}", 10, (32, 32, 3)) for k in (8, 512))
    for found in (small, large):
        assert 0 < found.allocated <= found.reserved < found.driver
    assert large.allocated > small.allocated + 4 * 9 * 512 * 512
    assert small.driver > 50 * MIB  # a context
