"""What can be asked of a bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rkcnn.bench.plan import PeerChoice, make_plan
from rkcnn.error import InputError


def test_a_plan_with_everything() -> None:
    plan = make_plan(
        "train",
        ["ResNet@k=4", "RKCNN-I-2@k=8,r=2", "ResNet@k=4"],
        batch="8, 16,8",
        precision="fp32,bf16",
        engine="graph,eager",
        at_once="1,5",
        peers=["authors=a=b", "naive"],
    )
    assert plan.networks == ("ResNet@k=4", "RKCNN-I-2@k=8,r=2")
    assert (plan.batches, plan.at_once) == ((8, 16), (1, 5))
    assert (plan.precisions, plan.engines) == (("fp32", "bf16"), ("graph", "eager"))
    assert plan.peers == (PeerChoice("authors", Path("a=b")), PeerChoice("naive"))
    assert [str(peer) for peer in plan.peers] == ["authors=a=b", "naive"]


def test_what_is_not_said_depends_on_the_kind() -> None:
    assert make_plan("solve").networks == ("RKNet-rk4_38@k=32", "ODENet-ab@k=32")
    assert make_plan("infer").networks == ("RKCNN-R-2@k=32",)
    assert make_plan("train").peers is None
    assert make_plan("train", peers=["none"]).peers == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "trian"}, "no bench 'trian' (did you mean train?); rkcnn bench measures train, infer, memory, solve"),
        ({"batch": "0"}, "`batch=0` given; it is a whole number from 1 to 65536, or several: 1,8,32"),
        ({"batch": ""}, "`batch=` given; it is a whole number"),
        ({"batch": "8,"}, "`batch=8,` given"),
        ({"batch": "1e3"}, "`batch=1e3` given"),
        ({"batch": "9" * 400}, "given; it is a whole number from 1 to 65536"),
        ({"at_once": "65"}, "`at_once=65` given; it is a whole number from 1 to 64"),
        ({"precision": "fp16"}, "`precision=fp16` given; it is one of fp32, tf32, bf16"),
        ({"engine": "graphs"}, "`engine=graphs` given; it is one of eager, compile, graph-uncompiled, graph"),
        ({"kind": "infer", "engine": "graph-uncompiled"}, "it is one of eager, compile, graph, fused, fused-eager"),
        ({"rounds": 0}, "`rounds=0` given; it is a whole number from 1 to 1000"),
        ({"steps": -1}, "`steps=-1` given; it is a whole number from 1 to 10000"),
        ({"peers": ["author=x"]}, "`peer=author=x` given (did you mean authors?); peers are authors=PATH"),
        ({"peers": ["authors"]}, "`peer=authors` given; it is authors=PATH, a checkout of ZhuMai/RKCNN"),
        ({"peers": ["cliquenet="]}, "`peer=cliquenet=` given; it is cliquenet=PATH, a checkout of iboing/CliqueNet"),
        ({"peers": ["naive=x"]}, "`peer=naive=x` given; it is naive without a path"),
        ({"peers": ["none", "naive"]}, "`peer=none` given; peers are"),
    ],
)
def test_what_can_not_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        make_plan(**{"kind": "train", **options})
    assert says in str(error.value)
    assert len(str(error.value)) < 300
