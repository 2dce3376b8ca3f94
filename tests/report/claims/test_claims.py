"""The claims are the paper's, about rows that exist."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rkcnn.model.spec import parse
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.claims import CLAIMS, Claim, Key, Pair
from rkcnn.report.paper import printed_error

SHARED = Path(os.environ.get("RKCNN_SHARED", Path(__file__).parents[4] / "shared"))
PAPER = SHARED / "paper" / "rkcnn-paper.tex"
BY_ID = {claim.id: claim for claim in CLAIMS}
WITH_PAIRS = [claim for claim in CLAIMS if claim.kind != "share"]


def name_of(claim: Claim) -> str:
    return claim.id


@pytest.mark.shared("paper/rkcnn-paper.tex")
@pytest.mark.parametrize("claim", CLAIMS, ids=name_of)
def test_the_sentence_stands_in_that_line(claim: Claim) -> None:
    line = PAPER.read_text(encoding="utf-8").splitlines()[claim.line - 1]
    line = line.replace(r"\textasciitilde", "~").replace(r"\%", "%")
    assert claim.sentence in re.sub(r"[{}]", "", line)


@pytest.mark.parametrize("claim", WITH_PAIRS, ids=name_of)
def test_pairs_are_between_rows_of_one_table(claim: Claim) -> None:
    pairs = claim.find_pairs(())
    assert pairs
    assert len({*pairs}) == len(pairs)
    for table, first, second in pairs:
        assert first != second
        assert {first, second} <= {*TABLES[table].specs}
        paper = TABLES[table].paper
        assert paper is None or paper.label in claim.tables


@pytest.mark.parametrize(
    ("claim", "number"),
    [
        ("e-worse", 2 * 4),
        ("i-r-alike", 4),
        ("bottleneck", 4),
        ("beats-numerical", 3 * 6 + 2 * 5 + 3 * 5 + 3 * 5),
        ("beats-numerical-matched", 2 * 3 * 6 + 3 * 3),
        ("smaller-beats-bases", 3 * 2 + 3 * 2),
        ("smaller-beats-numerical", 3 * 5 + 4 + 4 + 4),
        ("multistep", 2 * (2 + 3)),
        ("beats-bases", 4 * 2 * 2),
        ("more-stages", 1),
        ("more-steps", 1),
        ("more-width", 3 + 3 * 2 + 3 * 3 + 1),
    ],
)
def test_nothing_is_left_out(claim: str, number: int) -> None:
    assert len(BY_ID[claim].find_pairs(())) == number


@pytest.mark.parametrize(
    "claim",
    ["e-worse", "bottleneck", "beats-numerical", "beats-bases", "smaller-beats-bases", "smaller-beats-numerical"],
)
def test_the_papers_own_means_lie_as_it_claims(claim: str) -> None:
    """Else we have misread the claim."""
    for table, *names in BY_ID[claim].find_pairs(()):
        paper = TABLES[table].paper
        assert paper is not None
        first, second = (printed_error(paper.label, name, TABLES[table].data) for name in names)
        assert first is not None
        assert second is not None
        assert first.mean is not None
        assert second.mean is not None
        assert (first.mean < second.mean) == (claim != "bottleneck"), (table, names)


def test_norms_are_equal_where_they_are_to_be_matched() -> None:
    for _, first, second in BY_ID["beats-numerical-matched"].pairs:
        frames = [parse(name).norm for name in (first, second)]
        assert frames in (["gn", "paper"], ["bn", "bn"])  # paper's norm of the rivals is gn


def grown(*known: Key) -> list[Pair]:
    return [c for word in ("stages", "steps", "width") for c in BY_ID[f"more-{word}"].find_pairs(known)]


def test_growth_is_found_among_the_records() -> None:
    """Stages, steps and width, each alone; the ends of a chain, not its middle; never across two kinds."""
    assert {c for c in grown() if c.table == "scaling"} == {
        Pair("scaling", "RKCNN-I-5_5_5@k=80", "RKCNN-I-2_2_2@k=80"),
        Pair("scaling", "RKCNN-I-2_2_2@k=80,r=3", "RKCNN-I-2_2_2@k=80"),
        Pair("scaling", "RKCNN-I-2_2_2@k=120", "RKCNN-I-2_2_2@k=40"),
    }
    base = {"RKCNN-R-2@k=32", "RKCNN-R-3@k=32", "RKCNN-R-4@k=32", "RKCNN-R-2@k=32,r=2", "RKCNN-R-2@k=16"}
    others = {"RKCNN-E-3@k=64", "ResNet@k=16", "ResNet@k=32", "RKCNN-R-3@k=32,norm=gn"}
    known = [("own", name) for name in base | others]
    found = [c for c in grown(*known) if c.table == "own"]
    assert {*found} == {
        Pair("own", "RKCNN-R-4@k=32", "RKCNN-R-2@k=32"),
        Pair("own", "RKCNN-R-2@k=32,r=2", "RKCNN-R-2@k=32"),
        Pair("own", "RKCNN-R-2@k=32", "RKCNN-R-2@k=16"),
    }
    crossed = [("own", "RKCNN-R-2_2@k=8_16"), ("own", "RKCNN-R-2_2@k=17_8")]  # neither is the larger
    assert not [c for c in grown(*crossed) if c.table == "own"]
