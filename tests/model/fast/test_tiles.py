"""The sizes of blocks cover every shape and fit the GPU."""

from __future__ import annotations

import pytest

from rkcnn.model.fast.tiles import (
    SHARED_MEMORY,
    Product,
    Stream,
    choose_tiles,
    choose_window,
    part_count,
    power_of_two,
)

ROWS = (1, 2048, 8192, 16384, 32768, 65536, 262144)
WIDTHS = (3, 16, 26, 32, 64, 78, 80, 96, 120, 128)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("k", WIDTHS)
@pytest.mark.parametrize("size", [2, 4])
def test_blocks_fit_the_shared_memory_of_a_gpu(rows: int, k: int, size: int) -> None:
    """With `size` bytes for a number. Of float32 there may be one more copy, in the layout that matrix units want."""
    tiles, wide = choose_tiles(rows, k, size), power_of_two(k)
    copies = size // 4
    for product in (tiles.narrow, tiles.conv, tiles.conv_back):
        if isinstance(product, Product):
            loaded = (product.rows + product.columns) * product.sum * (product.stages + copies)
            assert size * loaded <= SHARED_MEMORY
            assert min(product.rows, product.columns, product.sum) >= 16
            assert size == 2 or product.rows * product.columns <= 64 * 32 * product.warps  # of float32 in registers
    for stream, kept in ((tiles.narrow_back, 1), (tiles.narrow_by_rows, 2)):  # weights of one state, or of two
        if isinstance(stream, Stream):
            loaded = stream.rows * (wide + stream.columns) * (stream.stages + copies)
            assert size * (loaded + kept * wide * stream.columns) <= SHARED_MEMORY
            assert min(stream.rows, stream.columns) >= 16
    for split in filter(None, (tiles.conv_weights, tiles.narrow_weights)):
        assert size * split.rows * (split.outputs + split.inputs) * (split.stages + 1) <= SHARED_MEMORY
        assert min(split.rows, split.outputs, split.inputs) >= 16
    assert size * 2 * tiles.sums.rows * wide * tiles.sums.stages <= SHARED_MEMORY


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("columns", "totals"), [(20, (9, 320)), (32, (9, 512)), (64, (27, 1024)), (128, (27, 36))])
@pytest.mark.parametrize("size", [2, 4])
def test_blocks_of_a_stem_fit_too(rows: int, columns: int, totals: tuple[int, ...], size: int) -> None:
    """Weights and the images themselves are float32 in both precisions, and are copied to the other."""
    for total in totals:
        window, wide = choose_window(rows, columns, total, size), power_of_two(columns)
        assert min(window.rows, window.sum, window.split) >= 16
        assert window.sum >= total or total > 64
        patches = 4 if total <= 64 else size
        stages = 1 if total <= 64 else 3  # a sum of one block has no loop
        forward = stages * (patches * window.rows + 4 * wide) + size * (window.rows + wide)
        weights = 3 * (size * wide + patches * window.sum) + size * (wide + window.sum)
        assert window.sum * forward <= SHARED_MEMORY
        assert window.split * weights <= SHARED_MEMORY


def test_powers_of_two() -> None:
    assert [power_of_two(n) for n in (1, 16, 17, 120, 128)] == [16, 16, 32, 128, 128]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000, 32768])
@pytest.mark.parametrize("programs", [1, 7, 264])
def test_parts_cover_all_rows_and_none_is_empty(rows: int, programs: int) -> None:
    parts, each = part_count(64, programs, rows, 2)
    assert each % 64 == 0
    assert (parts - 1) * each < rows <= parts * each
    assert parts <= max(1, programs // 2)
