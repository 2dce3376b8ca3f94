"""What comparisons allow one to say."""

from __future__ import annotations

from pathlib import Path

from report.records import ERRORS, put_records
from rkcnn.evaluation.binomial import McNemar
from rkcnn.record.tables import TABLES
from rkcnn.report.compare import compare
from rkcnn.report.view import view
from rkcnn.report.words import conclude, mark, note_comparisons, tag, title


def test_what_separates_and_what_doesnt(tmp_path: Path) -> None:
    put_records(tmp_path)
    _, resnet, _, implicit = compare(view(TABLES["mnist"], tmp_path))
    assert conclude(resnet, 3) == (
        "pre-act ResNet errs more than RKCNN-R-2 k=32 by 0.050 points (95 % interval +0.015 to +0.084; "
        "corrected p 0.037; permutation p 0.024, the smallest that 5 against 4 allow 0.0079)."
    )
    assert conclude(implicit, 3) == (
        "RKCNN-I-2 k=32 and RKCNN-R-2 k=32 are not separable with 5 and 4 seeds: the difference is -0.002 points "
        "(95 % interval -0.036 to +0.031; corrected p 0.86; permutation p 0.86, the smallest that 5 against "
        "4 allow 0.0079)."
    )
    judged = conclude(implicit._replace(mcnemar=McNemar(10, 5, 0.3)), 3)
    assert "McNemar, seed 0 of each: 10 images wrong in the first alone, 5 in the second, uncorrected p 0.3)" in judged


def test_an_interval_that_leaves_zero_out_may_not_survive_correction(tmp_path: Path) -> None:
    put_records(tmp_path)
    resnet = compare(view(TABLES["mnist"], tmp_path))[1]._replace(p=0.2)
    assert "are not separable with 5 and 4 seeds once corrected: the difference is +0.050" in conclude(resnet, 3)


def test_no_interval_without_spread(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.005,) * 2, "RKCNN-R-2@k=32": (0.004,) * 2})
    (contrast,) = compare(view(TABLES["mnist"], tmp_path))
    assert conclude(contrast, 3).startswith(
        "pre-act ResNet and RKCNN-R-2 k=32: the difference is +0.100 points, without an interval (no spread"
    )


def test_what_the_comparisons_are(tmp_path: Path) -> None:
    seen = view(TABLES["mnist"], tmp_path)
    assert list(note_comparisons(seen, [])) == [
        "No comparison: RKCNN-R-2 k=32 and another row need two finished runs each, none diverged."
    ]
    few = {spec: errors[:3] for spec, errors in ERRORS.items()}
    put_records(tmp_path, few)
    seen = view(TABLES["mnist"], tmp_path)
    notes = list(note_comparisons(seen, compare(seen)))
    assert "corrected for 4 comparisons (Holm)" in notes[0]
    assert "the smallest p that so few seeds allow, 0.1, would be 0.4 when corrected" in notes[1]
    assert notes[2].startswith("No McNemar test")


def test_survivors_are_not_compared_and_that_is_said(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.003, None, None, 0.0031, None), "ODENet-ab@k=32": (None,)})
    seen = view(TABLES["mnist"], tmp_path)
    assert [note for note in note_comparisons(seen, compare(seen)) if "diverged" in note] == [
        "3 of 5 runs of DenseNet (T = 2) diverged: what is left is chosen, so it is not compared."
    ]


def test_many_seeds_have_no_permutation_test(tmp_path: Path) -> None:
    put_records(tmp_path)
    seen = view(TABLES["mnist"], tmp_path)
    contrasts = [each._replace(permutation=None) for each in compare(seen)]
    assert "permutation" not in conclude(contrasts[1], 3)
    assert not any("permutation" in note for note in note_comparisons(seen, contrasts))


def test_smoke_says_that_it_compares_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, None)}, preset="smoke")
    notes = list(note_comparisons(view(TABLES["mnist"], tmp_path), []))
    assert notes[-1] == "No comparison: smoke says nothing about accuracy, with however many seeds."


def test_other_recipes_are_marked(tmp_path: Path) -> None:
    paper, fast, smoke = (view(TABLES["mnist"], tmp_path, preset) for preset in ("paper", "fast", "smoke"))
    assert (mark(paper), tag(paper)) == ("", "")
    assert mark(fast) == "FAST: 20 epochs by fast-mnist, the paper has 160; not the paper's recipe"
    assert mark(smoke) == "SMOKE: 40 steps on mnist-mini; says nothing about accuracy"
    assert (tag(fast), tag(smoke)) == ("FAST", "SMOKE")
    assert title(smoke).endswith("; smoke, 0 of 19 runs")
