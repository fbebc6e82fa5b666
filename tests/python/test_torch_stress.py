"""torch.compile(backend="heddle") on random modules, over many modules, loads and calls, and after interrupts and failures.

HEDDLE_ALL_INSTANCES=1 takes 300 modules, and counts at which a leak of a kilobyte a time would show.
"""
import copy
import ctypes
import gc
import os
import random
import signal
import tempfile
import threading
import time
import unittest

import test_torch_backend  # it ends the program where there is no torch
import torch
from test_torch_backend import REFERENCE
from torch.nn import functional as F

import heddle.torch

ALL = os.environ.get("HEDDLE_ALL_INSTANCES") == "1"


class Drawn(torch.nn.Module):
    """Layers on [batch, channels, height, width] or on [batch, length, width], joined by sums and concatenations."""

    def __init__(self, draw):
        super().__init__()
        self.is_image = draw.random() < 0.5
        self.width = draw.choice([3, 4, 6, 8])
        self.side = draw.randint(5, 9)
        self.layers, self.joins = torch.nn.ModuleList(), []
        for _ in range(draw.randint(2, 6)):
            self.layers.append(self.layer(draw))
            self.joins.append(draw.choice(["no", "no", "add", "gate", "cat"]))

    def layer(self, draw):
        c = self.width
        if self.is_image:
            return draw.choice([
                lambda: torch.nn.Conv2d(c, c, 3, padding=1, bias=draw.random() < 0.5), lambda: torch.nn.Conv2d(c, c, 1),
                lambda: torch.nn.Conv2d(c, c, 3, padding=1, groups=c), lambda: torch.nn.BatchNorm2d(c), lambda: torch.nn.GroupNorm(1, c),
                lambda: torch.nn.AvgPool2d(3, 1, 1), lambda: torch.nn.MaxPool2d(3, 1, 1), torch.nn.SiLU, torch.nn.Hardswish, torch.nn.ReLU])()
        return draw.choice([
            lambda: torch.nn.Linear(c, c), lambda: torch.nn.LayerNorm(c), lambda: torch.nn.Softmax(-1), torch.nn.GELU, torch.nn.Tanh, torch.nn.Softplus,
            lambda: torch.nn.Sequential(torch.nn.Linear(c, 2 * c), torch.nn.GLU()), lambda: Attention(c), lambda: torch.nn.PReLU()])()

    def forward(self, x):
        for layer, join in zip(self.layers, self.joins):
            y = layer(x)
            if join == "add":
                y = x + y
            elif join == "gate":
                y = x * torch.sigmoid(y)
            elif join == "cat":
                y = torch.cat([x, y], 1).unflatten(1, (2, -1)).mean(1)
            x = y
        return x

    def example(self, rows):
        return torch.randn(rows, *((self.width, self.side, self.side) if self.is_image else (self.side, self.width)))


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class RandomModules(test_torch_backend.Backend):
    def results(self, run, module, x):
        x = x.detach().clone().requires_grad_()
        y = run(x)
        tangent = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y)
        return [y, *torch.autograd.grad(y, [x, *module.parameters()], tangent)]

    def test_batches_that_change_agree_with_float64(self):
        for seed in range(300 if ALL else 3):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            torch._dynamo.reset()
            module = Drawn(draw)
            compiled = self.compiled(copy.deepcopy(module), {} if seed % 20 == 0 and ALL else REFERENCE, dynamic=True)
            with self.graphs() as graphs:
                for rows in draw.sample(range(2, 9), 3):
                    with self.subTest(seed=seed, rows=rows):
                        x = module.example(rows)
                        wide, narrow = copy.deepcopy(module).double(), copy.deepcopy(module)
                        got = self.results(compiled, compiled, x)
                        for mine, eager, exact in zip(got, self.results(narrow, narrow, x), self.results(wide, wide, x.double()), strict=True):
                            error, theirs = ((one - exact).abs().max().item() for one in (mine, eager))
                            self.assertLessEqual(error, 2 * theirs + 1e-5 * max(exact.abs().max().item(), 1))
            self.assertLessEqual(len(graphs), 4, f"seed {seed}")  # no graph for each batch
            self.assertTrue(all(graph.parts for graph in graphs) and graphs)


def resident_bytes():
    """Without free memory between blocks in use, which differs by some 50 KB for each compiled module."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Memory(test_torch_backend.Backend):
    def growth(self, work, count):
        """Bytes for each time from the end of the first third on; `work(i)` for each i < count."""
        for i in range(count // 3):
            work(i)
        before = resident_bytes()
        for i in range(count // 3, count):
            work(i)
        return (resident_bytes() - before) / (count - count // 3)

    def traced_modules(self):
        gc.collect()
        return sum(issubclass(type(one), torch.fx.GraphModule) for one in gc.get_objects())

    def test_modules_that_are_compiled_and_dropped(self):
        from heddle.torch.graph import CompiledGraph

        def work(i, **words):
            torch._dynamo.reset()
            module, x = torch.nn.Sequential(torch.nn.Linear(64, 64 + i % 5), torch.nn.Tanh()), torch.randn(4, 64, requires_grad=True)
            words = words or {"backend": heddle.torch.heddle_backend, "options": {} if ALL else REFERENCE}
            torch.compile(module, **words)(x).sum().backward()
            with torch.no_grad():
                torch.compile(module, **words)(x)

        def theirs():
            return self.growth(lambda i: work(i, backend="aot_eager"), 100) if ALL else 0
        before, mine = theirs(), self.growth(work, 200 if ALL else 9)
        self.assertLessEqual(sum(type(one) is CompiledGraph for one in gc.get_objects()), 6)
        traced = self.traced_modules()
        for i in range(3):
            work(i)
        self.assertLessEqual(self.traced_modules(), traced)
        if ALL:  # PyTorch itself keeps some 300 KB of each
            self.assertLess(mine - (before + theirs()) / 2, 1 << 18)

    def test_plans_that_are_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            module, x = torch.nn.Linear(64, 64), torch.randn(4, 64)
            heddle.torch.export(module, (x,), f"{folder}/m.plan")
            grown = self.growth(lambda _: heddle.compile(f"{folder}/m.plan").run({"input": x.numpy()}), 2000 if ALL else 60)
        self.assertLess(grown, 4096 if ALL else 1 << 16)

    def test_calls(self):
        module, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()), torch.randn(4, 64)
        compiled = self.compiled(module, {})

        def work(i):
            with torch.set_grad_enabled(i % 2 == 0):
                y = compiled(x)
            if i % 2 == 0:
                y.sum().backward()
        self.assertLess(self.growth(work, 10000 if ALL else 300), 512 if ALL else 8192)


class Failures(test_torch_backend.Backend):
    def test_interrupted_steps(self):
        module, x = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)), torch.randn(512, 256)
        compiled = self.compiled(module, {})
        want = torch.autograd.grad(module(x).square().mean(), list(module.parameters()))

        def step():
            return torch.autograd.grad(compiled(x).square().mean(), list(module.parameters()))
        step()
        for i in range(50 if ALL else 2):
            timer = threading.Timer(0.003 * (i % 10) + 0.001, os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                end = time.monotonic() + 60
                while time.monotonic() < end:
                    step()
            timer.join()
            for a, b in zip(want, step()):
                torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-5)

    def test_memory_that_there_is_not(self):
        """For an output, and for what a graph keeps between its kernels."""
        for function in (lambda x: x[:, None] * x[None, :], lambda x: torch.cumsum(torch.cumsum(x[:, None] * x[None, :], 0), 1).sum()):
            torch._dynamo.reset()
            compiled = self.compiled(function, {}, dynamic=True)
            for length in (7, 1 << 22, 9):
                x = torch.rand(length)
                if length < 100:
                    torch.testing.assert_close(compiled(x), function(x))
                else:
                    with self.assertRaisesRegex((RuntimeError, MemoryError), "(?i)memory"):
                        compiled(x)


if __name__ == "__main__":
    unittest.main()
