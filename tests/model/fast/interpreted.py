"""Triton's interpreter, made to work with numpy 2.4: there a loop's bound, an array of one number, is no integer."""

from __future__ import annotations

import os
from typing import Any

import pytest

triton = pytest.importorskip("triton", reason="triton is not installed: make test-kernels")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("triton interprets its kernels only in make test-kernels", allow_module_level=True)

from triton.runtime import interpreter  # noqa: E402

patch = interpreter._patch_lang_tensor


def patch_with_bounds(tensor: Any, scope: Any) -> None:
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = patch_with_bounds
