#!/usr/bin/env python3
"""Whether training under torch.compile(backend="heddle") follows eager: 300 steps of a GPT-2 and of a ResNet-18.

usage: torch_training.py [--models gpt2 resnet18] [--device cpu] [--steps 300] [--size tiny]

The GPT-2 learns the bytes of Python's standard library, the ResNet-18 scikit-learn's digits. Eager trains four times, from
weights that differ by roundings: how far its losses (means of 20 steps) lie apart is its noise. Losses of the compiled model
may be as far from the middle of these as twice that. Then two compiled runs with torch.use_deterministic_algorithms(True)
must give the same bits. Ends with 1 if one of these fails. --size full takes GPT-2 small and the usual width of ResNet-18.
"""
import argparse
import pathlib
import sys

import torch
from torch.nn import functional as F

from heddle.torch.backend import fresh_backend, observed

WINDOW = 20


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in self.qkv(self.before(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, layers: int, width: int, heads: int, length: int, vocabulary: int = 256):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(length, width)
        self.blocks, self.norm = torch.nn.ModuleList(Block(width, heads) for _ in range(layers)), torch.nn.LayerNorm(width)
        for one in self.parameters():
            if one.dim() > 1:
                torch.nn.init.normal_(one, std=0.02)

    def forward(self, tokens, wanted):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy((self.norm(x) @ self.tokens.weight.t()).flatten(0, 1), wanted.flatten())


class Residual(torch.nn.Module):
    def __init__(self, before: int, width: int, stride: int):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(before, width, 3, stride, 1, bias=False), torch.nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(width) for _ in range(2))
        self.skip = torch.nn.Sequential() if stride == 1 and before == width else torch.nn.Sequential(
            torch.nn.Conv2d(before, width, 1, stride, bias=False), torch.nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(self.norms[1](self.second(F.relu(self.norms[0](self.first(x))))) + self.skip(x))


class ResNet18(torch.nn.Module):
    def __init__(self, width: int, classes: int = 10):
        super().__init__()
        self.stem, self.norm = torch.nn.Conv2d(1, width, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(width)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks = torch.nn.Sequential(*(Residual(widths[i] if j == 0 else widths[i + 1], widths[i + 1], 2 if i > 0 and j == 0 else 1)
                                            for i in range(4) for j in range(2)))
        self.out = torch.nn.Linear(8 * width, classes)

    def forward(self, images, wanted):
        x = self.blocks(F.relu(self.norm(self.stem(images))))
        return F.cross_entropy(self.out(x.mean((2, 3))), wanted)


def made(name: str, size: str, device: str):
    """A module that returns its loss, and a function from the number of a step to a batch."""
    torch.manual_seed(0)
    if name == "gpt2":
        length, rows = (64, 8) if size == "tiny" else (512, 8)
        module = Gpt2(4, 128, 4, length) if size == "tiny" else Gpt2(12, 768, 12, length)
        folder = pathlib.Path(argparse.__file__).parent
        bytes_of_text = bytearray(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))[:2_000_000])
        text = torch.frombuffer(bytes_of_text, dtype=torch.uint8).long()

        def batch(step: int):
            starts = torch.randint(len(text) - length - 1, (rows,), generator=torch.Generator().manual_seed(step))
            taken = torch.stack([text[start:start + length + 1] for start in starts.tolist()]).to(device)
            return taken[:, :-1], taken[:, 1:]
        return module.to(device), batch
    from sklearn.datasets import load_digits

    images, labels = (torch.from_numpy(one) for one in load_digits(return_X_y=True))
    images = (images.float().view(-1, 1, 8, 8) / 8 - 1).to(device)
    labels = labels.long().to(device)

    def batch_of_images(step: int):
        rows = torch.randint(len(images), (32,), generator=torch.Generator().manual_seed(step)).to(device)
        return F.interpolate(images[rows], scale_factor=2), labels[rows]
    return ResNet18(16 if size == "tiny" else 64).to(device), batch_of_images


def train(name: str, options: argparse.Namespace, compiled: bool, disturbed_by: int = 0):
    """Losses by step, the trained module, and how many compiled parts and operators of PyTorch there were."""
    module, batch = made(name, options.size, options.device)
    if disturbed_by:
        draw = torch.Generator().manual_seed(disturbed_by)
        with torch.no_grad():
            for one in module.parameters():
                one.mul_(1 + 1e-7 * torch.randn(one.shape, generator=draw).to(one))
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-3)
    torch._dynamo.reset()
    losses = []
    with observed() as graphs:
        run = torch.compile(module, backend=fresh_backend()) if compiled else module
        for step in range(options.steps):
            optimiser.zero_grad()
            loss = run(*batch(step))
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
    assert not compiled or {graph.kind for graph in graphs} == {"forward", "backward"}
    return torch.stack(losses).cpu(), module, sum(len(graph.parts) for graph in graphs), sum(len(graph.division.fallbacks) for graph in graphs)


def check(name: str, options: argparse.Namespace) -> bool:
    eager = torch.stack([smooth(train(name, options, False, seed)[0]) for seed in range(4)])
    losses, _, parts, fallbacks = train(name, options, True)
    low, high = eager.min(0).values, eager.max(0).values
    noise = (high - low).max().item()
    apart = (smooth(losses) - (low + high) / 2).abs().max().item()
    follows = apart <= 2 * noise + 1e-5 * eager.max().item()
    torch.use_deterministic_algorithms(True)
    first, second = (train(name, options, True)[:2] for _ in range(2))
    torch.use_deterministic_algorithms(False)
    is_same = torch.equal(first[0], second[0]) and all(torch.equal(a, b) for a, b in zip(first[1].parameters(), second[1].parameters()))
    print(f"{name}: {options.steps} steps in {parts} parts, {fallbacks} operators of PyTorch; "
          f"loss {losses[0]:.3f} -> {smooth(losses)[-1]:.3f}, eager's {eager[:, -1].mean():.3f}; "
          f"at most {apart:.1e} from eager's, whose noise is {noise:.1e}; two deterministic runs are {'the same' if is_same else 'DIFFERENT'}", flush=True)
    return follows and is_same


def smooth(losses: torch.Tensor) -> torch.Tensor:
    return losses[:len(losses) // WINDOW * WINDOW].view(-1, WINDOW).double().mean(1)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=["gpt2", "resnet18"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--size", choices=["tiny", "full"], default="tiny")
    options = parser.parse_args()
    return 0 if all([check(name, options) for name in options.models]) else 1


if __name__ == "__main__":
    sys.exit(main())
