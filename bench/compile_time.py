"""How compile time grows with a graph: compile_time.py HEDDLE [--target cpu|cuda] [--only NAME] [--code].

Prints a row for each graph: what was fused into how many kernels, and the user time of `heddle explain`, which schedules and writes
all kernels. --code adds the user time of a compilation to machine code with an empty cache."""

import argparse
import os
import pathlib
import random
import subprocess
import tempfile

CHEAP = ["add", "mul", "sub", "max"]


class Text:
    """A graph as textual IR."""

    def __init__(self, name, inputs):
        self.lines = [f"graph {name}({', '.join(f'%{n}: {t}' for n, t in inputs)}) {{"]
        self.count = 0

    def op(self, name, *inputs, attributes=""):
        self.lines.append(f"  %{self.count} = {name}({', '.join(f'%{i}' for i in inputs)}){attributes}")
        self.count += 1
        return self.count - 1

    def end(self, *outputs):
        self.lines.append("  return " + ", ".join(f'"y{i}" = %{v}' for i, v in enumerate(outputs)))
        return "\n".join(self.lines) + "\n}\n"


def chain(nodes):
    """Elementwise operators in a row, every other a tanh."""
    t = Text("chain", [("x", "f32[64,256]"), ("y", "f32[64,256]")])
    v = "x"
    for i in range(nodes // 2):
        v = t.op("tanh", t.op(CHEAP[i % len(CHEAP)], v, "y"))
    return t.end(v)


def reused(nodes, seed=1, window=20):
    """Elementwise operators that combine the last value with one of the last twenty; every other is a tanh."""
    rng = random.Random(seed)
    t = Text("reused", [("x", "f32[64,256]"), ("y", "f32[64,256]")])
    values = ["x", "y"]
    for i in range(nodes):
        if i % 2 == 0:
            values.append(t.op(rng.choice(CHEAP), values[-1], rng.choice(values[-window:])))
        else:
            values.append(t.op("tanh", values[-1]))
    return t.end(values[-1])


def layers(nodes):
    """Blocks of a transformer without heads: two products with a softmax between, a norm, a gated pair of products."""
    size, length = 64, 32
    weights = ["wq", "wk", "wv", "wo", "w1", "w2"]
    t = Text("layers", [("x", f"f32[{length},{size}]")] + [(w, f"f32[{size},{size}]") for w in weights])
    dot = ' {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}'
    dot_nt = ' {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}'

    def rows(kind, v, width):
        r = t.op("reduce", v, attributes=f' {{kind = "{kind}", dims = [1]}}')
        return t.op("broadcast", r, attributes=f" {{shape = [{length}, {width}], dims = [0]}}")

    inverse = t.op("constant", attributes=" {value = f32[]{0.015625}}")
    inverse = t.op("broadcast", inverse, attributes=f" {{shape = [{length}, {size}], dims = []}}")

    def mean(v):
        return t.op("mul", rows("sum", v, size), inverse)

    def softmax(v, width):
        e = t.op("exp", t.op("sub", v, rows("max", v, width)))
        return t.op("div", e, rows("sum", e, width))

    def norm(v):
        d = t.op("sub", v, mean(v))
        return t.op("div", d, t.op("sqrt", mean(t.op("mul", d, d))))

    v = "x"
    while t.count < nodes:
        n = norm(v)
        q, k, u = (t.op("dot", n, w, attributes=dot) for w in ("wq", "wk", "wv"))
        p = softmax(t.op("dot", q, k, attributes=dot_nt), length)
        v = t.op("add", v, t.op("dot", t.op("dot", p, u, attributes=dot), "wo", attributes=dot))
        h = t.op("tanh", t.op("dot", norm(v), "w1", attributes=dot))
        v = t.op("add", v, t.op("dot", h, "w2", attributes=dot))
    return t.end(v)


def lstm(cells):
    """LSTM cells written out, one after the other along a sequence."""
    batch, size = 8, 64
    inputs = [("x", f"f32[{cells},{batch},{size}]"), ("h", f"f32[{batch},{size}]"), ("c", f"f32[{batch},{size}]")]
    t = Text("lstm", inputs + [("w", f"f32[{size},{4 * size}]"), ("r", f"f32[{size},{4 * size}]"), ("b", f"f32[{4 * size}]")])
    dot = ' {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}'
    one = t.op("broadcast", t.op("constant", attributes=" {value = f32[]{1}}"), attributes=f" {{shape = [{batch}, {size}], dims = []}}")

    def sigmoid(v):
        return t.op("div", one, t.op("add", one, t.op("exp", t.op("neg", v))))

    h, c = "h", "c"
    for i in range(cells):
        x = t.op("slice", "x", attributes=f" {{starts = [{i}, 0, 0], limits = [{i + 1}, {batch}, {size}], strides = [1, 1, 1]}}")
        x = t.op("reshape", x, attributes=f" {{shape = [{batch}, {size}]}}")
        b = t.op("broadcast", "b", attributes=f" {{shape = [{batch}, {4 * size}], dims = [1]}}")
        g = t.op("add", t.op("add", t.op("dot", x, "w", attributes=dot), t.op("dot", h, "r", attributes=dot)), b)
        parts = []
        for k in range(4):
            parts.append(t.op("slice", g, attributes=f" {{starts = [0, {k * size}], limits = [{batch}, {(k + 1) * size}], strides = [1, 1]}}"))
        c = t.op("add", t.op("mul", sigmoid(parts[1]), c), t.op("mul", sigmoid(parts[0]), t.op("tanh", parts[3])))
        h = t.op("mul", sigmoid(parts[2]), t.op("tanh", c))
    return t.end(h, c)


GRAPHS = {
    "chain 1000": lambda: chain(1000),
    "chain 10000": lambda: chain(10000),
    "reused 400": lambda: reused(400),
    "reused 1000": lambda: reused(1000),
    "reused 10000": lambda: reused(10000),
    "layers 1000": lambda: layers(1000),
    "layers 10000": lambda: layers(10000),
    "lstm 200": lambda: lstm(200),
}


def user_seconds(*command, **environment):
    """The output of a command and the user time that it and its children took."""
    before = os.times().children_user
    done = subprocess.run(command, env=dict(os.environ) | environment, capture_output=True, text=True, check=True)
    return done.stdout, os.times().children_user - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--code", action="store_true")
    arguments = parser.parse_args()
    for name, make in GRAPHS.items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.hir"
            model.write_text(make())
            output, seconds = user_seconds(arguments.heddle, "explain", model, "--target", arguments.target)
            fused = next(line for line in output.splitlines() if line.startswith("fused"))
            row = f"{name:14} {seconds:7.2f} s  {fused.split(';')[0].removeprefix('fused').strip()}"
            if arguments.code:
                command = [arguments.heddle, "compile", model, "--target", arguments.target, "-o", f"{folder}/plan"]
                row += f"  {user_seconds(*command, HEDDLE_CACHE_DIR=folder + '/cache')[1]:7.2f} s with machine code"
            print(row, flush=True)


if __name__ == "__main__":
    main()
