"""A non-stiff and a stiff ODE, and which method suits which."""

import math

import torch

import rkcnn

# Predators and prey. All of it changes at one pace, so an explicit method that chooses its steps does well.
prey = torch.tensor([2.0, 1.0], dtype=torch.float64)
solution = rkcnn.solve(lambda t, y: torch.stack([y[0] * (1 - y[1]), y[1] * (y[0] - 1)]), prey, [0.0, 10.0], "dopri5")
x, y = solution.ys[-1].tolist()
invariant = x - math.log(x) + y - math.log(y)  # stays what it is at the start, 3 - log 2
print(f"predators and prey, dopri5: {solution.evaluations} evaluations, error {abs(invariant - 3 + math.log(2)):.1e}")

# y' = -200 (y - cos t). The solution is about cos t, and what is not on it decays 200 times as fast as that changes.
rate, end = 200, 2.0
exact = (rate**2 * math.cos(end) + rate * math.sin(end)) / (rate**2 + 1)  # the rest has decayed
for method, options in (("rk4", {"steps": 20}), ("dopri5", {"tol": 1e-6}), ("radau3", {"steps": 20})):
    start = torch.zeros(1, dtype=torch.float64)
    solution = rkcnn.solve(lambda t, y: -rate * (y - torch.cos(t)), start, [0.0, end], method, **options)
    error = abs(float(solution.ys[-1, 0]) - exact)
    print(f"stiff, {method}: {solution.steps} steps, {solution.evaluations} evaluations, error {error:.1e}")
# rk4 explodes with 20 steps; dopri5 must take small steps; implicit radau3 damps what is fast and needs 20.
