"""Reads a pickle as data: numbers, strings, bytes, lists, tuples, dicts, plain numpy arrays, and nothing else.

Python's own unpickler calls any function that the file names, and allocates memory that the file merely claims. Here
`pickletools` splits the file into opcodes, checking each length, and they are interpreted one by one. The few names
that numpy writes are recognised; nothing is ever imported or called.
"""

from __future__ import annotations

import io
import pickletools
import warnings
from typing import Any

import numpy as np

from rkcnn.error import InputError, shorten

MOST_STEPS = 400_000  # CIFAR-100's training file has 200,000; an empty list is 1 byte here and 64 in memory
_MARK = object()
_ARRAY, _BUFFER, _DTYPE, _ENCODE, _NDARRAY = "an array", "a buffer", "a dtype", "an encoding", "ndarray"
_NAMES = {
    **{f"numpy.{core}.multiarray _reconstruct": _ARRAY for core in ("core", "_core")},
    **{f"numpy.{core}.numeric _frombuffer": _BUFFER for core in ("core", "_core")},
    "numpy dtype": _DTYPE,
    "numpy ndarray": _NDARRAY,
    "_codecs encode": _ENCODE,  # how Python 3 writes bytes for Python 2
}
_DTYPES = {"u1": np.dtype(np.uint8), "i8": np.dtype("<i8")}
_LITERALS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "FLOAT", "BINFLOAT"})
_STRINGS2 = frozenset({"STRING", "BINSTRING", "SHORT_BINSTRING"})  # Python 2's str: bytes
_STRINGS3 = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_BYTES = frozenset({"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"})
_NOTHING = frozenset({"PROTO", "FRAME"})


class _Name(str):
    """A name of `_NAMES` on the stack."""


class _Array:
    """An array that REDUCE has made and BUILD has yet to fill."""

    value: np.ndarray[Any, Any] | None = None


def read_plain_pickle(data: bytes, where: str) -> object:
    """Return what the pickle holds, with Python 2's strings as bytes; InputError for anything but plain data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in a damaged string
            return _Machine(where).run(data)
    except InputError:
        raise
    except (
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        OverflowError,
        AttributeError,
        RecursionError,
    ) as error:
        # what damaged pickles raise; nothing of the file has been run
        raise InputError(f"{where}: is not a readable pickle ({type(error).__name__}: {shorten(str(error))})") from None


class _Machine:
    """Interprets the opcodes of one pickle with a stack and a memo, as Python's unpickler does."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.bytes_left = 0  # that encoded strings may still take

    def run(self, data: bytes) -> object:
        self.bytes_left = len(data)
        for step, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(data))):
            if step == MOST_STEPS:
                raise InputError(f"{self.where}: the pickle has over {MOST_STEPS} steps, more than CIFAR's files")
            if opcode.name == "STOP":
                return _finished(self.stack.pop())
            self._step(opcode.name, argument)
        raise InputError(f"{self.where}: the pickle has no end; it is truncated")

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _NUMBERS or name in _STRINGS3:
            stack.append(argument)
        elif name in _STRINGS2:
            stack.append(argument.encode("latin-1"))
        elif name in _BYTES:
            stack.append(bytes(argument))
        elif name in _LITERALS:
            stack.append(_LITERALS[name])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self.memo[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(_finished(item) for item in stack[-count:])]
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self._since_mark()
            stack.append(tuple(items) if name == "TUPLE" else items if name == "LIST" else _pairs(items))
        elif name in ("APPEND", "APPENDS"):
            items = self._since_mark() if name == "APPENDS" else [_finished(stack.pop())]
            _expect(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else [_finished(stack.pop()) for _ in range(2)][::-1]
            _expect(stack[-1], dict).update(_pairs(items))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            given = argument if name == "GLOBAL" else " ".join([stack.pop(), stack.pop()][::-1])
            if given not in _NAMES:
                asked = shorten(repr(given), 100)
                raise InputError(f"{self.where}: the pickle asks for {asked}; only plain data is read, nothing was run")
            stack.append(_Name(_NAMES[given]))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(self._reduce(stack.pop(), arguments))
        elif name == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], _Array):
                stack[-1].value = _array(state[1], state[2], state[4], state[3])
            elif not isinstance(stack[-1], np.dtype):  # a dtype's state says only its byte order, known already
                raise InputError(f"{self.where}: the pickle sets the state of an object; only plain data is read")
        elif name not in _NOTHING:
            raise InputError(f"{self.where}: the pickle uses {name}; only plain data is read, nothing was run")

    def _reduce(self, name: object, arguments: Any) -> object:
        if isinstance(name, _Name) and name == _ARRAY:
            return _Array()
        if isinstance(name, _Name) and name == _DTYPE:
            return _DTYPES[_key(arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0])]
        if isinstance(name, _Name) and name == _ENCODE:
            encoded: bytes = _expect(arguments[0], str).encode("latin-1")
            self.bytes_left -= len(encoded)
            if self.bytes_left < 0:  # one string of the memo, encoded again and again
                raise InputError(f"{self.where}: the pickle's bytes come to more than the file holds; it is refused")
            return encoded
        if isinstance(name, _Name) and name == _BUFFER:
            return _array(arguments[2], arguments[1], arguments[0], arguments[3] == "F")
        raise InputError(
            f"{self.where}: the pickle calls a {type(name).__name__}; only plain data is read, nothing was run"
        )

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(_finished(item))
        return items[::-1]


def _array(shape: Any, dtype: Any, data: Any, fortran: Any) -> np.ndarray[Any, Any]:
    flat = np.frombuffer(_expect(data, bytes), _expect(dtype, np.dtype))
    return flat.reshape(shape, order="F" if fortran else "C")


def _finished(item: Any) -> Any:
    return item.value if isinstance(item, _Array) else item


def _expect(item: Any, kind: type) -> Any:
    if not isinstance(item, kind):
        raise TypeError(f"{type(item).__name__} where {kind.__name__} was expected")
    return item


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(map(_key, items[::2]), items[1::2], strict=True))


def _key(item: Any) -> Any:
    """Refuse tuples: if each holds the next one twice, their hash and text take twice as long with each level."""
    if not isinstance(item, str | bytes | int):
        raise TypeError(f"{type(item).__name__} as a key, where text, bytes or a whole number was expected")
    return item
