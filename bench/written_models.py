"""Networks that people write rather than take from a package, with random weights: MODELS[name](batch, seq) gives a module in eval
mode and example inputs, f32 on the CPU. Specs NAME@written of published_models.py."""

import torch
import torch.nn.functional as F
from torch import nn


def double_conv(i, o):
    layers = []
    for channels in (i, o):
        layers += [nn.Conv2d(channels, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Four levels; the way up is transposed convolutions, each joined with what the way down kept."""

    def __init__(self, width=64, levels=4, classes=2):
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([3] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in widths[-2::-1])
        self.join = nn.ModuleList(double_conv(2 * o, o) for o in widths[-2::-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat([skip, up(x)], 1))
        return self.head(x)


class DiTBlock(nn.Module):
    """A block of a diffusion transformer whose norms are scaled, shifted and gated by the condition (adaLN)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, 1e-6, elementwise_affine=False) for _ in range(2))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(F.silu(condition)).unsqueeze(1).chunk(6, 2)
        qkv = self.qkv(self.norm1(x) * (1 + scale1) + shift1)
        q, k, v = qkv.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + gate1 * self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + gate2 * self.f2(F.gelu(self.f1(self.norm2(x) * (1 + scale2) + shift2), approximate="tanh"))


class DiT(nn.Module):
    def __init__(self, width=768, heads=12, depth=8):
        super().__init__()
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(depth))

    def forward(self, x, condition):
        for block in self.blocks:
            x = block(x, condition)
        return x


def unet(batch, seq):
    return UNet(), (torch.randn(batch, 3, seq or 256, seq or 256),)


def dit(batch, seq):
    return DiT(), (torch.randn(batch, seq or 1024, 768), torch.randn(batch, 768))


MODELS = {"dit": dit, "unet": unet}
