"""DESIGN's rooms: who may import whom, and what may be heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "rkcnn"
ROOMS = ("solvers", "model", "data", "fit", "evaluation", "record", "report", "run", "reproduce", "bench", "use", "cli")
# files that every room may import
ROOT = ("error", "escape", "interrupt", "disk", "json_file", "page_writer", "run_folder", "tensor_header")
FREE = (*ROOT, "timm", "__init__", "__main__")
CORE = ROOMS[: ROOMS.index("record") + 1]
CORE_NEEDS = {"torch", "numpy", "safetensors"}
VAGUE = {"utils", "helpers", "misc", "common", "base", "manager"}
FILES = sorted(SOURCE.rglob("*.py"))


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides its room"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_a_room_imports_only_from_rooms_above_it() -> None:
    for file in FILES:
        room = room_of(file)
        if room in FREE:
            continue
        above = ROOMS[: ROOMS.index(room) + 1]
        if room == "use":
            above = (*above, "")  # the page of the Python interface describes `import rkcnn` itself
        for name in imported(ast.walk(ast.parse(file.read_text()))):
            first, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            assert first != "rkcnn" or target in (*above, *ROOT, "__version__"), f"{file}: {name}"


def test_the_core_needs_torch_numpy_and_safetensors_alone() -> None:
    for file in (file for file in FILES if room_of(file) in CORE):
        tree = ast.parse(file.read_text())
        needs = {name.partition(".")[0] for name in imported(ast.walk(tree))} - sys.stdlib_module_names - {"rkcnn"}
        eager = {name.partition(".")[0] for name in imported(iter(tree.body))}
        lazy = {"PIL"} - eager if room_of(file) == "data" else set()
        if file.parent.name == "fast":  # torch for CUDA brings it
            lazy = {"triton"}
        assert needs <= CORE_NEEDS | lazy, file


def test_record_and_report_load_no_torch() -> None:
    modules = [
        ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for file in FILES
        if room_of(file) in ("record", "report")
    ]
    assert modules
    code = f"import {', '.join(modules)}, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_what_needs_timm_is_imported_by_nobody() -> None:
    """Only `import rkcnn.timm`, by a user, imports it."""
    assert not [file for file in FILES if "rkcnn.timm" in imported(ast.walk(ast.parse(file.read_text())))]


def test_triton_is_loaded_only_where_it_is_used() -> None:
    """Only model/fast/ imports it, and what is imported on a CPU imports none of those modules."""
    for file in (file for file in FILES if file.parent.name != "fast"):
        assert "triton" not in {name.partition(".")[0] for name in imported(ast.walk(ast.parse(file.read_text())))}, (
            file
        )
    code = "import rkcnn.fit.engine, rkcnn.model.create, sys; sys.exit('rkcnn.model.fast.step' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_names_say_something() -> None:
    assert not {file for file in FILES if VAGUE & {part.removesuffix(".py") for part in file.parts}}


def test_fit_has_no_way_to_reach_a_test_set() -> None:
    """Nothing that fit/ imports, itself or through others, can load a set or asks a network about one."""
    names = {".".join(file.relative_to(SOURCE.parent).with_suffix("").parts): file for file in FILES}
    reached: set[str] = set()
    waiting = [file for file in FILES if room_of(file) == "fit"]
    while waiting:
        for name in imported(ast.walk(ast.parse(waiting.pop().read_text()))):
            for module in {name, name.rpartition(".")[0]} & names.keys() - reached:
                reached.add(module)
                waiting.append(names[module])
    assert "rkcnn.data.batches" in reached
    loads = ("rkcnn.data.load", "rkcnn.data.fetch", "rkcnn.data.cache", "rkcnn.evaluation", "rkcnn.run.")
    assert not [name for name in reached if name.startswith(loads)]
