"""Published originals whose names in the grammar say all that there is to know. Imports no torch."""

from __future__ import annotations

FIXED = {
    "RKNet-64": "RKNet-dopri5@k=64,tol=0.001",
    "ODENet-64": "ODENet-abm@k=64,tol=0.001,adjoint=on",
    "SONODE-64": "SONODE-dopri5@k=64,tol=0.001",
}
"""Published originals that stand in the one frame: their names in the grammar say the rest (SPEC 3.6)."""
