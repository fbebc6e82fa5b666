#!/usr/bin/env python3
"""The stitch suite as textual IR: writes CASE.hir (f32) and f16/CASE.hir beside this file.

Each case is a memory-bound region as models have them, written in primitives. In f16 the tensors in memory are f16 and
the arithmetic is f32."""

import math
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent


class Value:
    """A value of the graph; shapes broadcast as in numpy, with explicit nodes."""

    def __init__(self, graph, name, shape):
        self.graph, self.name, self.shape = graph, name, tuple(shape)

    def __add__(self, other):
        return self.graph.binary("add", self, other)

    def __sub__(self, other):
        return self.graph.binary("sub", self, other)

    def __mul__(self, other):
        return self.graph.binary("mul", self, other)

    def __truediv__(self, other):
        return self.graph.binary("div", self, other)

    def __pow__(self, other):
        return self.graph.binary("pow", self, other)

    def unary(self, op):
        return self.graph.node(op, [self], {}, self.shape)

    def reshape(self, *shape):
        return self.graph.node("reshape", [self], {"shape": list(shape)}, shape)

    def reduce(self, kind, dim, keep=False):
        rest = [extent for d, extent in enumerate(self.shape) if d != dim]
        result = self.graph.node("reduce", [self], {"kind": kind, "dims": [dim]}, rest)
        return result.reshape(*self.shape[:dim], 1, *self.shape[dim + 1 :]) if keep else result

    def mean(self, dim, keep=False):
        return self.reduce("sum", dim, keep) * (1 / self.shape[dim])


class Graph:
    def __init__(self, dtype):
        self.dtype, self.parameters, self.lines, self.outputs = dtype, [], [], []
        self.output_shapes = []
        self.count, self.constants = 0, {}

    def fresh(self):
        self.count += 1
        return f"%{self.count - 1}"

    def parameter(self, name, *shape):
        extents = ",".join(map(str, shape))
        self.parameters.append(f"%{name}: {self.dtype}[{extents}]")
        value = Value(self, f"%{name}", shape)
        return value if self.dtype == "f32" else self.node("cast", [value], {"to": "f32"}, shape)

    def node(self, op, inputs, attributes, shape):
        name = self.fresh()
        shown = ", ".join(f'{k} = "{v}"' if k == "kind" else f"{k} = {v}" for k, v in attributes.items())
        operands = ", ".join(value.name for value in inputs)
        self.lines.append(f"  {name} = {op}({operands})" + (f" {{{shown}}}" if shown else ""))
        return Value(self, name, shape)

    def constant(self, number):
        if number not in self.constants:
            name = self.fresh()
            self.lines.append(f"  {name} = constant {{value = f32[]{{{float(number)!r}}}}}")
            self.constants[number] = Value(self, name, ())
        return self.constants[number]

    def broadcast(self, value, shape):
        if value.shape == tuple(shape):
            return value
        first = len(shape) - len(value.shape)
        dims = list(range(first, len(shape)))
        return self.node("broadcast", [value], {"shape": list(shape), "dims": dims}, shape)

    def binary(self, op, a, b):
        a, b = (x if isinstance(x, Value) else self.constant(x) for x in (a, b))
        rank = max(len(a.shape), len(b.shape))
        padded = [(1,) * (rank - len(x.shape)) + x.shape for x in (a, b)]
        shape = [max(pair) for pair in zip(*padded)]
        return self.node(op, [self.broadcast(a, shape), self.broadcast(b, shape)], {}, shape)

    def concat(self, values, dim):
        shape = list(values[0].shape)
        shape[dim] = sum(value.shape[dim] for value in values)
        return self.node("concat", values, {"dim": dim}, shape)

    def output(self, name, value):
        if self.dtype != "f32":
            value = self.node("cast", [value], {"to": self.dtype}, value.shape)
        self.outputs.append(f'"{name}" = {value.name}')
        self.output_shapes.append(value.shape)

    def text(self, name):
        head = f"graph {name}({', '.join(self.parameters)}) {{"
        return "\n".join([head, *self.lines, f"  return {', '.join(self.outputs)}", "}"]) + "\n"


def sigmoid(x):
    return x.graph.binary("div", 1, x.unary("neg").unary("exp") + 1)


def layer_norm(x, gain, bias, eps=1e-5):
    last = len(x.shape) - 1
    centred = x - x.mean(last, keep=True)
    variance = (centred * centred).mean(last, keep=True)
    return centred * (variance + eps).unary("rsqrt") * gain + bias


def softmax(x):
    last = len(x.shape) - 1
    e = (x - x.reduce("max", last, keep=True)).unary("exp")
    return e / e.reduce("sum", last, keep=True)


def fig7(graph, rows, columns):
    """A row sum, a costly operation on the small tensor, its broadcast, and another row sum."""
    x, p, q = graph.parameter("x", rows, columns), graph.parameter("p", columns), graph.parameter("q", columns)
    a = x + p
    r = a.reduce("sum", 1, keep=True)
    m = a / r * (r.unary("abs") + 1) ** 1.7
    graph.output("m", m)
    graph.output("s", (m * q).reduce("sum", 1))


def layer_norms(graph, rows, columns):
    """Two layer norms with residuals and a GELU between them."""
    x, r = graph.parameter("x", rows, columns), graph.parameter("r", rows, columns)
    g, b = graph.parameter("g", columns), graph.parameter("b", columns)
    h = layer_norm(x + r, g, b)
    h = h * 0.5 * ((h * math.sqrt(0.5)).unary("erf") + 1)
    graph.output("y", layer_norm(h + x, g, b))


def layer_norm_gradient(graph, rows, columns):
    """Row and column reductions over the same data."""
    dy, x = graph.parameter("dy", rows, columns), graph.parameter("x", rows, columns)
    g = graph.parameter("g", columns)
    centred = x - x.mean(1, keep=True)
    rs = ((centred * centred).mean(1, keep=True) + 1e-5).unary("rsqrt")
    xh = centred * rs
    wdy = dy * g
    c1, c2 = (xh * wdy).mean(1, keep=True), wdy.mean(1, keep=True)
    graph.output("dx", (wdy - xh * c1 - c2) * rs)
    graph.output("dg", (dy * xh).reduce("sum", 0))
    graph.output("db", dy.reduce("sum", 0))


def batch_statistics(graph, rows, columns):
    """Column statistics, then every element normalised by them: a dependency across the whole device."""
    x = graph.parameter("x", rows, columns)
    g, b = graph.parameter("g", columns), graph.parameter("b", columns)
    centred = x - x.mean(0)
    scale = ((centred * centred).mean(0) + 1e-5).unary("rsqrt")
    graph.output("y", graph.binary("max", centred * scale * g + b, 0))


def masked_softmax(graph, batch, rows, columns):
    s, m = graph.parameter("s", batch, rows, columns), graph.parameter("m", batch, 1, columns)
    graph.output("y", softmax(s * 0.125 + m))


def group_norm_silu(graph, batch, channels, height, width):
    x = graph.parameter("x", batch, channels, height, width)
    g, b = graph.parameter("g", channels), graph.parameter("b", channels)
    y = x.reshape(batch, 32, channels // 32 * height * width)
    centred = y - y.mean(2, keep=True)
    y = centred * ((centred * centred).mean(2, keep=True) + 1e-5).unary("rsqrt")
    y = y.reshape(batch, channels, height, width) * g.reshape(channels, 1, 1) + b.reshape(channels, 1, 1)
    graph.output("y", y * sigmoid(y))


def dien_attention(graph, batch, steps, width):
    q, k = graph.parameter("q", batch, width), graph.parameter("k", batch, steps, width)
    v, m = graph.parameter("v", batch, steps, width), graph.parameter("m", batch, steps)
    score = sigmoid((q.reshape(batch, 1, width) * k).reduce("sum", 2)) * m
    z = (softmax(score).reshape(batch, steps, 1) * v).reduce("sum", 1)
    graph.output("z", z)
    graph.output("c", graph.concat([q, z, q * z], 1))


def adam(graph, tensors):
    """Independent updates, a quarter of them of matrices, the rest of vectors."""
    for i in range(tensors):
        shape = (768, 768) if i % 4 == 0 else (768,)
        p, g, m, v = (graph.parameter(f"{name}{i}", *shape) for name in "pgmv")
        m = m * 0.9 + g * 0.1
        v = v.unary("abs") * 0.999 + g * g * 0.001  # random second moments may be negative
        graph.output(f"p{i}_new", p - m * 1e-3 / (v.unary("sqrt") + 1e-8))
        graph.output(f"m{i}_new", m)
        graph.output(f"v{i}_new", v)


CASES = {
    "fig7_8192x1024": (fig7, 8192, 1024),
    "fig7_64x30000": (fig7, 64, 30000),
    "fig7_750000x32": (fig7, 750000, 32),
    "fig7_2x128": (fig7, 2, 128),
    "lnx2_4096x768": (layer_norms, 4096, 768),
    "lnbwd_16384x768": (layer_norm_gradient, 16384, 768),
    "bnstat_8192x256": (batch_statistics, 8192, 256),
    "bnstat_100352x64": (batch_statistics, 100352, 64),
    "softmax_mask_384x128x128": (masked_softmax, 384, 128, 128),
    "groupnorm_silu_2x320x64x64": (group_norm_silu, 2, 320, 64, 64),
    "dien_attn_256x100x36": (dien_attention, 256, 100, 36),
    "adam_64_tensors": (adam, 64),
}


def row_softmax(graph, rows, columns):
    graph.output("y", softmax(graph.parameter("x", rows, columns)))


def row_layer_norm(graph, rows, columns):
    x, g, b = graph.parameter("x", rows, columns), graph.parameter("g", columns), graph.parameter("b", columns)
    graph.output("y", layer_norm(x, g, b))


def row_sum(graph, rows, columns):
    graph.output("y", graph.parameter("x", rows, columns).reduce("sum", 1))


def column_sum(graph, rows, columns):
    graph.output("y", graph.parameter("x", rows, columns).reduce("sum", 0))


# Of any extents: "softmax:ROWSxCOLUMNS".
ROWS = {"softmax": row_softmax, "layer_norm": row_layer_norm, "row_sum": row_sum, "column_sum": column_sum}


def build_case(name, dtype):
    """A case of the suite by its name, or one of ROWS."""
    graph = Graph(dtype)
    if ":" in name:
        kind, extents = name.split(":")
        ROWS[kind](graph, *map(int, extents.split("x")))
    else:
        build, *extents = CASES[name]
        build(graph, *extents)
    return graph


def text_of(name, dtype):
    return build_case(name, dtype).text(name.replace(":", "_"))


def main():
    (FOLDER / "f16").mkdir(exist_ok=True)
    for name in CASES:
        (FOLDER / f"{name}.hir").write_text(text_of(name, "f32"))
        (FOLDER / "f16" / f"{name}.hir").write_text(text_of(name, "f16"))


if __name__ == "__main__":
    main()
