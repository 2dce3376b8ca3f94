"""The table of pretrained weights in docs/pretrained.md."""

from __future__ import annotations

from pathlib import Path

from rkcnn.report.readme import replace_between
from rkcnn.use.pretrained.catalogue import read_catalogue
from rkcnn.use.pretrained.page import MARKERS, write_page, write_table

PAGE = Path(__file__).parents[3] / "docs" / "pretrained.md"


def test_the_page_has_the_weights_of_the_package() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_between(text, MARKERS, write_table(read_catalogue())) == text, (
        "stale: python -m rkcnn.use.pretrained.page writes it"
    )


def test_a_row_has_its_errors(pretrained: str, tmp_path: Path) -> None:
    (weights,) = read_catalogue()
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n" + "\n".join(MARKERS) + "\n\nAfter.\n")
    assert write_page(str(page)) == []
    row = next(line for line in page.read_text().splitlines() if line.startswith(f"| `{pretrained}` |"))
    assert f"| {100 * (weights.result.error or 0):.2f} % | {weights.storage.wrong} of 2,000 |" in row
    assert "| 28 x 28, grey, 10 classes |" in row
    assert ",max_steps_per_epoch=30 in fp32 |" in row
    assert page.read_text().endswith("\n\nAfter.\n")
    assert "*" not in row
    weights.result.data["verified"] = False
    text = write_table([weights])
    assert f" {100 * (weights.result.error or 0):.2f} %* |" in text
    assert "\n\\*: trained and tested on images that are not, byte for byte, those of the published files.\n" in text
    assert write_table([]) == "This version of the package holds no weights."
