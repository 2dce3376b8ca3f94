"""Tables of runs: every trainable row, one recipe, the seeds asked for."""

from __future__ import annotations

import pytest

from rkcnn.error import InputError
from rkcnn.model.spec import parse
from rkcnn.record.tables import PRESETS, TABLES, find_table, list_identifiers, list_models, to_identifier


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_table_never_mixes_data_or_recipes(name: str, preset: str) -> None:
    runs = find_table(name).runs(preset)
    assert len({(run.data, run.recipe) for run in runs}) == 1
    assert len(set(runs)) == len({run.folder for run in runs}) == len(runs)


@pytest.mark.parametrize("name", [name for name in TABLES if TABLES[name].paper])
def test_the_papers_tables_have_every_row_and_its_seeds(name: str) -> None:
    table = TABLES[name]
    assert list(table.specs) == list_models(name)
    assert len(table.runs()) == len(table.specs) * (5 if "mnist" in name else 3)
    assert len(table.runs("smoke")) == len(table.specs)
    assert all(run.data == "mnist-mini" and run.recipe.name == "smoke" for run in table.runs("smoke"))


def test_rows_the_paper_left_out_are_there() -> None:
    assert {"RKNet-radau3@k=120_120_120", "ODENet-abm@k=120_120_120"} <= set(TABLES["cifar10"].specs)
    assert {"Identity@k=32"} <= set(TABLES["mnist"].specs)


def test_every_name_is_the_networks_own() -> None:
    """So that a run of one table is found by another: the gn rows of norms that the mnist table has already."""
    for table in TABLES.values():
        assert all(str(parse(spec)) == spec for spec in table.specs if "@" in spec)
    assert set(TABLES["mnist"].runs()) & set(TABLES["norms"].runs())
    assert set(TABLES["mnist"].runs()) & set(TABLES["sota-mnist"].runs())


def test_svhn_is_the_papers_with_the_extra_images() -> None:
    assert {run.data for run in TABLES["svhn"].runs()} == {"svhn+extra"}
    assert {run.data for run in TABLES["svhn"].runs("fast")} == {"svhn"}


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ("*", 19),
        ("RKCNN-*", 9),
        ("rkcnn-?-2@k=32", 3),
        ("ResNet*,Identity*", 3),
        ("ODENet-abm@k=32", 1),
    ],
)
def test_rows_are_picked_by_patterns(rows: str, count: int) -> None:
    assert len(TABLES["mnist"].pick(rows)) == count


def test_a_full_name_with_a_comma_is_that_row() -> None:
    assert TABLES["norms"].pick("ResNet@k=32,norm=bn") == ["ResNet@k=32,norm=bn"]
    assert TABLES["norms"].pick("RKCNN-?-2@k=32,norm=bn,Identity@k=32")[0] == "Identity@k=32"


def test_bad_input() -> None:
    with pytest.raises(InputError, match="no table 'imagenet'; tables are mnist"):
        find_table("imagenet")
    for rows in ("AlexNet", "Identity*,AlexNet"):
        with pytest.raises(InputError, match="no row of mnist matches 'AlexNet'; rows are ResNet"):
            TABLES["mnist"].runs(rows=rows)
    with pytest.raises(InputError, match="`preset=slow` given; a table is trained by paper, fast, smoke"):
        TABLES["mnist"].runs("slow")
    with pytest.raises(InputError, match="`seeds=0` given"):
        TABLES["mnist"].runs(seeds=0)


def test_every_table_has_a_control_of_its_data() -> None:
    controls = {name: table.control for name, table in TABLES.items()}
    assert controls["sota-mnist"] == controls["norms"] == controls["mnist"] == "Identity@k=32"
    assert controls["ablation"] == controls["svhn"] == "Identity@k=120_120_120"


def test_the_paper_has_as_many_rows() -> None:
    """18, 16, 6 and 15 rows, and the control that we add to the first two."""
    assert {name: len(table.specs) for name, table in TABLES.items() if table.paper} == {
        "mnist": 19,
        "svhn": 17,
        "cifar10": 17,
        "cifar100": 17,
        "sota-mnist": 6,
        "sota-svhn": 15,
        "sota-cifar10": 15,
        "sota-cifar100": 15,
    }


def test_list_models_lists_each_once() -> None:
    names = list_models()
    assert len(names) == len(set(names)) == 19 + 17 + 3 + 15
    assert list_models("mnist") == list(TABLES["mnist"].specs)
    with pytest.raises(InputError, match="tables are mnist"):
        list_models("imagenet")


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("RKCNN-I-2_2_2@k=120", "rkcnn_i_2_2_2_k120"),
        ("RKCNN-R-2_2_2@k=26_28_28", "rkcnn_r_2_2_2_k26_28_28"),
        ("ResNet-bottleneck@k=32", "rkcnn_resnet_bottleneck_k32"),
        ("DenseNet-BC-L250-k24", "rkcnn_densenet_bc_l250_k24"),
    ],
)
def test_a_name_as_an_identifier(name: str, identifier: str) -> None:
    assert to_identifier(name) == identifier


def test_every_network_has_one_of_its_own() -> None:
    found = list_identifiers()
    assert list(found.values()) == list(list_models())
    assert all(identifier.isidentifier() for identifier in found)


def test_a_precision_is_that_of_all_runs_and_in_their_names() -> None:
    runs = TABLES["mnist"].runs("fast", "RKCNN-R-2@k=32", 2, "tf32")
    assert {run.recipe.precision for run in runs} == {"tf32"}
    assert {run.folder.parts[2] for run in runs} == {"fast-mnist,precision=tf32"}
    assert TABLES["mnist"].runs("paper", precision="fp32") == TABLES["mnist"].runs("paper")
    with pytest.raises(InputError, match="`precision=fp16` given; it is one of fp32, tf32, bf16"):
        TABLES["mnist"].runs("paper", precision="fp16")
