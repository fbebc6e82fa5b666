"""Masks of attention in many forms: mask_forms.py HEDDLE [plan|random] [NAME...].

plan: each form becomes one kernel on an H200 that leaves out as many tiles of keys as `heddle kernel attention` of the same
shape, at 512, 2,048 and 8,192 keys. random: masks composed at random of comparisons, logic, selections, casts, arithmetic and
changes of layout equal the float64 reference on the CPU and on the GPU that is there, or the emulator; HEDDLE_MASKS says how
many (6), HEDDLE_SEED which."""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto

from attention_forms import Graph

HEADS, DEPTH, WINDOW, PREFIX = 16, 128, 256, 256
LOWEST = float(np.finfo(np.float16).min)
FORMS = {}


class MaskGraph(Graph):
    """An attention of f16 with `keys` queries and keys."""

    def __init__(self, keys, dtype=np.float16, heads=HEADS, depth=DEPTH):
        super().__init__(22)
        self.keys, self.dtype, self.heads, self.depth = keys, dtype, heads, depth

    def i(self, values):
        return self.constant(values, np.int64)

    def f(self, values):
        return self.constant(values, self.dtype)

    def places(self):
        """Positions of queries as a column, of keys as a row."""
        line = self.node("Range", self.i(0), self.i(self.keys), self.i(1))
        return self.node("Unsqueeze", line, self.i([1])), self.node("Unsqueeze", line, self.i([0]))

    def ones(self, *shape, dtype=np.float16):
        return self.node("Expand", self.constant(1, dtype), self.i(shape or [self.keys, self.keys]))

    def products(self, suffix=""):
        kind = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
        q, k, v = (self.input(x + suffix, [1, self.heads, self.keys, self.depth], kind) for x in "qkv")
        root = self.f(self.depth ** -0.25)
        keys = self.node("Mul", self.node("Transpose", k, perm=[0, 1, 3, 2]), root)
        return self.node("MatMul", self.node("Mul", q, root), keys), v

    def select(self, seen, masked=-np.inf, suffix=""):
        scores, v = self.products(suffix)
        return self.mix(self.node("Where", seen, scores, self.f(masked)), v)

    def add(self, mask, suffix=""):
        scores, v = self.products(suffix)
        return self.mix(self.node("Add", scores, mask), v)


def form(build):
    FORMS[build.__name__] = build
    return build


@form
def causal_of_pytorch(g):
    outside = g.node("Equal", g.node("Trilu", g.ones(), upper=0), g.f(0))
    return g.add(g.node("Where", outside, g.f(-np.inf), g.f(0)))


@form
def causal_by_ranges(g):
    row, key = g.places()
    return g.select(g.node("LessOrEqual", key, row))


@form
def causal_by_difference(g):
    row, key = g.places()
    return g.select(g.node("GreaterOrEqual", g.node("Sub", row, key), g.i(0)), LOWEST)


@form
def causal_by_product(g):
    row, key = g.places()
    seen = g.node("Cast", g.node("Not", g.node("Greater", key, row)), to=TensorProto.FLOAT16)
    return g.add(g.node("Mul", g.node("Sub", g.f(1), seen), g.f(-1e4)))


@form
def causal_by_running_sum(g):
    places = g.node("Sub", g.node("CumSum", g.ones(g.keys, dtype=np.int64), g.constant(0, np.int32)), g.i(1))
    row, key = (g.node("Unsqueeze", places, g.i([axis])) for axis in (1, 0))
    return g.select(g.node("LessOrEqual", key, row))


@form
def causal_slice(g):
    side = g.keys + 192
    mask = g.node("Trilu", g.ones(1, 1, side, side, dtype=bool), upper=0)
    return g.select(g.node("Slice", mask, g.i([0, 0]), g.i([g.keys, g.keys]), g.i([2, 3])), -1e4)


@form
def causal_by_exclusive_or(g):
    row, key = g.places()
    return g.select(g.node("Not", g.node("Xor", g.node("LessOrEqual", row, key), g.node("Equal", row, key))))


@form
def causal_of_lowest_values(g):
    mask = g.node("Expand", g.f(LOWEST), g.i([g.keys, g.keys]))
    return g.add(g.node("Unsqueeze", g.node("Trilu", mask, g.i(1), upper=1), g.i([0, 1])))


@form
def causal_transposed(g):
    mask = g.node("Transpose", g.node("Trilu", g.ones(dtype=np.float32), upper=1), perm=[1, 0])
    return g.select(g.node("Cast", mask, to=TensorProto.BOOL))


@form
def causal_expanded(g):
    row, key = g.places()
    return g.select(g.node("Expand", g.node("LessOrEqual", key, row), g.i([1, g.heads, g.keys, g.keys])))


@form
def causal_as_integers(g):
    row, key = g.places()
    seen = g.node("Cast", g.node("LessOrEqual", key, row), to=TensorProto.INT32)
    return g.select(g.node("Equal", seen, g.constant(1, np.int32)))


@form
def causal_reshaped(g):
    line = g.node("Range", g.i(0), g.i(g.keys * g.keys), g.i(1))
    seen = g.node("GreaterOrEqual", g.node("Div", line, g.i(g.keys)), g.node("Mod", line, g.i(g.keys)))
    return g.select(g.node("Reshape", seen, g.i([g.keys, g.keys])))


@form
def causal_constant(g):
    return g.select(g.constant(np.tril(np.ones((g.keys, g.keys), bool)), bool))


@form
def window(g):
    row, key = g.places()
    near = g.node("Less", g.node("Sub", row, key), g.i(WINDOW))
    return g.select(g.node("And", g.node("LessOrEqual", key, row), near))


@form
def window_of_triangles(g):
    triangles = (g.node("Trilu", g.ones(), g.i(k), upper=0) for k in (0, -WINDOW))
    return g.select(g.node("Cast", g.node("Sub", *triangles), to=TensorProto.BOOL), -1e4)


@form
def window_of_selections(g):
    row, key = g.places()
    far = g.node("LessOrEqual", key, g.node("Sub", row, g.i(WINDOW)))
    past = g.node("Where", far, g.f(-np.inf), g.f(0))
    return g.add(g.node("Where", g.node("Greater", key, row), g.f(-np.inf), past))


@form
def window_constant(g):
    ones = np.ones((g.keys, g.keys), bool)
    return g.add(g.constant(np.where(np.tril(ones) & ~np.tril(ones, -WINDOW), 0, -np.inf)[None, None], np.float16))


@form
def prefix(g):
    row, key = g.places()
    return g.select(g.node("Or", g.node("LessOrEqual", key, row), g.node("Less", key, g.i(PREFIX))))


@form
def prefix_by_maximum(g):
    row, key = g.places()
    return g.select(g.node("GreaterOrEqual", g.node("Max", row, g.i(PREFIX - 1)), key), LOWEST)


@form
def prefix_by_selection(g):
    row, key = g.places()
    end = g.node("Where", g.node("Less", row, g.i(PREFIX)), g.i(PREFIX - 1), row)
    return g.select(g.node("Not", g.node("Greater", key, end)))


def heddle(command, arguments, **environment):
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)


def tiles_of(text):
    """How many tiles of keys a reason says are left out, of how many."""
    found = re.search(r"(\d+) of (\d+) tiles of keys left out", text)
    return found.groups() if found else None


def planned(command, name, keys, folder):
    graph = MaskGraph(keys)
    path = pathlib.Path(folder) / f"{name}-{keys}.onnx"
    graph.save(path, FORMS[name](graph))
    explained = heddle(command, ["explain", path, "--target", "cuda", "--json"], HEDDLE_CUDA_DRIVER="/nonexistent")
    path.unlink()
    if explained.returncode != 0:
        return explained.stderr.strip()
    groups = json.loads(explained.stdout)["groups"]
    kernels = [kernel["label"] for group in groups for kernel in group["kernels"]]
    if len(kernels) != 1 or not kernels[0].startswith("attention "):
        return f"its kernels are {', '.join(kernels)}"
    return tiles_of(" ".join(note for group in groups for note in group["notes"]))


def plan(command, names):
    problems = 0
    options = {"causal": ["--causal"], "window": ["--window", WINDOW], "prefix": ["--prefix", PREFIX]}
    for keys in (512, 2048, 8192):
        wanted = {}
        for kind, mask in options.items():
            shape = ["--m", keys, "--heads", HEADS, "--depth", DEPTH, "--predict", "--candidates", 1]
            wanted[kind] = tiles_of(heddle(command, ["kernel", "attention", *shape, *mask]).stdout)
        for name in names or FORMS:
            with tempfile.TemporaryDirectory() as folder:
                got = planned(command, name, keys, folder)
            want = wanted[name.split("_")[0]]
            good = want is not None and got == want
            print(f"{name:26} {keys:5} keys: {got[0] + ' of ' + got[1] + ' tiles left out' if good else f'{got}, wanted {want}'}")
            problems += not good
    return problems


class RandomMask:
    """A boolean of positions, one composition of operators in many."""

    def __init__(self, g, draw):
        self.g, self.draw = g, draw
        self.row, self.key = g.places()

    def number(self, depth):
        g, draw = self.g, self.draw
        kind = draw.randrange(9) if depth > 0 else draw.randrange(3)
        if kind < 3:
            return (self.row, self.key, g.i(draw.randrange(g.keys)))[kind]
        a = self.number(depth - 1)
        if kind < 6:
            return g.node(draw.choice(["Add", "Sub", "Max", "Min"]), a, self.number(depth - 1))
        if kind == 6:
            return g.node("Abs", a)
        if kind == 7:
            return g.node("Div", g.node("Abs", a), g.i(draw.choice([2, 7, 16, 32])))
        return g.node("Where", self.truth(depth - 1), a, self.number(depth - 1))

    def truth(self, depth):
        g, draw = self.g, self.draw
        kind = draw.randrange(10) if depth > 0 else 0
        if kind < 4:
            comparison = draw.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
            return g.node(comparison, self.number(depth - 1), self.number(depth - 1))
        if kind < 6:
            return g.node(draw.choice(["And", "Or", "Xor"]), self.truth(depth - 1), self.truth(depth - 1))
        if kind == 6:
            return g.node("Not", self.truth(depth - 1))
        if kind == 7:
            number = g.node("Cast", self.truth(depth - 1), to=draw.choice([TensorProto.FLOAT, TensorProto.INT32, TensorProto.FLOAT16]))
            return g.node("Cast", number, to=TensorProto.BOOL)
        if kind == 8:
            square = g.node("Expand", self.truth(depth - 1), g.i([g.keys, g.keys]))
            return g.node("Transpose", square, perm=[1, 0])
        square = g.node("Cast", g.node("Expand", self.truth(depth - 1), g.i([g.keys, g.keys])), to=TensorProto.FLOAT)
        return g.node("Cast", g.node("Trilu", square, g.i(draw.randrange(-9, 9)), upper=draw.randrange(2)), to=TensorProto.BOOL)

    def attention(self, suffix):
        g, draw = self.g, self.draw
        seen = self.truth(3)
        if draw.randrange(4):  # else some rows may see nothing
            seen = g.node("Or", seen, g.node("Equal", self.row, self.key))
        low = draw.choice([-np.inf, -np.inf, -1e4, LOWEST])
        if draw.randrange(2):
            return g.select(seen, low, suffix)
        return g.add(g.node("Where", seen, g.f(0), g.f(low)), suffix)


def random_masks(command):
    """Several in a model: most of the time is that of the compilers."""
    count, seed = int(os.environ.get("HEDDLE_MASKS", 6)), int(os.environ.get("HEDDLE_SEED", 1))
    a_model, problems = 6, 0
    for first in range(0, count, a_model):
        draw = random.Random(seed * 1000003 + first)
        for target, dtype in ("cpu", np.float32), ("cuda", np.float16):
            state = draw.getstate()
            graph = MaskGraph(draw.choice([33, 80, 150, 260]), dtype, heads=2, depth=32)
            results = [RandomMask(graph, draw).attention(str(i)) for i in range(min(a_model, count - first))]
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "masks.onnx"
                graph.save(path, *results)
                verified = heddle(command, ["verify", path, "--target", target])
            good = verified.returncode == 0
            print(f"masks {first} to {first + len(results) - 1} on {target}: {'ok' if good else verified.stdout + verified.stderr}", flush=True)
            problems += not good
            if target == "cpu":
                draw.setstate(state)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("what", choices=["plan", "random"], nargs="?")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    problems = 0
    if arguments.what != "random":
        problems += plan(arguments.heddle, arguments.names)
    if arguments.what != "plan":
        problems += random_masks(arguments.heddle)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
