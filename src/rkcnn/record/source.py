"""Which code made a record: its commit, and a hash of the definitions that its numbers depend on.

The hash covers what computes and nothing else. It starts from one module, follows its imports through the rooms that
compute, and takes every definition on the way. Paths, imports, comments, docstrings, formatting, annotations of
arguments, the messages of errors, and how a network is drawn or described leave it as it is; any operator or constant
changes it. It is the same under every version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rkcnn.error import InputError
from rkcnn.model.families import FAMILIES
from rkcnn.solvers.methods import BUILT_IN, TABLEAUS

PACKAGE = Path(__file__).parents[1]
ROOMS = ("solvers", "model", "data", "fit", "evaluation", "run")  # those that can change a number
TRAINING_MODULE = "rkcnn.run.train"
MEMORY_MODULE = "rkcnn.evaluation.memory"
HASH_VERSION = 2  # of the hash. Version 1 hashed the bytes and the path of every file in those rooms.


@dataclass(frozen=True)
class Source:
    """One version of the code."""

    commit: str | None  # with + if files were changed after it; None where it is not known
    source: str  # the hash
    hash_version: int  # that the hash was made by


class Equivalence(NamedTuple):
    """Hashes of code that trained the same weights, bit for bit, and the networks that this was tried with."""

    hashes: frozenset[str]
    networks: tuple[str, ...]  # shell patterns


_TRIED = (
    *("RKCNN-E-*", "RKCNN-I-*", "RKCNN-R-*", "ResNet@*", "ResNet-bottleneck@*", "RKNN-rk4_38@*"),
    *("DenseNet-*@*", "Identity@*"),
)
_WITH_TIME = ("RKNet-rk4_38@*", "RKNet-radau3@*", "ODENet-ab@*", "ODENet-abm@*")
_BEFORE_REDESIGN = "9a6bfa0a7ae39c35"  # commit ec04a237e424; CliqueNet had other first weights
_REDESIGNED = (  # commits d227defa779c, e87b2f5813f9 (one more engine), 7b2fa516bb2f (fewer files),
    # 3b53209f1eda (CutMix and more fused kernels) and e35331ceba04 (more fused kernels)
    *("9ed5da918cefe616", "6b112a3ccd0e346f", "ee92262fbfdfce2e", "17b6fbac978914db", "f70ee8a077c445f1"),
)
_TIME_APART = "53e3b2a34e624798"  # f(t, y) computes the time's part of a convolution by itself, with other rounding
_KEPT_PRODUCTS = "dd6ef62404e9e7f6"  # commit 1f430376ed2e: implicit steps keep inner products
_MENDED = "d8ae245c4fd2fadc"  # commit cdd779222bf3: faults around training mended
_CHANNELS_LAST = "e5576087d8903fee"  # on a CPU, networks without group norms have channels last (compared without it)
_REGISTERED_METHODS = "5f198993e1db7d82"  # commit 73ad0877a0d0: recipes check their values, methods can be registered
_USUAL_TORCH = "9052fdf0cfe6205b"  # runs compute in float32 and with gradients, whatever the caller has set in torch
_HALF_PRECISION = "8da3f4800c5ebfbb"  # networks take half precision and no images, and refuse other numbers
_NO_AUTOCAST = "f30ef4c015980b78"  # a caller's autocast is off, fused updates can skip some decays, stems copy less
_ODE_KERNELS = "f670b1d10bb1eba8"  # f of ODE networks has fused kernels; a caller's default device reaches no run
_ONE_TIME = "65635eb177adca2a"  # fused f of ODE networks takes one time, and rounds after the mean is taken off
_FEWER_FILES = "8c96edf8559c4cfd"  # commit 5f0a09a: names and files of solvers and fused kernels
_EACH = "e7c8cb93b6b03908"  # batch norms in f may have statistics for each evaluation; rounding is set in one place
_ONE_PRECISION = "e98cf3f5c8a74928"  # runs that train together have one precision, also while others compute
_BACKENDS = "879d9a8d56a31d19"  # what a run sets in torch holds until the last of several threads has left
_ADVICE = "952ed3298cf4137b"  # shared running statistics are named after a run with a wide gap between its errors
_AGAIN = "21f449b77e30206a"  # a repetition removes what was measured of the weights before
_RECENT = (
    *(_TIME_APART, _MENDED, _CHANNELS_LAST, _REGISTERED_METHODS, _USUAL_TORCH),
    *(_HALF_PRECISION, _NO_AUTOCAST, _ODE_KERNELS, _ONE_TIME, _FEWER_FILES, _EACH, _ONE_PRECISION),
    *(_BACKENDS, _ADVICE, _AGAIN),
)
EQUIVALENT: tuple[Equivalence, ...] = (
    Equivalence(frozenset({_BEFORE_REDESIGN, *_REDESIGNED, *_RECENT}), _TRIED),
    Equivalence(frozenset({_BEFORE_REDESIGN, *_REDESIGNED}), _WITH_TIME),
    Equivalence(frozenset(_RECENT), _WITH_TIME),
    Equivalence(frozenset({_KEPT_PRODUCTS, *_RECENT}), ("RKNet-rk4_38@*", "RKNet-radau3@*", "ODENet-ab@*")),
    Equivalence(frozenset({*_REDESIGNED, *_RECENT}), ("CliqueNet-*@*",)),
)
"""Filled by hand from what benchmarks/same_weights.py prints (docs/train.md, "Which code computed a result")."""


def is_same_code(one: str, two: str, network: str) -> bool:
    """Whether two hashes are equal, or are listed as equivalent for that network.

    What stands behind a +, the hash of a class or a method from outside the package, must be equal.
    """
    ours, theirs = (tuple(each.partition("+")[::2]) for each in (one, two))
    return ours == theirs or any(
        {ours[0], theirs[0]} <= each.hashes
        and ours[1] == theirs[1]
        and any(fnmatchcase(network, pattern) for pattern in each.networks)
        for each in EQUIVALENT
    )


def is_current_code(source: str, network: str) -> bool:
    """Whether a record's hash is that of this code. What is not registered in this process is not compared."""
    here = training_hash(network)
    return is_same_code(source if "+" in here else source.partition("+")[0], here, network)


def training_hash(network: str) -> str:
    """Return the hash of the code that trains a network.

    That of a class or of a method from outside the package (`rkcnn.register`) follows behind a +.
    """
    name, *rest = network.partition("@")[0].split("-")
    family, hashes = FAMILIES.get(name), [source_hash()]
    if family is not None and not isinstance(family.period, str):
        hashes.append(class_hash(family.period))
    variant = family.variants.get("".join(rest[:1])) if family else None
    if variant is not None and variant.solver is not None and variant.solver not in BUILT_IN:
        hashes.append(hashlib.sha256(repr(TABLEAUS[variant.solver]).encode()).hexdigest()[:16])
    return "+".join(hashes)


def current_source(entry: str = TRAINING_MODULE, network: str = "") -> Source:
    """Return this code's commit and the hash of what the module `entry` computes by, or of what trains `network`."""
    return Source(find_commit(), training_hash(network) if network else source_hash(entry), HASH_VERSION)


@cache
def source_hash(entry: str = TRAINING_MODULE) -> str:
    """Return the hash of all definitions in `entry` and in the modules of computing rooms that it imports."""
    digests: list[bytes] = []
    waiting, found = [entry], {entry}
    while waiting:
        path = PACKAGE.joinpath(*waiting.pop().split(".")[1:]).with_suffix(".py")
        if not path.is_file():  # the name of something in a module
            continue
        imports: set[str] = set()
        for node in ast.parse(path.read_bytes()).body:
            words: list[str] = []
            _write(node, words, imports)
            if words:
                digests.append(hashlib.sha256(" ".join(words).encode()).digest())
        new = {name for name in imports if name.startswith(_COMPUTING)} - found - _DRAWING_MODULES
        waiting.extend(new)
        found |= new
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:16]


def class_hash(kind: type) -> str:
    """Return the hash of a class from outside the package, and of its parents outside rkcnn and torch.

    It covers what they use of the file, or of the notebook's cell, that they are defined in: other classes, functions
    and constants at its top level. It does not follow imports. Raises InputError where the source can't be found.
    """
    digests: list[bytes] = []
    for each in kind.__mro__:
        if each.__module__.partition(".")[0] in ("rkcnn", "torch", "builtins"):
            continue
        top = {name: node for node in ast.parse(_find_text(each)).body for name in _defined_names(node)}
        waiting, found = [each.__name__], {each.__name__}
        while waiting:
            words: list[str] = []
            node = top.get(waiting.pop())
            if node is None:
                continue
            _write(node, words, set())
            digests.append(hashlib.sha256(" ".join(words).encode()).digest())
            new = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & top.keys() - found
            waiting.extend(new)
            found |= new
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:16]


def _find_text(kind: type) -> str:
    """Return the text of the file or notebook cell that defines a class, by the code of one of its functions."""
    codes = (getattr(inspect.unwrap(value), "__code__", None) for value in vars(kind).values() if callable(value))
    text = "".join(next((linecache.getlines(code.co_filename) for code in codes if code is not None), []))
    if not re.search(rf"^class {kind.__name__}\b", text, re.MULTILINE):
        raise InputError(
            f"the source of the class {kind.__name__} can't be found, and a run's record holds a hash of it; define "
            "the class at the top level of a file or of a notebook's cell"
        )
    return text


def _defined_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top level of a file defines; imports define none here."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name))


_COMPUTING = tuple(f"rkcnn.{room}." for room in ROOMS)
_CLASS_PLACE = re.compile(r"([a-z_.]+):[A-Z]\w*")  # steps.resnet:ResNet, as model/period.py loads a class by its name
_DRAWING_MODULES = {"rkcnn.model.drawing"}
_DRAWING_FUNCTIONS = {"draw_step", "step_diagram", "draw_stages", "_draw_adams", "_weighted"}  # in model/steps, period
_FAMILY_CALLS = {"Family", "Variant", "Option", "replace"}  # the calls of model/families.py
_FAMILY_WORDS = {"look", "title", "about"}  # their arguments that say how a family is drawn or described
_IGNORED_FIELDS = {"annotation", "returns", "type_comment", "kind", "ctx", "msg", "cause"}


def _write(node: Any, words: list[str], imports: set[str]) -> None:
    """Add what a node computes to `words`, and the name of everything it imports to `imports`.

    `ast.dump` would not do, for it differs between versions of Python.
    """
    kind: type = type(node)
    if kind is list:
        for each in node:
            _write(each, words, imports)
    elif kind is ast.Import:
        imports.update(name.name for name in node.names)
    elif kind is ast.ImportFrom:
        imports.update((node.module, *(f"{node.module}.{name.name}" for name in node.names)))
    elif not issubclass(kind, ast.AST):
        words.append(repr(node))
        if kind is str and (place := _CLASS_PLACE.fullmatch(node)):
            imports.add(f"rkcnn.model.{place[1]}")
    elif not (kind is ast.Pass or _is_docstring(node) or _is_for_type_checkers(node) or _only_draws(node)):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign([node.target], node.value)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node = ast.Raise(node.exc.func)  # without its message
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FAMILY_CALLS:
            node = ast.Call(node.func, node.args, [each for each in node.keywords if each.arg not in _FAMILY_WORDS])
        words.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if name not in _IGNORED_FIELDS and value is not None and value != []:
                words.append(name)
                _write(value, words, imports)
        words.append(")")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _only_draws(node: ast.AST) -> bool:
    """Whether this is a function that draws a network's diagram (model/drawing.py)."""
    return isinstance(node, ast.FunctionDef) and node.name in _DRAWING_FUNCTIONS


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def find_commit() -> str | None:
    """Return RKCNN_COMMIT if it is set, else the checkout's commit, with + if files were changed; None outside one."""
    if given := os.environ.get("RKCNN_COMMIT"):
        return given
    try:
        _git("ls-files", "--error-unmatch", "--", "record/source.py")  # a .venv lies in another project's checkout
        return _git("rev-parse", "--short=12", "HEAD") + "+" * bool(_git("status", "--porcelain", "--", "."))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*command: str) -> str:
    return subprocess.run(
        ["git", "-C", str(PACKAGE), *command], capture_output=True, text=True, check=True
    ).stdout.strip()
