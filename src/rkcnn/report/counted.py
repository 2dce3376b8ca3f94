"""Parameters of the networks of the paper's sota-mnist table, counted once: a claim about them needs no training."""

from __future__ import annotations

COUNTED = {
    "RKNet-64": 208_266,
    "ODENet-64": 208_266,
    "SONODE-64": 283_658,
    "RKCNN-E-2@k=32": 55_498,
    "RKCNN-I-2@k=32": 78_410,
    "RKCNN-R-2@k=32": 78_410,
}
