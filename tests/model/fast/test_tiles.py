"""The sizes of blocks cover every shape and fit the GPU."""

from __future__ import annotations

import pytest

from rkcnn.model.fast.choose import SHARED_MEMORY
from rkcnn.model.fast.tiles import Product, choose_tiles, part_count, power_of_two

ROWS = (1, 2048, 8192, 16384, 32768, 65536, 262144)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("k", [3, 16, 26, 32, 64, 78, 80, 96, 120, 128])
def test_blocks_fit_the_shared_memory_of_a_gpu(rows: int, k: int) -> None:
    tiles = choose_tiles(rows, k)
    for product in (tiles.narrow, tiles.conv, tiles.conv_back):
        if isinstance(product, Product):
            assert 2 * (product.rows + product.columns) * product.sum * product.stages <= SHARED_MEMORY
    stream = tiles.narrow_back
    loaded = stream.rows * (power_of_two(k) + stream.columns) * stream.stages + power_of_two(k) * stream.columns
    assert 2 * loaded <= SHARED_MEMORY
    for split in filter(None, (tiles.conv_weights, tiles.narrow_weights)):
        assert 2 * split.rows * (split.outputs + split.inputs) * (split.stages + 1) <= SHARED_MEMORY
        assert min(split.rows, split.outputs, split.inputs) >= 16


def test_powers_of_two() -> None:
    assert [power_of_two(n) for n in (1, 16, 17, 120, 128)] == [16, 16, 32, 128, 128]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000, 32768])
@pytest.mark.parametrize("programs", [1, 7, 264])
def test_parts_cover_all_rows_and_none_is_empty(rows: int, programs: int) -> None:
    parts, each = part_count(64, programs, rows, 2)
    assert each % 64 == 0
    assert (parts - 1) * each < rows <= parts * each
    assert parts <= max(1, programs // 2)
