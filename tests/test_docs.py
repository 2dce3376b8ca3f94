"""What the README and the pages of docs/ show is true: their Python runs, and their links lead somewhere."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from textwrap import dedent
from typing import Any

import matplotlib
import pytest
import torch

import rkcnn
from registered import forgotten
from rkcnn.model.period import step_diagram
from rkcnn.model.spec import parse
from rkcnn.model.steps.rkcnn import RKStep
from rkcnn.use.draw import to_svg

ROOT = Path(__file__).parents[1]
DOCS = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
WRITTEN = ("CONTRIBUTING.md", "docs/api.md")  # a file to be written, and signatures: not to be run
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: .+ -->\n\n?$")  # before a block that is shown and not run, with the reason


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def briefly(train: Callable[..., Any]) -> Callable[..., Any]:
    """The same training in two steps instead of minutes."""

    @wraps(train)
    def train_briefly(*arguments: Any, **settings: Any) -> Any:
        return train(*arguments, **{**settings, "epochs": 1, "max_steps_per_epoch": 2})

    return train_briefly


def has_python(page: str) -> bool:
    return page not in WRITTEN and BLOCK.search(read(page)) is not None


@pytest.mark.parametrize("page", [page for page in DOCS if has_python(page)])
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block, in order, in one namespace; a text block right behind one is what it prints."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.setattr(rkcnn, "train", briefly(rkcnn.train))
    torch.manual_seed(0)
    text = read(page)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = [block for block in BLOCK.finditer(text) if not NOT_RUN.search(text[: block.start()])]
    with forgotten():
        for block in blocks:
            code, printed = block.groups()
            line = text[: block.start(1)].count("\n")
            capsys.readouterr()
            exec(compile("\n" * line + code, page, "exec", annotations.compiler_flag), names)
            out = capsys.readouterr().out
            assert printed is None or out == printed, f"{page}, line {line + 1} prints\n{out}"
    for figure in re.findall(r'savefig\("(.+?)"\)', text):
        assert (tmp_path / figure).exists()
        assert (ROOT / "docs" / figure).exists(), f"{page} draws {figure}; keep it in docs/"


def test_the_readme_shows_the_step_as_it_is() -> None:
    assert f"```python\n{dedent(inspect.getsource(RKStep.forward))}```" in read("README.md")


@pytest.mark.parametrize(
    ("picture", "network"),
    [("step", "RKCNN-R-3@k=32"), ("learn-step-i", "RKCNN-I-3@k=32"), ("learn-resnet", "ResNet@k=32")],
)
def test_the_pictures_of_steps_are_current(picture: str, network: str) -> None:
    drawn = to_svg(step_diagram(parse(network)))
    assert drawn == read(f"docs/{picture}.svg"), f"run rkcnn draw {network} -o docs/{picture}.svg"


@pytest.mark.parametrize("page", DOCS)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page)):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
