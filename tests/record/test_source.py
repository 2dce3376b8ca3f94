"""The hash is of what computes, and of nothing else."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.model.families import FAMILIES, Family
from rkcnn.record import source
from rkcnn.record.source import Equivalence, is_same_code


def works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


NAMES = [f"python3.{minor}" for minor in range(11, 16) if minor != sys.version_info.minor]
OTHER_PYTHONS = [path for path in map(shutil.which, NAMES) if path is not None and works(path)]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for entry in (source.TRAINING_MODULE, source.MEMORY_MODULE):
        source.source_hash(entry)  # of the package as it is; it is cached
    copy = tmp_path / "rkcnn"
    shutil.copytree(source.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    monkeypatch.setattr(source, "PACKAGE", copy)
    return copy


def is_changed(entry: str = source.TRAINING_MODULE) -> bool:
    return bool(source.source_hash.__wrapped__(entry) != source.source_hash(entry))


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before


def test_it_does_not_depend_on_the_folder(package: Path) -> None:
    assert not is_changed()
    assert re.fullmatch("[0-9a-f]{16}", source.source_hash())


def test_it_is_quick() -> None:
    """It is computed when a run starts. Measured: 0.2 s of one core."""
    start = time.process_time()
    source.source_hash.__wrapped__()
    assert time.process_time() - start < 1.5


SGD = "fit/trainer.py"
NO_DIFFERENCE: dict[str, tuple[str, str]] = {
    "a comment": ("X = 1", "X = 1  # one"),
    "a docstring": ('def f():\n    """One."""\n    return 1', 'def f():\n    """Two."""\n    return 1'),
    "no docstring": ('class A:\n    """One."""\n    x = 1', "class A:\n    x = 1"),
    "a docstring for a body": ('def f():\n    """Does nothing."""', "def f(): ..."),
    "formatting": ("X = f(1, 2)", "X = f(\n    1,\n    2,\n)"),
    "quotes": ("X = 'one'", 'X = "one"'),
    "a string in two pieces": ("X = 'one'", 'X = "on" "e"'),
    "how a number is written": ("X = 255 + 1000", "X = 0xFF + 1_000"),
    "imports": ("import torch\nX = 1", "from math import pi\nimport os\nX = 1"),
    "an import for mypy": ("X = 1", "if TYPE_CHECKING:\n    from math import pi\nX = 1"),
    "annotations of arguments": ("def f(x, *, y=1): return x", "def f(x: int, *, y: int = 1) -> int: return x"),
    "the annotation of a variable": ("X = 1", "X: int = 1"),
    "the message of an error": ("raise ValueError('one')", "raise ValueError(f'two {3}') from None"),
    "the message of an assertion": ("assert x", "assert x, 'one'"),
    "pass": ("class A(B): ...", "class A(B): pass"),
}


@pytest.mark.parametrize("what", NO_DIFFERENCE)
def test_what_makes_no_difference(what: str) -> None:
    one, two = NO_DIFFERENCE[what]
    assert words_of(one) == words_of(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("X = 1", "X = 2"),
        ("X = 1", "X = 1.0"),
        ("X = 1", "X = True"),
        ("X = 1", "Y = 1"),
        ("X = 0", "X = None"),
        ("X = ''", "X = b''"),
        ("X = a + b", "X = a - b"),
        ("X = a + b", "X = b + a"),
        ("X = (a, (b, c))", "X = ((a, b), c)"),
        ("X = f(a)", "X = f(*a)"),
        ("X = a < b", "X = a <= b"),
        ("X = f'{a:.2f}'", "X = f'{a:.3f}'"),
        ("def f(a, b): return a", "def f(b, a): return a"),
        ("def f(a=1): return a", "def f(a=2): return a"),
        ("def f(a): return a", "@g\ndef f(a): return a"),
        ("class A: x: int = 1", "class A: x: int = 2"),
        ("class A:\n    x: int\n    y: int", "class A:\n    y: int\n    x: int"),
        ("class A(B): x = 1", "class A(C): x = 1"),
        ("raise ValueError('one')", "raise TypeError('one')"),
        ("assert x", "assert y"),
        ("if a: f()", "if not a: f()"),
        ("for x in y: f(x)", "async def g():\n    async for x in y: f(x)"),
    ],
)
def test_what_computes_makes_a_difference(one: str, two: str) -> None:
    assert words_of(one) != words_of(two)


def words_of(text: str) -> list[str]:
    return written(ast.parse(text).body)


def written(node: ast.AST | list[ast.stmt]) -> list[str]:
    words: list[str] = []
    source._write(node, words, set())
    return words


def test_a_renamed_file_makes_no_difference(package: Path) -> None:
    (package / SGD).rename(package / "fit/descent.py")
    for path in package.rglob("*.py"):
        path.write_text(path.read_text().replace("rkcnn.fit.trainer", "rkcnn.fit.descent"))
    assert not is_changed()


def test_a_function_moved_to_another_room_makes_no_difference(package: Path) -> None:
    path = package / "fit/trainer.py"
    text = path.read_text()
    moved = text[text.index("def _mixed") :]
    path.write_text(
        text.replace(moved, "").replace("import nn\n", "import nn\nfrom rkcnn.data.augmentation import _mixed\n")
    )
    edit(package / "data/augmentation.py", lambda other: other + "\n\n" + moved)
    assert not is_changed()


def test_definitions_in_another_order_make_no_difference(package: Path) -> None:
    tree = ast.parse((package / "fit/trainer.py").read_text())
    tree.body.reverse()
    (package / "fit/trainer.py").write_text(ast.unparse(tree))
    assert not is_changed()


def test_the_message_of_an_error_makes_no_difference(package: Path) -> None:
    edit(package / "fit/recipe.py", lambda text: text.replace("no recipe {name!r}", "there is no recipe {name!r}"))
    assert not is_changed()


def test_files_that_training_does_not_import_make_no_difference(package: Path) -> None:
    for name in ("cli/train.py", "report/__init__.py", "record/run.py", "model/drawing.py", "evaluation/memory.py"):
        edit(package / name, lambda text: text + "\nX = 1\n")
    assert not is_changed()
    assert is_changed(source.MEMORY_MODULE)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("model/steps/lm.py", '"1-c"', '"1 - c"'),
        ("model/steps/ode.py", '"correct"', '"the corrector"'),
        ("model/drawing.py", "import annotations\n", "import annotations\n\nX = 1\n"),
        ("model/families.py", 'look=Look(ORANGE, "^")', 'look=Look(PINK, "v")'),
        ("model/families.py", 'title="RKCNN-E"', 'title="RKCNN, explicit"'),
        ("model/families.py", "dense block (Huang et al. 2017)", "a dense block"),
        ("model/families.py", 'title="RK-Net"', 'title="RKNet"'),
        ("model/families.py", "the velocity at the start of a period", "the first velocity"),
    ],
)
def test_how_a_network_is_drawn_or_described_makes_no_difference(
    package: Path, name: str, before: str, after: str
) -> None:
    edit(package / name, lambda text: text.replace(before, after))
    assert not is_changed()


@pytest.mark.parametrize("function", ["draw_stages", "_draw_adams", "_weighted", "draw_step"])
def test_functions_that_draw_make_no_difference(package: Path, function: str) -> None:
    files = [path for path in package.rglob("model/steps/*.py") if f"def {function}(" in path.read_text()]
    assert files
    for path in files:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                node.body.append(ast.parse("X = 1").body[0])
        path.write_text(ast.unparse(tree))
    assert not is_changed()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (SGD, "_foreach_sub_", "_foreach_add_"),
        ("fit/trainer.py", "0x9E3779B97F4A7C15", "0x9E3779B97F4A7C16"),
        ("fit/recipe.py", "momentum: float = 0.9", "momentum: float = 0.95"),
        ("run/job.py", "torch.manual_seed(run.seed)", "torch.manual_seed(0)"),
        ("data/augmentation.py", "import torch\n", "import torch\n\nX = 1\n"),
        ("model/families.py", "Variant(steps=2, ", "Variant(steps=3, "),
    ],
)
def test_a_change_anywhere_in_training_makes_a_difference(package: Path, name: str, before: str, after: str) -> None:
    edit(package / name, lambda text: text.replace(before, after))
    assert is_changed()


def test_any_number_makes_a_difference() -> None:
    """Every one that stands in what computes, but for those in messages of errors."""
    tried = 0
    for path in (path for room in ("solvers", "fit", "run") for path in (source.PACKAGE / room).glob("*.py")):
        tree = ast.parse(path.read_text())
        in_messages = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Raise) for each in ast.walk(node)}
        for definition in tree.body:
            before = written(definition)
            for node in ast.walk(definition):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float) and id(node) not in in_messages:
                    value, node.value = node.value, 1234567
                    assert written(definition) != before, f"{path}: {value!r}"
                    node.value = value
                    tried += 1
    assert tried > 100


def test_every_solver_and_step_counts() -> None:
    """Through whatever modules they are imported."""
    modules = reached()
    for room in ("solvers", "model/steps", "model/published", "fit"):
        for path in (source.PACKAGE / room).glob("*.py"):
            assert not words_of(path.read_text()) or path.stem in modules, path


def reached() -> set[str]:
    """The names of all modules that the hash is made of."""
    found: set[str] = set()
    parse = ast.parse

    def note(text: bytes) -> ast.Module:
        found.add(next(path.stem for path in source.PACKAGE.rglob("*.py") if path.read_bytes() == text))
        return parse(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", note)
        source.source_hash.__wrapped__()
    return found


def test_other_pythons_agree() -> None:
    """As far as they are installed here; the module needs no other package. Tried by hand: 3.12 and 3.13."""
    code = f"""
import sys
sys.path.insert(0, {str(source.PACKAGE.parent)!r})
from rkcnn.record.source import source_hash
print(source_hash())
"""
    for python in OTHER_PYTHONS:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=600)
        assert done.stdout.strip() == source.source_hash(), python


def test_nothing_in_it_depends_on_the_version_of_python() -> None:
    """Of the standard library's syntax trees: fields that came with a version, and positions."""
    words = {word for path in (source.PACKAGE / "fit").glob("*.py") for word in words_of(path.read_text())}
    assert not words & {"type_params", "type_comment", "kind", "lineno", "ctx", "type_ignores"}
    later = ast.parse("def f(x): return x").body[0]
    later.type_params = []  # type: ignore[attr-defined]
    later._fields = (*later._fields, "type_params")  # type: ignore[misc]
    assert written(later) == words_of("def f(x): return x")


def test_hashes_that_trained_the_same_weights_are_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "EQUIVALENT", (Equivalence(frozenset({"a", "b"}), ("RKCNN-*", "ResNet@k=32")),))
    assert is_same_code("c", "c", "CliqueNet-2@k=32")
    assert is_same_code("a", "b", "RKCNN-R-2@k=32")
    assert is_same_code("b", "a", "ResNet@k=32")
    assert not is_same_code("a", "b", "CliqueNet-2@k=32"), "it was not tried with that network"
    assert not is_same_code("a", "c", "RKCNN-R-2@k=32")


def test_outside_a_checkout_there_is_no_commit_but_what_is_said(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RKCNN_COMMIT", raising=False)
    assert source.find_commit.__wrapped__() is None
    monkeypatch.setenv("RKCNN_COMMIT", "0123456789ab")  # a copy of a checkout, on a machine without git
    assert source.find_commit.__wrapped__() == "0123456789ab"


def test_the_commit_of_another_project_is_not_ours(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed below a repository that ignores it, as a .venv is; tracked there, it is ours."""
    monkeypatch.delenv("RKCNN_COMMIT", raising=False)

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        command = ["git", "-C", str(package.parent), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "theirs")
    assert source.find_commit.__wrapped__() is None
    git("add", "rkcnn")
    git("commit", "-m", "ours")
    assert source.find_commit.__wrapped__() == git("rev-parse", "--short=12", "HEAD")
    (package / "new.py").write_text("")
    assert source.find_commit.__wrapped__() == git("rev-parse", "--short=12", "HEAD") + "+"


OUTSIDE = """
import math

from rkcnn.model.period import Period

SCALE = 0.5
EPOCHS = 3

def half(x):
    return SCALE * x

class Parent(Period):
    def walk(self, y):
        yield half(y)

class Mine(Parent):
    '''One.'''
    def walk(self, y):
        yield y

class Other:
    def f(self): return 1

print(EPOCHS)
"""


def outside(path: Path, text: str) -> type:
    """Return the class Mine of a file with this text."""
    path.write_text(text)
    names: dict[str, object] = {"__name__": path.stem, "print": lambda *_: None}
    exec(compile(text, str(path), "exec"), names)
    mine = names["Mine"]
    assert isinstance(mine, type)
    return mine


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("'''One.'''", "'''Two.'''", False),
        ("EPOCHS = 3", "EPOCHS = 4", False),
        ("return 1", "return 2", False),
        ("yield y\n", "yield 2 * y\n", True),
        ("yield half(y)", "yield y", True),
        ("SCALE = 0.5", "SCALE = 0.25", True),
        ("SCALE * x", "SCALE + x", True),
    ],
)
def test_a_class_from_outside_has_a_hash_of_what_it_uses(tmp_path: Path, old: str, new: str, changes: bool) -> None:
    before = source.class_hash(outside(tmp_path / "one.py", OUTSIDE))
    assert re.fullmatch("[0-9a-f]{16}", before)
    assert OUTSIDE.count(old) == 1
    assert (source.class_hash(outside(tmp_path / "two.py", OUTSIDE.replace(old, new))) != before) is changes


def test_a_class_without_source_is_refused() -> None:
    names: dict[str, type] = {}
    exec("class Mine:\n    def walk(self): pass", {"__name__": "prompt"}, names)
    with pytest.raises(InputError, match="the source of the class Mine can't be found"):
        source.class_hash(names["Mine"])


def test_the_hash_of_a_class_from_outside_follows_that_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = outside(tmp_path / "mine.py", OUTSIDE)
    here = source.source_hash()
    record = f"{here}+{source.class_hash(mine)}"
    assert source.training_hash("Mine@k=8") == source.training_hash("RKCNN-R-2@k=8") == here
    assert source.is_current_code(record, "Mine@k=8"), "it is not registered here, so it is not compared"
    assert not source.is_current_code("0" * 16 + record[16:], "Mine@k=8")
    monkeypatch.setitem(FAMILIES, "Mine", Family("Mine", about="", period=mine))
    assert source.training_hash("Mine@k=8") == source.current_source(network="Mine@k=8").source == record
    assert source.is_current_code(record, "Mine@k=8")
    assert not source.is_current_code(f"{here}+{'0' * 16}", "Mine@k=8")
    assert not source.is_current_code(here, "Mine@k=8")
    monkeypatch.setattr(source, "EQUIVALENT", (Equivalence(frozenset({"a", here}), ("Mine@*",)),))
    assert source.is_current_code("a" + record[16:], "Mine@k=8")
    assert not source.is_current_code("a+" + "0" * 16, "Mine@k=8")
