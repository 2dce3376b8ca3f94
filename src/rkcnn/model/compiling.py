"""How torch.compile is used: where it can be, how often, and what is said when it fails."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

COMPILERS = ("c++", "g++", "clang++", "cl")
VERSIONS = 100_000  # of one function that torch may keep; each network needs some, and torch's limit is 8


class NotCompiled(Exception):
    """torch.compile failed; the message is the reason, in one line."""


def why_not_compiled(device: torch.device) -> str:
    """Return why torch.compile can't be used on a device; nothing if it can."""
    missing = device.type != "cuda" and not any(map(shutil.which, COMPILERS))
    return "torch.compile needs a C++ compiler" if missing else ""


@contextmanager
def compiling() -> Iterator[None]:
    """A context for the first calls of a compiled function, which compile it; raises NotCompiled if that fails."""
    import torch._dynamo as dynamo  # takes a second

    warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")  # fp32 is what is asked for
    limits = {"recompile_limit": VERSIONS, "accumulated_recompile_limit": VERSIONS}
    try:
        with dynamo.config.patch({**limits, "fail_on_recompile_limit_hit": True}):
            yield
    except (dynamo.exc.TorchDynamoException, dynamo.exc.FailOnRecompileLimitHit) as error:
        raise NotCompiled(f"{type(error).__name__}, {str(error).strip().partition(chr(10))[0]}") from error
