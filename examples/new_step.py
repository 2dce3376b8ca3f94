"""A time-step of your own, trained beside RKCNN and compared with it.

It is y_next = y + g F(y), with a learned g for each channel. Three networks are trained with three seeds each, on
10,000 digits. The comparison has intervals over the seeds and exact tests.
"""

import torch
from torch import nn

import rkcnn
from rkcnn.model.families import Family
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.steps.resnet import residual


class Gated(Period):
    """y_next = y + g F(y), r times, each time with weights of its own; g is a learned number for each channel."""

    def __init__(self, spec, index, layers):
        k, r = spec.k[index], spec.r[index]
        super().__init__(transition_channels=k)
        self.steps = nn.ModuleList(residual(k, layers) for _ in range(r))
        self.gates = nn.ParameterList(torch.full((k, 1, 1), 0.5) for _ in range(r))
        self.evaluations = r

    def walk(self, y):
        for step, gate in zip(self.steps, self.gates, strict=True):
            e = gate * step(y)
            y = y + e
            yield TimeStep(y, (e,))  # the new state and its increments


rkcnn.register(Family("Gated", about="residual steps with a learned size", period=Gated))
names = ("RKCNN-R-2@k=16", "Gated@k=16,r=2", "Identity@k=16")  # Identity has no steps: the control
runs = [rkcnn.train(name, data="mnist-mini", seed=seed) for name in names for seed in range(3)]
comparison = rkcnn.compare([run.folder for run in runs])
print(comparison)
print("written:", *comparison.write("gated-and-rkcnn"))
