"""Writes docs/api.md from the signatures and docstrings of the package: python -m rkcnn.use.api_page docs/api.md"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any

import rkcnn
from rkcnn.disk import write_atomically
from rkcnn.page_writer import run_writer

LINE = 100  # characters of a signature before it gets a line for each argument
HEAD = """# The Python interface

This page is written from the docstrings by `python -m rkcnn.use.api_page docs/api.md`. `import rkcnn` offers the
functions and the first group of types below, and imports torch only when one of them is used. Errors are fractions from
0 to 1, times are in seconds, and sizes in bytes. Input that can't be used raises `rkcnn.InputError`: its message is one
sentence that says what was given and what would work.
"""
ORDER = (
    "create_model",
    "list_models",
    "list_pretrained",
    "cost",
    "train",
    "evaluate",
    "compare",
    "load",
    "export",
    "load_images",
    "solve",
    "draw",
    "register",
)


def write_page() -> str:
    """Return the whole page as Markdown."""
    names = sorted(rkcnn.__all__, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    public = {name: getattr(rkcnn, name) for name in names}
    functions = {name: value for name, value in public.items() if not inspect.isclass(value)}
    types = [value for value in public.values() if inspect.isclass(value)]
    others = [
        kind for kind in _find_types([*functions.values()], types) if not any(issubclass(each, kind) for each in types)
    ]
    return "\n".join(
        [
            HEAD,
            "## Functions\n",
            *(_describe_function(f"rkcnn.{name}", function) for name, function in functions.items()),
            "## Types\n",
            *(_describe_class(f"rkcnn.{kind.__name__}", kind) for kind in types),
            "## Types that these return or hold\n",
            *(_describe_class(f"{kind.__module__}.{kind.__name__}", kind) for kind in others),
        ]
    )


def _find_types(functions: list[Any], types: list[type]) -> list[type]:
    """Return the types of this package that functions return or that fields of these types hold."""
    found: list[type] = []
    waiting: list[Any] = [_returns(function) for function in functions] + types
    while waiting:
        hint = waiting.pop(0)
        waiting[:0] = typing.get_args(hint)
        if not inspect.isclass(hint) or not hint.__module__.startswith("rkcnn.") or hint in found:
            continue
        found.append(hint)
        hints = typing.get_type_hints(hint)
        waiting += [hints[name] for name in _own_fields(hint)]
        waiting += [_returns(method) for _, method in _methods(hint)]
    return found


def _returns(function: Any) -> Any:
    """Return the type that a function returns, or None where only type checkers import it."""
    try:
        return typing.get_type_hints(getattr(function, "fget", function)).get("return")
    except NameError:
        return None


def _describe_function(title: str, function: Any) -> str:
    return f"### {title}\n\n```python\n{_signature(title.rpartition('.')[2], function)}\n```\n\n{_text(function)}\n"


def _text(function: Any) -> str:
    """Return the docstring, with its arguments as a list."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(
        "\n".join(f"- `{name}`: {about}" for name, about in _items(paragraph)) or paragraph for paragraph in paragraphs
    )


def _describe_class(title: str, kind: type) -> str:
    """Return the docstring, a table of the fields, which has those that the docstring explains, and the methods."""
    own, text = _own_fields(kind), []
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        explained = {name: about for name, about in _items(paragraph) if name in own}
        own |= {name: (own[name][0], about) for name, about in explained.items()}
        text += [] if explained else [paragraph]
    parts = [f"### {title}\n\n" + "\n\n".join(text) + "\n"]
    if own:
        rows = (f"| `{name}` | `{hint.replace('|', chr(92) + '|')}` | {about} |" for name, (hint, about) in own.items())
        parts.append("\n".join(["| field | type | |", "|---|---|---|", *rows, ""]))
    for name, method in _methods(kind):
        shown = name if isinstance(method, property) else _signature(name, method)
        parts.append(f"```python\n.{shown}\n```\n\n{_text(method)}\n")
    return "\n".join(parts)


def _own_fields(kind: type) -> dict[str, tuple[str, str]]:
    """Return the fields of a class and its parents: name to type with its default, and the comment or text behind."""
    if not (is_dataclass(kind) or issubclass(kind, tuple)):
        return {}
    wanted = {field.name for field in fields(kind)} if is_dataclass(kind) else set(getattr(kind, "_fields", ()))
    wanted |= set(vars(kind).get("__annotations__", ()))
    found: dict[str, tuple[str, str]] = {}
    for parent in reversed(kind.__mro__):
        if parent.__module__.startswith("rkcnn"):
            found |= {name: facts for name, facts in _read_fields(dedent(inspect.getsource(parent))) if name in wanted}
    return found


def _read_fields(source: str) -> Iterator[tuple[str, tuple[str, str]]]:
    lines = source.splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    for node, following in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _, _, about = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
            about = re.sub(r"^noqa: \w+( \(\w+\):? ?)?", "", about)
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                about = about or str(following.value.value)
            default = f" = {ast.unparse(node.value)}" if isinstance(node.value, ast.Constant | ast.Tuple) else ""
            yield node.target.id, (ast.unparse(node.annotation) + default, " ".join(about.split()))


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties with a docstring, of a class and its parents in this package."""
    seen: set[str] = set()
    for parent in kind.__mro__:
        for name, value in vars(parent).items() if parent.__module__.startswith("rkcnn.") else ():
            value = value.__func__ if isinstance(value, staticmethod) else value
            public = name == "__call__" or not name.startswith("_")
            if public and name not in seen and isinstance(value, FunctionType | property) and value.__doc__:
                seen.add(name)
                yield name, value


def _signature(name: str, function: Any) -> str:
    """Return the signature as Python writes it, with the annotations of the source; a long one on several lines."""
    signature = inspect.signature(function)
    arguments: list[str] = []
    for argument in signature.parameters.values():
        if argument.name == "self":
            continue
        if argument.kind is argument.KEYWORD_ONLY and "*" not in arguments:
            arguments.append("*")
        stars = "*" * ((argument.kind is argument.VAR_POSITIONAL) + 2 * (argument.kind is argument.VAR_KEYWORD))
        default = argument.default
        shown = json.dumps(default) if isinstance(default, str) else repr(default)
        given = "" if default is argument.empty else f" = {shown}"
        arguments.append(f"{stars}{argument.name}: {argument.annotation}{given}")
    end = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(arguments)}){end}"
    return line if len(line) <= LINE else "\n".join([f"{name}(", *(f"    {each}," for each in arguments), f"){end}"])


def _items(paragraph: str) -> list[tuple[str, str]]:
    """Return (name, explanation) of a paragraph that has names at the left and explanations in a column beside them.

    A name too long for its column has its explanation on the next line. Any other paragraph has none.
    """
    lines = paragraph.splitlines()
    gaps = (re.match(r"[a-z]\w*  +|    +", line) for line in lines[:2])
    column = next((gap.end() for gap in gaps if gap), 0)
    items: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        name, about = line[:column].strip(), line[column:]
        if not name and items:
            items[-1].append(about)
        elif re.fullmatch(r"[a-z]\w*(, \w+)*", name) and line[column - 1 : column] == " ":
            items.append([name, about])
        elif re.fullmatch(r"[a-z]\w*(, [\w.]+)+", line) and number < len(lines) and not lines[number][:column].strip():
            items.append([line])
        else:
            return []
    return [(name, " ".join(about)) for name, *about in items]


def write_to(path: str) -> list[str]:
    """Write the page to a file."""
    write_atomically(Path(path), write_page().encode())
    return []


if __name__ == "__main__":
    sys.exit(run_writer(write_to, sys.argv[1:], ("docs/api.md",)))
