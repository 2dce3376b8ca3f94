"""torch.hub on this checkout, without a network."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

import rkcnn
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.record.tables import list_identifiers
from rkcnn.use.hub import save_pretrained
from rkcnn.use.load import Classifier

ROOT = str(Path(__file__).parents[1])


def test_it_lists_every_network_of_the_paper() -> None:
    """As `torch.hub.list` finds them, which reads repositories of GitHub alone."""
    hubconf = runpy.run_path(f"{ROOT}/hubconf.py")
    listed = {name for name, value in hubconf.items() if callable(value) and not name.startswith("_")}
    assert listed == {"rkcnn", "trained", *list_identifiers()}
    assert all(hubconf[name].__doc__ for name in listed)


def test_it_builds_what_create_model_does() -> None:
    path = list(sys.path)
    torch.manual_seed(0)
    ours = rkcnn.create_model("RKCNN-R-2@k=32", classes=7, channels=1)
    torch.manual_seed(0)
    theirs = torch.hub.load(ROOT, "rkcnn_r_2_k32", classes=7, channels=1, source="local")
    torch.manual_seed(0)
    by_name = torch.hub.load(ROOT, "rkcnn", "RKCNN-R-2@k=32", classes=7, channels=1, source="local")
    for other in (theirs, by_name):
        pairs = zip(ours.state_dict().values(), other.state_dict().values(), strict=True)
        assert all(torch.equal(one, two) for one, two in pairs)
    assert sys.path == path
    with pytest.raises(rkcnn.InputError, match=r"no family 'RKCN' .did you mean RKCNN"):
        torch.hub.load(ROOT, "rkcnn", "RKCN-R-2@k=32", source="local")


def test_it_builds_pretrained_networks(pretrained: str) -> None:
    ours = rkcnn.load(pretrained).network.state_dict()
    theirs = torch.hub.load(ROOT, "rkcnn", "RKCNN-E-2@k=4", pretrained="mnist-mini", source="local").state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    with pytest.raises(rkcnn.InputError, match="no pretrained weights of ResNet@k=32"):
        torch.hub.load(ROOT, "rkcnn_resnet_k32", pretrained="mnist", source="local")


def test_it_loads_trained_networks(tmp_path: Path) -> None:
    network = rkcnn.create_model("ResNet@k=4", classes=2, channels=1).eval()
    saved = Classifier(network, NetworkDescription("ResNet@k=4", 1, (28, 28), ("a", "b"), (0.5,), (0.25,)))
    save_pretrained(saved, tmp_path / "saved")
    loaded = torch.hub.load(ROOT, "trained", str(tmp_path / "saved"), source="local")
    pixels = torch.randint(256, (2, 1, 28, 28), dtype=torch.uint8)
    torch.testing.assert_close(loaded(pixels), saved(pixels))
