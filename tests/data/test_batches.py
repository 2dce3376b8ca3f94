"""The laws of Batches: a function of (seed, epoch, step), the same pixels for any number of ranks."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rkcnn.data.augmentation import Augmentation
from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.error import InputError

AUGMENTATION = Augmentation(padding=2, flip=True, cutout=3)
CUTMIX = Augmentation(padding=2, flip=True, cutmix=0.5)


def some(count: int) -> Images:
    """The first real digits, few enough for a property test."""
    train, _ = load_data_set("mnist-mini")
    fields = (train.classes, train.mean, train.std, True, train.pixels_sha256, train.labels_sha256)
    return Images(
        "mnist-mini",
        "a slice",
        train.pixels[:count, :, 9:19, 9:19].contiguous(),
        train.labels[:count],
        *fields,
    )


DIGITS = some(101)


@given(st.integers(0, 2**40), st.integers(0, 50), st.integers(1, 101), st.booleans())
@settings(deadline=None, max_examples=50)
def test_an_epoch_shows_every_image_once(seed: int, epoch: int, size: int, drop_last: bool) -> None:
    batches = Batches(DIGITS, size, seed, drop_last=drop_last)
    seen = [batches.plan(epoch, step)[0] for step in range(len(batches))]
    assert len(seen) == (101 // size if drop_last else -(-101 // size))
    if drop_last:
        assert all(len(indices) == size for indices in seen)
        assert len(set(torch.cat(seen).tolist())) == len(seen) * size
    else:
        assert torch.cat(seen).sort().values.tolist() == list(range(101))


@given(
    st.integers(0, 2**40),
    st.integers(0, 5),
    st.integers(1, 5),
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([AUGMENTATION, CUTMIX]),
)
@settings(deadline=None, max_examples=50)
def test_all_ranks_together_see_the_pixels_of_one(
    seed: int, epoch: int, world: int, each: int, drop_last: bool, augmentation: Augmentation
) -> None:
    def make(rank: int, ranks: int) -> Batches:
        size = world * each
        return Batches(DIGITS, size, seed, augmentation=augmentation, drop_last=drop_last, rank=rank, world=ranks)

    ranks = [make(rank, world) for rank in range(world)]
    for step, whole in enumerate(make(0, 1).epoch(epoch)):
        shares = [rank.at(epoch, step) for rank in ranks]
        assert torch.equal(torch.cat([share.pixels for share in shares]), whole.pixels)
        assert torch.equal(torch.cat([share.labels for share in shares]), whole.labels)
        if whole.mix is not None:
            mixes = [share.mix for share in shares if share.mix is not None]
            assert torch.equal(torch.cat([mix.labels for mix in mixes]), whole.mix.labels)
            assert torch.equal(torch.cat([mix.share for mix in mixes]), whole.mix.share)


@given(st.integers(0, 2**40), st.integers(0, 5), st.data())
@settings(deadline=None, max_examples=30)
def test_a_position_is_restored_exactly(seed: int, epoch: int, data: st.DataObject) -> None:
    batches = Batches(DIGITS, 16, seed, augmentation=AUGMENTATION)
    whole = list(batches.epoch(epoch))
    start = data.draw(st.integers(0, len(batches)))
    fresh = Batches(DIGITS, 16, seed, augmentation=AUGMENTATION)
    again = list(fresh.epoch(epoch, start))
    assert len(again) == len(whole) - start
    for one, other in zip(whole[start:], again, strict=True):
        assert torch.equal(one.pixels, other.pixels)
        assert torch.equal(one.labels, other.labels)


def test_draws_depend_on_the_position_not_on_the_batch_size() -> None:
    small, large = (
        torch.cat([batch.pixels for batch in Batches(DIGITS, size, 3, augmentation=AUGMENTATION).epoch(2)])
        for size in (7, 40)
    )
    assert torch.equal(small, large)


def test_cutmix_says_which_image_its_rectangle_comes_from() -> None:
    """Without other changes every pixel is the image's own, or in the rectangle the other image's."""
    batches = Batches(DIGITS, 101, 3, augmentation=Augmentation(cutmix=1.0))
    indices, choices = batches.plan(2, 0)
    batch = batches.at(2, 0)
    shift, scale = DIGITS.normalisation()
    assert batch.mix is not None
    assert indices[:, 0].sort().values.tolist() == list(range(101))
    assert torch.equal(batch.mix.labels, DIGITS.labels[indices[:, 1]])
    for pixels, (own, other), (top, bottom, left, right) in zip(
        batch.pixels, indices.tolist(), choices[:, 5:].tolist(), strict=True
    ):
        expected = DIGITS.pixels[own].clone()
        expected[:, top:bottom, left:right] = DIGITS.pixels[other][:, top:bottom, left:right]
        assert torch.equal(pixels, (expected.float() - shift) * scale)


def test_epochs_and_seeds_differ() -> None:
    firsts = [
        Batches(DIGITS, 101, seed, augmentation=AUGMENTATION).at(epoch, 0).pixels
        for seed, epoch in ((0, 0), (0, 1), (1, 0))
    ]
    assert not any(torch.equal(firsts[i], firsts[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_without_shuffling_and_augmentation_the_set_comes_out_as_it_is() -> None:
    test = load_data_set("mnist-mini")[1]
    batches = list(Batches(test, 300, 0, shuffle=False).epoch(0))
    assert [len(batch.labels) for batch in batches] == [300] * 6 + [200]
    pixels = torch.cat([batch.pixels for batch in batches])
    assert torch.allclose(pixels, test.pixels.float() / 255, rtol=0, atol=1e-7)
    assert torch.equal(torch.cat([batch.labels for batch in batches]), test.labels)


def test_the_set_is_never_written_to() -> None:
    before = DIGITS.pixels.clone()
    for _ in Batches(DIGITS, 25, 0, augmentation=AUGMENTATION).epoch(0):
        pass
    assert torch.equal(DIGITS.pixels, before)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size": 0}, "positive multiple"),
        ({"size": 10, "world": 4}, "positive multiple of 4"),
        ({"size": 8, "world": 4, "rank": 4}, "give 0 to 3"),
        ({"size": 102, "drop_last": True}, "incomplete batches are dropped"),
        ({"size": 10, "seed": -1}, "seed -1 must be a whole number"),
        ({"size": 10, "seed": 2**63}, "must be a whole number from 0 to 9223372036854775807"),
        ({"size": 10, "seed": 0.5}, "seed 0.5 must be a whole number"),
    ],
)
def test_refuses_impossible_batches(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Batches(DIGITS, **{"seed": 0, **options})


def test_refuses_a_step_outside_the_epoch() -> None:
    with pytest.raises(InputError, match="not in an epoch of 11 steps"):
        list(Batches(DIGITS, 10, 0).epoch(0, start=12))
    for step in (-1, 11):
        with pytest.raises(InputError, match=f"step {step} is not in an epoch of 11 steps"):
            Batches(DIGITS, 10, 0).at(0, step)


def test_without_a_gpu_the_compiler_is_not_imported() -> None:
    """It takes a second, and only a streamed set needs it."""
    code = "import sys; import rkcnn.data.batches; sys.exit('torch._dynamo' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_compiler_leaves_out_the_gather_of_a_streamed_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the GPU's part of it."""
    compiling = []

    def gather(batches: Batches, indices: torch.Tensor) -> torch.Tensor:
        compiling.append(torch.compiler.is_compiling())
        return batches.images.pixels.index_select(0, indices)

    monkeypatch.setattr(Batches, "_gather_from_host", gather)
    batches = Batches(DIGITS, 16, 3, augmentation=AUGMENTATION)
    batches.streamed = True
    batches._gather = torch.compiler.disable(batches._gather_from_host)
    made = torch.compile(batches.make, backend="eager")(*batches.plan(0, 1))
    assert torch.equal(made.pixels, Batches(DIGITS, 16, 3, augmentation=AUGMENTATION).at(0, 1).pixels)
    assert compiling == [False]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_the_device_resident_or_streamed_the_pixels_are_those_of_the_cpu() -> None:
    train = load_data_set("mnist-mini")[0]
    sets = [
        Batches(train, 128, 5, augmentation=AUGMENTATION, device=device, device_share=share)
        for device, share in (("cpu", 0.5), ("cuda", 0.5), ("cuda", 0.0))
    ]
    assert [batches.streamed for batches in sets] == [False, False, True]
    for cpu, resident, streamed in zip(*(batches.epoch(1) for batches in sets), strict=True):
        assert torch.equal(resident.pixels, streamed.pixels)
        assert torch.equal(resident.labels, streamed.labels)
        assert torch.equal(cpu.labels, resident.labels.cpu())
        assert torch.equal(cpu.pixels, resident.pixels.cpu())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_streamed_set_never_waits_for_the_device_and_mixes_up_no_batches() -> None:
    """The way of training: plan and make, with the device so far behind that a buffer reused early would show."""
    train = load_data_set("mnist-mini")[0]
    streamed = Batches(train, 128, 5, augmentation=AUGMENTATION, device="cuda", device_share=0.0)
    cpu = Batches(train, 128, 5, augmentation=AUGMENTATION)
    assert streamed.plan(0, 0)[0].device.type == "cpu"
    streamed.at(0, 0)  # makes the buffers
    torch.cuda.synchronize()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mode is "a prototype feature"
            torch.cuda.set_sync_debug_mode("error")  # a blocking copy raises
        made = []
        for step in range(len(streamed)):
            torch.cuda._sleep(2_000_000)
            made.append(streamed.make(*streamed.plan(0, step)))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for step, batch in enumerate(made):
        expected = cpu.at(0, step)
        assert torch.equal(batch.pixels.cpu(), expected.pixels)
        assert torch.equal(batch.labels.cpu(), expected.labels)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_cuda_graph_replays_the_augmentation() -> None:
    train = load_data_set("mnist-mini")[0]
    batches = Batches(train, 64, 5, augmentation=AUGMENTATION, device="cuda")
    pixels = train.pixels.cuda()
    shift, scale = (tensor.cuda() for tensor in train.normalisation())
    indices, choices = (tensor.clone() for tensor in batches.plan(0, 0))

    def step() -> torch.Tensor:
        return AUGMENTATION.apply(pixels.index_select(0, indices), choices, shift, scale)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which may still be writing the indices
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    for number in range(3):
        for static, fresh in zip((indices, choices), batches.plan(0, number), strict=True):
            static.copy_(fresh)
        graph.replay()
        assert torch.equal(result, batches.at(0, number).pixels)
