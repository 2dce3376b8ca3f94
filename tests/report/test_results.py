"""Which records stand in a table, and what is missing from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from footprints import put_memories
from report.records import ERRORS, put_records, report_of, results_of, row_of
from rkcnn.error import InputError
from rkcnn.record.tables import PRESETS, TABLES
from rkcnn.report.paper import family_of, reference_of
from rkcnn.report.results import find_conflicts, find_precisions, read_records
from rkcnn.report.sentences import preset_warning, title


def test_rows_are_the_tables_whatever_was_run(tmp_path: Path) -> None:
    put_records(tmp_path)
    seen = results_of(tmp_path)
    assert (seen.preset, seen.empty) == ("paper", False)
    assert tuple(row.network for row in seen.rows) == TABLES["mnist"].specs
    assert [row.missing for row in seen.rows if row.network in ERRORS] == [0, 0, 0, 0, 1]
    assert all(row.missing == 5 and row.last is None for row in seen.rows if row.network not in ERRORS)


def test_one_that_diverged_is_a_result_and_no_error(tmp_path: Path) -> None:
    put_records(tmp_path, {"ODENet-ab@k=32": (0.004, None, None)})
    one = row_of(tmp_path, "ODENet-ab@k=32")
    assert (len(one.results), len(one.diverged), one.missing) == (1, 2, 2)
    assert one.last
    assert one.last.std is None


def test_recipes_are_never_mixed(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.01, 0.01)}, preset="fast")
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    assert results_of(tmp_path).preset == "fast"
    assert [len(row_of(tmp_path, "ResNet@k=32", preset=preset).results) for preset in PRESETS] == [0, 2, 1]
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    assert results_of(tmp_path).preset == "paper"
    assert results_of(tmp_path, "mnist", "smoke").preset == "smoke"


def test_precisions_are_never_mixed_and_each_table_is_marked(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    put_records(tmp_path, {"ResNet@k=32": (0.009,)}, precision="bf16")
    plain, rounded = results_of(tmp_path), results_of(tmp_path, precision="bf16")
    assert [[len(row.results) for row in each.rows if row.results] for each in (plain, rounded)] == [[2], [1]]
    assert (plain.way, plain.tag, plain.others) == ("paper", "", {"paper-mnist in bf16": 1})
    assert (rounded.way, rounded.tag, rounded.others) == ("paper in bf16", "BF16", {"paper-mnist in fp32": 2})
    assert "; paper-mnist in bf16, 1 of 95 runs" in title(rounded)
    assert preset_warning(rounded) == "BF16: computed in bf16, where paper-mnist has fp32"
    assert not rounded.compares_with_paper(rounded.rows[1])
    assert results_of(tmp_path, precision="fp32").way == "paper"  # the precision that the recipe has anyway
    assert find_precisions(TABLES["mnist"], read_records(tmp_path)[0]) == ["fp32", "bf16"]


def test_a_fast_table_in_another_precision_says_both(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast", "fp32")
    assert results_of(tmp_path, "cifar10").empty  # fast-cifar is in bf16
    found = results_of(tmp_path, "cifar10", precision="fp32")
    assert (found.way, found.tag) == ("fast in fp32", "FAST FP32")
    assert preset_warning(found).endswith("not the paper's recipe. FP32: computed in fp32, where fast-cifar has bf16")


def test_an_overridden_recipe_stays_out(tmp_path: Path) -> None:
    (at,) = put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)})
    record = json.loads((at / "result.json").read_bytes())
    record["run"]["recipe"]["lr"] = 0.2
    (at / "result.json").write_text(json.dumps(record))
    assert results_of(tmp_path).empty


def test_all_seeds_count_also_those_beyond_the_tables(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.0041, 0.0042, 0.0043, 0.0044, 0.0045, 0.009)})
    one = row_of(tmp_path, "ResNet@k=32")
    assert ([result.run.seed for result in one.results], one.missing) == ([0, 1, 2, 3, 4, 5, 6], 0)
    assert one.last
    assert one.last.mean == pytest.approx((0.0255 + 0.009) / 7)
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.4, 0.5)}, preset="smoke")
    one = row_of(tmp_path, "ResNet@k=32", preset="smoke")
    assert (len(one.results), one.missing) == (3, 0), "smoke has one seed in the table"


def test_any_seeds_make_up_the_tables_number(tmp_path: Path) -> None:
    folders = put_records(tmp_path, {"ResNet@k=32": (0.004,) * 8})
    for at in folders[2:7]:
        (at / "result.json").unlink()
    one = row_of(tmp_path, "ResNet@k=32")
    assert ([result.run.seed for result in one.results], one.missing) == ([0, 1, 7], 2)


def test_a_record_from_before_a_recipe_field_counts(tmp_path: Path) -> None:
    (at,) = put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    record = json.loads((at / "result.json").read_bytes())
    del record["run"]["recipe"]["max_steps_per_epoch"]
    (at / "result.json").write_text(json.dumps(record))
    assert len(row_of(tmp_path, "ResNet@k=32").results) == 1


def test_a_copy_counts_once(tmp_path: Path) -> None:
    put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)})
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004,)})
    assert len(row_of(tmp_path, "ResNet@k=32").results) == 1


def test_tables_share_runs(tmp_path: Path) -> None:
    put_records(tmp_path)
    shared = row_of(tmp_path, "RKCNN-I-2@k=32", "sota-mnist")
    assert len(shared.results) == 5
    assert shared.label == "RKCNN-I-2"


def test_a_table_of_our_own_has_nothing_of_the_papers(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=80": (0.05, 0.06)}, "scaling")
    one = row_of(tmp_path, "RKCNN-I-2_2_2@k=80", "scaling")
    assert (one.printed, one.label, one.missing) == (None, "RKCNN-I-2_2_2@k=80", 1)


def test_every_label_names_one_row() -> None:
    for table in TABLES.values():
        labels = [row.label for row in results_of(Path(__file__).parent, table.name).rows]
        assert len(set(labels)) == len(labels), table.name


def test_families_are_written_as_the_paper_does() -> None:
    names = ("RKCNN-E-2@k=24", "RKNet-64", "ODENet-abm@k=32", "ResNet-1001", "MomentumResNet-101", "Identity@k=32")
    assert list(map(family_of, names)) == ["RKCNN-E", "RK-Net", "ODE-Net", "ResNet", "Momentum ResNet", "Identity"]


def test_what_cant_be_read_is_said_and_hides_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "result.json").write_text("{")
    found, unreadable = read_records(tmp_path)
    assert (len(found), len(unreadable)) == (1, 1)
    with pytest.raises(InputError, match="no folder"):
        read_records(tmp_path / "none")


def test_memory_is_of_the_tables_data_whatever_the_recipe(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    put_memories(tmp_path, {"ResNet@k=32": 700}, data="cifar10")
    put_memories(tmp_path / "z-copy", {"ResNet@k=32": 900})
    seen = results_of(tmp_path)
    assert seen.preset == "smoke"
    memories = {row.network: row.memory.driver_bytes >> 20 for row in seen.rows if row.memory}
    assert memories == {"Identity@k=32": 612, "ResNet@k=32": 620}
    other = results_of(tmp_path, "sota-mnist")  # has no Identity of its own
    assert other.control
    assert other.control.network == "Identity@k=32"


def test_equal_copies_and_other_seeds_are_nothing_to_say(tmp_path: Path) -> None:
    put_records(tmp_path / "a", {"ResNet@k=32": (0.004, 0.005)})
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004,)})
    assert list(find_conflicts(read_records(tmp_path)[0])) == []


def test_another_error_is_said_with_both_places(tmp_path: Path) -> None:
    (first,) = put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)})
    (second,) = put_records(tmp_path / "b", {"ResNet@k=32": (0.003,)})
    (third,) = put_records(tmp_path / "c", {"ResNet@k=32": (None,)})
    (said,) = find_conflicts(read_records(tmp_path)[0])
    assert said.startswith(f"{second}, {third} are copies of the run in {first} with a different result; the report")


def test_the_reference_is_the_papers_best() -> None:
    found = {name: {reference_of(table, spec) for spec in table.specs} for name, table in TABLES.items()}
    assert found["mnist"] == found["sota-mnist"] == {"RKCNN-R-2@k=32"}
    assert found["cifar10"] == found["ablation"] == {"RKCNN-I-2_2_2@k=120"}
    assert found["sota-cifar10"] == {"RKCNN-I-5_5_6@k=150_120_120"}
    assert found["sota-cifar100"] == {"RKCNN-R-3_4_4@k=180"}
    assert found["scaling"] == {"RKCNN-I-2_2_2@k=80"}
    assert all(found[name] <= set(table.specs) for name, table in TABLES.items())


def test_norms_are_compared_with_their_like() -> None:
    for spec in TABLES["norms"].specs:
        reference = reference_of(TABLES["norms"], spec)
        if spec.startswith("RKCNN-"):
            assert reference.partition(",")[2] == spec.partition(",")[2]
    assert reference_of(TABLES["norms"], "ResNet@k=32,norm=bn") == "RKCNN-R-2@k=32,norm=bn"
    assert reference_of(TABLES["norms"], "RKNN-rk4_38@k=32,norm=bn,statistics=each") == "RKCNN-R-2@k=32,norm=bn"
    assert reference_of(TABLES["norms"], "Identity@k=32") == "RKCNN-R-2@k=32,norm=gn"


def test_separate_statistics_are_compared_with_shared_ones() -> None:
    table = TABLES["statistics"]
    assert all(f"{reference_of(table, spec)},statistics=each" in table.specs for spec in table.specs)
    assert {reference_of(table, spec) for spec in table.specs} <= set(TABLES["cifar10"].specs)


def test_how_the_reference_of_a_row_is_chosen_is_said(tmp_path: Path) -> None:
    pair = ("RKNN-rk4_38@k=120_120_120", "RKNN-rk4_38@k=120_120_120,statistics=each")
    put_records(tmp_path, dict.fromkeys(pair, (0.05, 0.06)), "statistics", "fast")
    text = "\n".join(report_of(tmp_path, "statistics", "fast").introduction)
    assert "ODENet-ab@k=120_120_120 (the same network with shared statistics) by its last-epoch errors" in text
