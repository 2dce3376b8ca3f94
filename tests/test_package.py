"""What `import rkcnn` gives, to Python, to its prompt and to editors."""

from __future__ import annotations

import ast
import inspect
import json
import pydoc
import rlcompleter
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rkcnn

SOURCE = Path(__file__).parents[1] / "src" / "rkcnn"
FUNCTIONS = [name for name in rkcnn.__all__ if name[0].islower()]


def run(code: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_it_loads_nothing_heavy() -> None:
    """Neither torch nor NumPy; it takes about 20 ms of the processor's time, the least of five, and may take 50."""
    code = """
import json, sys, time
start = time.process_time()
import rkcnn
print(json.dumps([time.process_time() - start, [*{name.partition(".")[0] for name in sys.modules}]]))
"""
    took, loaded = zip(*(json.loads(run(code)) for _ in range(5)), strict=True)
    assert not {"torch", "numpy", "matplotlib", "rich"} & set(loaded[0])
    assert min(took) < 0.05
    assert "torch" not in run("import rkcnn, sys; rkcnn.list_models(); rkcnn.InputError; print(*sys.modules)").split()


def test_every_name_is_listed_once_for_python_and_once_for_editors() -> None:
    assert sorted(rkcnn._HOMES) == sorted(rkcnn.__all__)
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checking.body if isinstance(node, ast.ImportFrom)]
    assert {name.asname: node.module for node in imports for name in node.names if name.asname} == rkcnn._HOMES
    assert (SOURCE / "py.typed").exists()


def test_no_part_of_the_package_has_the_name_of_a_function() -> None:
    """`import rkcnn.train` would put the module where the function is."""
    assert not set(rkcnn.__all__) & {path.stem for path in SOURCE.iterdir()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_does(name: str) -> None:
    function = getattr(rkcnn, name)
    assert inspect.isfunction(function)
    assert inspect.getdoc(function)
    assert inspect.signature(function).return_annotation is not inspect.Signature.empty
    assert function is getattr(rkcnn, name)


@pytest.mark.parametrize("name", sorted(set(rkcnn.__all__) - set(FUNCTIONS)))
def test_a_type_says_what_it_is(name: str) -> None:
    kind = getattr(rkcnn, name)
    assert inspect.isclass(kind)
    assert kind.__name__ == name
    assert inspect.getdoc(kind)


def test_the_prompt_completes_names() -> None:
    names = dir(rkcnn)
    assert set(rkcnn.__all__) <= set(names)
    assert "__version__" in names
    assert not {"Any", "import_module", "TYPE_CHECKING", "_HOMES"} & set(names)
    completer = rlcompleter.Completer({"rkcnn": rkcnn})
    assert completer.complete("rkcnn.tr", 0) == "rkcnn.train("
    assert completer.complete("rkcnn.Cl", 0) == "rkcnn.Classifier("


def test_ipython_completes_names() -> None:
    jedi = pytest.importorskip("jedi")
    script = jedi.Interpreter("rkcnn.", [{"rkcnn": rkcnn}])
    assert set(rkcnn.__all__) <= {found.name for found in script.complete()}
    (signature,) = jedi.Interpreter("rkcnn.train(", [{"rkcnn": rkcnn}]).get_signatures()
    assert "epochs" in {parameter.name for parameter in signature.params}


def test_help_of_the_package_names_its_functions() -> None:
    text = pydoc.plain(pydoc.render_doc(rkcnn.train))
    assert "network: 'str | None' = None" in text
    assert "Train a network on images" in text


def test_a_name_that_isnt_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rkcnn' has no attribute 'trian'"):
        rkcnn.trian  # noqa: B018


def test_it_imports_where_there_is_no_unix() -> None:
    """Every module, in a process without the modules and functions that Windows or macOS lacks.

    What other packages import is theirs, so they are imported before. Ray's own part, timm's and the Triton kernels are
    left out.
    """
    code = f"""
import importlib, os, sys
from pathlib import Path

import cyclopts, jinja2, matplotlib.figure, numpy, PIL.Image, rich.console, rich.progress, safetensors.torch, torch
import ctypes, multiprocessing.connection, multiprocessing.shared_memory, subprocess, tempfile, urllib.request, uuid
import torch.distributed, torch.utils.flop_counter, torch._dynamo

MISSING = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")


class NotHere:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, NotHere())
for name in MISSING:
    sys.modules.pop(name, None)
for name in ("sched_getaffinity", "sched_setaffinity", "fork", "getuid", "geteuid", "killpg", "getpgid", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)

source = Path({str(SOURCE)!r})
failed = []
for file in sorted(source.rglob("*.py")):
    module = ".".join(file.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
    if file.name in ("__main__.py", "timm.py"):
        continue
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "triton"):
            failed.append(f"{{module}}: {{error}}")
    except Exception as error:
        failed.append(f"{{module}}: {{type(error).__name__}}: {{error}}")
print("\\n".join(failed))
"""
    assert run(code).strip() == ""


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("create_model(5)", "a name of type int given"),
        ("create_model('RKCNN-R-2@k=8', classes='x')", "`classes='x'` given; it is a whole number"),
        ("create_model('RKCNN-R-2@k=8', channels='3')", "`channels='3'` given; it is a whole number"),
        ("create_model('RKCNN-R-2@k=8', dropout='x')", "`dropout='x'` given; it is a number"),
        ("load(None)", "a NoneType given for a trained network"),
        ("evaluate(3)", "a int given for a trained network"),
        ("export(3, output='x.pt2')", "a int given for a trained network"),
        ("compare(3)", "runs of type int given"),
        ("compare([3])", "a run of type int given"),
        ("compare(['x'], reference=4)", "a reference of type int given"),
        ("draw(3)", "a name of type int given"),
        ("list_models(3)", "a table's name of type int given"),
        ("cost(rkcnn.create_model('ResNet@k=4'), 'x')", "`size='x'` given; it is a height and width"),
        ("cost(rkcnn.create_model('ResNet@k=4'), -4)", "`size=-4` given; it is a height and width"),
        ("load_images('folder:x', split='x')", "`split='x'` must be a share"),
        ("load_images('npz:x', keys=3)", "`keys=3` must be text"),
        ("solve(3, torch.ones(1), [0, 1])", "f of type int given"),
        ("solve(lambda t, y: y, torch.ones(1), 'x')", "`t='x'` given; it must be a list of real, finite times"),
        ("solve(lambda t, y: y, torch.ones(1), [0, 1], method=[])", "no method"),
        ("solve(lambda t, y: y, torch.ones(1), [0, 1], tol='x')", "`tol='x'` given; it must be a positive number"),
        ("solve(lambda t, y: y, torch.ones(1), [0, 1], 'rk4', steps='x')", "`steps='x'` given; it must be a whole"),
        ("solve(lambda t, y: y, torch.ones(1), [0, 1], 'rk4', h='x')", "`h='x'` given; it must be a positive number"),
        ("solve(lambda t, y: 3, torch.ones(1), [0, 1])", "f gave a int"),
        ("train(init_from=3)", "`init_from=3` given; it is the path"),
        ("train(out=3)", "`out=3` given; it is the path"),
        ("train(observer=3)", "an observer of type int given"),
    ],
)
def test_an_argument_of_a_wrong_type_is_a_sentence(call: str, says: str) -> None:
    with pytest.raises(rkcnn.InputError) as raised:
        eval(f"rkcnn.{call}", {"rkcnn": rkcnn, "torch": torch})
    assert says in str(raised.value)
