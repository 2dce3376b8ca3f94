"""Limits on what a name may cost: what is too large is refused before it takes memory, and can be allowed."""

from __future__ import annotations

import resource
import threading

import pytest
import torch

from rkcnn.error import InputError
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.limits import ACTIVATIONS, EVALUATIONS, PARAMETERS, limited_parameters, may_be_large
from rkcnn.model.spec import parse
from rkcnn.use.outline import outline


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("RKCNN-R-2@k=65536", PARAMETERS),
        ("ResNet@k=4096,r=100", PARAMETERS),
        ("RKCNN-R-2@k=8,r=1000", EVALUATIONS),
        ("RKCNN-R-44@k=8,r=20", EVALUATIONS),
        ("RKCNN-I-100_100@k=1,sweeps=100", EVALUATIONS),
        ("CliqueNet-100@k=1,sweeps=100", EVALUATIONS),
        ("RKNet-dopri5@k=8,r=1000", EVALUATIONS),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_too_much_is_a_sentence_that_says_how_to_allow_it(name: str, variable: str, device: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        pytest.raises(InputError, match=rf"limit.*choose smaller numbers, or set {variable} in the environment"),
        torch.device(device),
    ):
        create_model(name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # in units of 1,024 bytes


def test_an_original_has_limits_too() -> None:
    with pytest.raises(InputError, match=f"MomentumResNet-101 has over 1,000,000,000 parameters.*{PARAMETERS}"):
        create_model("MomentumResNet-101", classes=1_000_000)


def test_a_limit_can_be_raised_and_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EVALUATIONS, "4")
    with torch.device("meta"):
        create_model("RKCNN-E-1@k=1,r=4")
        with pytest.raises(InputError, match="has 5 or more evaluations, over the limit of 4"):
            create_model("RKCNN-E-1@k=1,r=5")
        monkeypatch.setenv(PARAMETERS, "100")
        with pytest.raises(InputError, match="has over 100 parameters, which is the limit"):
            create_model("RKCNN-E-1@k=8")
    monkeypatch.setenv(PARAMETERS, "many")
    with pytest.raises(InputError, match="RKCNN_MAX_PARAMS='many' is set; it is a whole number"):
        create_model("RKCNN-E-1@k=8")


@pytest.mark.parametrize("count", [cost, outline])
@pytest.mark.parametrize("name", ["ResNet@k=4", "CliqueNet-k80-T18"])
def test_an_image_can_be_too_large(count: object, name: str) -> None:
    with torch.device("meta"):
        network = create_model(name)
    says = f"{name} has .* or more bytes of activations for one image, over the limit of 4,294,967,296.*{ACTIVATIONS}"
    with pytest.raises(InputError, match=says):
        count(network, 65536)  # type: ignore[operator]


def test_counting_first_draws_no_random_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is perhaps large is built twice, and its weights are those of one that is built once."""
    name = "RKCNN-R-2@k=8"
    monkeypatch.setattr("rkcnn.model.limits._LARGE", 1000)
    assert may_be_large(parse(name))
    torch.manual_seed(0)
    twice = create_model(name)
    monkeypatch.setattr("rkcnn.model.network.may_be_large", lambda _: False)
    torch.manual_seed(0)
    once = create_model(name)
    pairs = zip(twice.state_dict().values(), once.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    assert list(twice.state_dict()) == list(once.state_dict())


def test_what_another_thread_builds_is_not_counted() -> None:
    with limited_parameters("ResNet@k=4", parameters=0):
        thread = threading.Thread(target=create_model, args=("ResNet@k=4",))
        thread.start()
        thread.join()
        with pytest.raises(InputError):
            create_model("ResNet@k=4")


def test_too_little_memory_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(InputError, match="needs more memory than there is"):
        create_model("ResNet@k=4")
