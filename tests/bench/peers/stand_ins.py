"""Small stand-ins for checkouts of others: our own writing, with the names and the interface that the adapters use."""

from __future__ import annotations

from pathlib import Path

AUTHORS = """
import torch
from torch import nn
from .utils import norm


class Block(nn.Module):
    def __init__(self, k, s, sweeps, newest):
        super().__init__()
        self.sweeps, self.newest = sweeps, newest
        self.init_bn_1x1 = nn.ModuleList(norm((i + 1) * k) for i in range(s))
        self.conv_1x1 = nn.ModuleList(nn.Conv2d((i + 1) * k, k, 1, bias=False) for i in range(s))
        self.init_bn_3x3 = nn.ModuleList(norm(k) for _ in range(s))
        self.conv_3x3 = nn.ModuleList(nn.Conv2d(k, k, 3, padding=1, bias=False) for _ in range(s))
        if sweeps:
            self.update_bn_1x1 = nn.ModuleList(norm(s * k) for _ in range(s))
            self.conv_1x1_update = nn.ModuleList(nn.Conv2d(s * k, k, 1, bias=False) for _ in range(s))
            self.update_bn_3x3 = nn.ModuleList(norm(k) for _ in range(s))
            self.conv_3x3_update = nn.ModuleList(nn.Conv2d(k, k, 3, padding=1, bias=False) for _ in range(s))

    def forward(self, y):
        x = []
        for a, b, c, d in zip(self.init_bn_1x1, self.conv_1x1, self.init_bn_3x3, self.conv_3x3):
            x.append(d(c(b(a(torch.cat([y, *x], 1)).relu())).relu()))
        for _ in range(self.sweeps):
            read = x if self.newest else list(x)
            layers = zip(self.update_bn_1x1, self.conv_1x1_update, self.update_bn_3x3, self.conv_3x3_update)
            for i, (a, b, c, d) in enumerate(layers):
                x[i] = d(c(b(a(torch.cat([y, *read[:i], *read[i + 1 :]], 1)).relu())).relu())
        return y + WRONG * sum(x)


class Pool(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.bn = norm(k)

    def forward(self, x):
        return self.bn(x).relu().mean((2, 3))


class Attention(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(k, k // 2), nn.Linear(k // 2, k)

    def forward(self, x):
        return x * self.fc2(self.fc1(x.mean((2, 3))).relu()).sigmoid()[:, :, None, None]


class Transition(nn.Module):
    def __init__(self, k, out, attention):
        super().__init__()
        self.bn, self.conv = norm(k), nn.Conv2d(k, out, 1, bias=False)
        self.attention = Attention(out) if attention else nn.Identity()

    def forward(self, x):
        return nn.functional.avg_pool2d(self.attention(self.conv(self.bn(x).relu())), 2)


class build_RKCNN(nn.Module):
    def __init__(self, growth_rates, stages, if_att, update_nums, keep_prob, out_features, if_b, steps, neck,
                 multiscale, replace=False):
        super().__init__()
        self.fir_trans = nn.Conv2d(3, growth_rates[0], 3, padding=1, bias=False)
        self.steps, self.multiscale = steps, multiscale
        self.list_block = nn.ModuleList(
            Block(k, s, n, replace) for k, s, n, r in zip(growth_rates, stages, update_nums, steps) for _ in range(r))
        self.list_trans = nn.ModuleList(
            Transition(k, out, if_att) for k, out in zip(growth_rates, growth_rates[1:]))
        read = growth_rates if multiscale else growth_rates[-1:]
        self.list_gb = nn.ModuleList(Pool(k) for k in read)
        self.fc = nn.Linear(sum(read), out_features)

    def forward(self, x):
        y, blocks, found = self.fir_trans(x), iter(self.list_block), []
        for i, steps in enumerate(self.steps):
            for _ in range(steps):
                y = next(blocks)(y)
            found.append(y)
            if i < len(self.list_trans):
                y = self.list_trans[i](y)
        return self.fc(torch.cat([pool(y) for pool, y in zip(self.list_gb, found[-len(self.list_gb):])], 1))
"""
UTILS = """
from torch import nn


def norm(width):
    return nn.BatchNorm2d(width, eps=0.001, momentum=0.01)
"""
CLIQUE = """
import torch
from torch import nn


class clique_block(nn.Module):
    def __init__(self, input_channels, channels_per_layer, layer_num, loop_num, keep_prob):
        super().__init__()
        self.s, k = layer_num, channels_per_layer
        pairs = [(i, j) for i in range(self.s + 1) for j in range(self.s + 1)]
        self.conv_param = nn.ModuleList(nn.Conv2d(k, k, 1, bias=False) for _ in pairs)
        for n, (i, j) in enumerate(pairs):
            if j == 0 or i == j:
                self.conv_param[n] = None
        self.conv_param_bottle = nn.ModuleList(nn.Conv2d(k, k, 3, padding=1, bias=False) for _ in range(self.s))
        self.forward_bn = nn.ModuleList(nn.BatchNorm2d((i + 1) * k) for i in range(self.s))
        self.forward_bn_b = nn.ModuleList(nn.BatchNorm2d(k) for _ in range(self.s))
        self.loop_bn = nn.ModuleList(nn.BatchNorm2d((self.s - 1) * k) for _ in range(self.s))
        self.loop_bn_b = nn.ModuleList(nn.BatchNorm2d(k) for _ in range(self.s))

    def layer(self, j, sources, first, second):
        x = first[j - 1](torch.cat(list(sources.values()), 1)).relu().chunk(len(sources), 1)
        mixed = sum(self.conv_param[i * (self.s + 1) + j](part) for i, part in zip(sources, x))
        return self.conv_param_bottle[j - 1](second[j - 1](mixed).relu())

    def forward(self, y):
        x = {0: y}
        for j in range(1, self.s + 1):
            x[j] = self.layer(j, dict(x), self.forward_bn, self.forward_bn_b)
        for j in range(1, self.s + 1):
            others = {i: x[i] for i in range(1, self.s + 1) if i != j}
            x[j] = self.layer(j, others, self.loop_bn, self.loop_bn_b)
        return torch.cat(list(x.values()), 1), torch.cat(list(x.values())[1:], 1)
"""


def write_authors(folder: Path, factor: float = 1.0) -> Path:
    """Write a checkout of the authors' code, whose increments are multiplied by `factor`; return its folder."""
    package = folder / "pytorch_models"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "utils.py").write_text(UTILS)
    (package / "RKCNN.py").write_text(AUTHORS.replace("WRONG", str(factor)))
    return folder


def write_clique(folder: Path) -> Path:
    """Write a checkout of CliqueNet's code; return its folder."""
    package = folder / "imagenet_pytorch"
    package.mkdir(parents=True)
    (package / "utils.py").write_text(CLIQUE)
    return folder
