"""One SGD step of all parameters in a few launches, instead of one for each operation and part of the list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from rkcnn.model.fast import list_kernels as kernels
from rkcnn.model.fast.tables import address_table, cut

BLOCK = 1024  # numbers of a block


def update_parameters(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    buffers: Sequence[Tensor],
    lr: Tensor,
    momentum: float,
    nesterov: bool,
    decay: float,
    decayed: Collection[int],
) -> None:
    """Take the step of `rkcnn.fit.trainer.SGD`; parameters and buffers are float32 and have no gaps.

    `decayed` has the places in the list of those parameters that the decay acts on.
    Gradients that lie in one buffer, as those of an RKStep do, are read where they are, the others from a copy.
    """
    grads = [_laid_out_like(p, g) for p, g in zip(parameters, grads, strict=True)]
    together: dict[int, list[int]] = defaultdict(list)
    for n, grad in enumerate(grads):
        together[grad.untyped_storage().data_ptr()].append(n)
    alone = [members[0] for members in together.values() if len(members) == 1]
    launches = [members for members in together.values() if len(members) > 1]
    if alone:
        launches.append(alone)
    with torch.cuda.device_of(lr):
        for members in launches:
            sizes = [grads[n].numel() for n in members]
            if members is alone:
                flat = torch.cat([grads[n].as_strided((grads[n].numel(),), (1,)) for n in members])
                places = list(accumulate(sizes, initial=0))
            else:
                first = grads[members[0]]
                flat = first.as_strided((first.untyped_storage().nbytes() // first.element_size(),), (1,), 0)
                places = [int(grads[n].storage_offset()) for n in members]
            starts = [(parameters[n].data_ptr(), buffers[n].data_ptr()) for n in members]
            rows = tuple(
                (starts[n][0] + 4 * at, starts[n][1] + 4 * at, places[n] + at, size, int(members[n] in decayed))
                for n, at, size in cut(sizes, BLOCK)
            )
            kernels.update[(len(rows),)](
                address_table(rows, lr.device), flat, lr, momentum, decay, NESTEROV=nesterov, BLOCK=BLOCK
            )


def _laid_out_like(parameter: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient in the parameter's layout, copied only if its own is another."""
    sizes = zip(parameter.shape, parameter.stride(), grad.stride(), strict=True)
    if all(size == 1 or ours == its for size, ours, its in sizes):
        return grad
    return torch.empty_like(parameter).copy_(grad)
