"""`rkcnn.solve` beside torchdiffeq's odeint: the same f, with the weights of one of our networks, and equal steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from rkcnn.bench.contender import Contender, create_network, image_size
from rkcnn.bench.peers.in_frame import TORCHDIFFEQ, TheirSolve
from rkcnn.bench.peers.same_outputs import TOLERANCE
from rkcnn.error import InputError
from rkcnn.model.network import Network
from rkcnn.record.bench import Measurement
from rkcnn.solvers.solve import solve

WORK = "solve"


def plain_solves(name: str, batch: int, device: torch.device, theirs: bool) -> Iterator[Contender]:
    """Yield `rkcnn.solve` over a unit of time and, with `theirs`, torchdiffeq's odeint, without gradients.

    f is that of the network's first period, and y0 has the shape that the period gets. Yields nothing if the method is
    not one that both have.
    """
    network = create_network(name).eval()
    if not isinstance(network, Network) or network.spec.solver not in TORCHDIFFEQ or network.spec.tol is not None:
        return
    method, steps = network.spec.solver, network.spec.r[0]
    f = network.periods[0].get_submodule("f")
    with torch.no_grad():
        size = image_size(network)
        y0 = network.preprocessor(torch.randn(batch, network.channels, size, size))

    def solve_by_us(f: nn.Module, y: Tensor) -> Tensor:
        return solve(f, y, (0.0, 1.0), method, steps=steps).ys[1]

    def solve_by_them(f: nn.Module, y: Tensor) -> Tensor:
        end: Tensor = TheirSolve(f, method or "", steps)(y)[0]
        return end

    difference = None
    if theirs:
        with torch.no_grad():
            one, two = (each(f.double(), y0[:2].double()) for each in (solve_by_us, solve_by_them))
        difference = float((one - two).abs().max() / one.abs().max())
        if not difference <= TOLERANCE:
            raise InputError(
                f"torchdiffeq was not timed: with the f of {name} its solution differs from ours by {difference:.2g} "
                f"of the largest value, and up to {TOLERANCE:g} is rounding"
            )
    f, y0 = f.float().to(device), y0.to(device)
    sides: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {"rkcnn.solve": solve_by_us}
    if theirs:
        sides["torchdiffeq"] = solve_by_them
    for code, run in sides.items():

        def advance(count: int, run: Callable[[nn.Module, Tensor], Tensor] = run) -> None:
            with torch.no_grad():
                for _ in range(count):
                    run(f, y0)

        measurement = Measurement(WORK, name, batch, code, "eager", "fp32")
        if code != "rkcnn.solve":
            measurement.difference = difference
        yield Contender(measurement, device, advance, "fp32")
