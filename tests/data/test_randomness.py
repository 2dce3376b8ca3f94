"""The hash behind every draw: splitmix64, uniform, and a permutation for each (seed, epoch)."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.randomness import ORDER, TOP, permutation, random_integers

CPU = torch.device("cpu")
SEEDS = st.integers(-(2**63), 2**63 - 1)


def _mix(z: int) -> int:
    """Steele, Lea and Flood 2014, in whole numbers."""
    mask = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@given(SEEDS, st.integers(0, 10_000), st.integers(0, 5), st.integers(0, 10**6))
def test_draw_is_splitmix64_of_its_arguments(seed: int, epoch: int, stream: int, position: int) -> None:
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15
    state = 0
    for word in (seed, epoch, stream):
        state = _mix((state + word + golden) & mask)
    expected = _mix((position * golden + state) & mask) & (2**63 - 1)
    assert random_integers(seed, epoch, stream, torch.tensor([position])).item() == expected


@given(SEEDS, st.integers(0, 10_000), st.integers(1, 500))
def test_order_is_a_permutation_and_a_function_of_seed_and_epoch(seed: int, epoch: int, count: int) -> None:
    first = permutation(seed, epoch, count, CPU)
    assert first.sort().values.tolist() == list(range(count))
    assert torch.equal(first, permutation(seed, epoch, count, CPU))


def test_orders_of_other_seeds_and_epochs_differ() -> None:
    orders = {tuple(permutation(seed, epoch, 50, CPU).tolist()) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100


def test_order_never_changes_between_versions() -> None:
    """A published result is repeated only as long as these numbers stay."""
    assert permutation(7, 3, 10, CPU).tolist() == [2, 7, 8, 4, 0, 5, 6, 9, 1, 3]
    assert (random_integers(7, 3, TOP, torch.arange(12)) % 9).tolist() == [7, 7, 7, 6, 8, 0, 8, 8, 8, 7, 4, 6]


def test_draws_are_uniform_and_streams_independent() -> None:
    positions = torch.arange(90_000)
    top, other = random_integers(1, 2, TOP, positions) % 9, random_integers(1, 2, ORDER, positions) % 9
    joint = torch.bincount(top * 9 + other, minlength=81).double()
    expected = 90_000 / 81
    chi_squared = float(((joint - expected) ** 2 / expected).sum())
    assert chi_squared < 140  # 80 degrees of freedom: above this once in 20,000
