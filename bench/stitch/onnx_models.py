"""The stitch suite as ONNX models for ONNX Runtime: each case in the highest-level operators that express it, as an
exporter would write it, so that the rival's own fused kernels are used. Inputs and outputs are those of CASE.hir."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21


class Model:
    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs, self.count = [], [], [], [], 0

    def input(self, name, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, value, name, *shape):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def __call__(self, op, *operands, **attributes):
        self.count += 1
        names = [x if isinstance(x, str) else self.constant(x) for x in operands]
        self.nodes.append(helper.make_node(op, names, [f"t{self.count}"], **attributes))
        return f"t{self.count}"

    def over(self, op, x, dim, keep=1):
        """A reduction over one dimension."""
        return self(op, x, self.constant([dim], np.int64), keepdims=keep)

    def reshape(self, x, *shape):
        return self("Reshape", x, self.constant(shape, np.int64))

    def save(self, path):
        graph = helper.make_graph(self.nodes, path.stem, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, path)


def fig7(m, rows, columns):
    x, p, q = m.input("x", rows, columns), m.input("p", columns), m.input("q", columns)
    a = m("Add", x, p)
    r = m.over("ReduceSum", a, 1)
    w = m("Pow", m("Add", m("Abs", r), 1.0), 1.7)
    product = m("Mul", m("Div", a, r), w)
    m.output(product, "m", rows, columns)
    m.output(m.over("ReduceSum", m("Mul", product, q), 1, 0), "s", rows)


def layer_norms(m, rows, columns):
    x, r = m.input("x", rows, columns), m.input("r", rows, columns)
    g, b = m.input("g", columns), m.input("b", columns)
    h = m("Gelu", m("LayerNormalization", m("Add", x, r), g, b, axis=-1, epsilon=1e-5))
    m.output(m("LayerNormalization", m("Add", h, x), g, b, axis=-1, epsilon=1e-5), "y", rows, columns)


def layer_norm_gradient(m, rows, columns):
    dy, x, g = m.input("dy", rows, columns), m.input("x", rows, columns), m.input("g", columns)
    centred = m("Sub", x, m.over("ReduceMean", x, 1))
    variance = m.over("ReduceMean", m("Mul", centred, centred), 1)
    rs = m("Reciprocal", m("Sqrt", m("Add", variance, 1e-5)))
    xh, wdy = m("Mul", centred, rs), m("Mul", dy, g)
    c1, c2 = m.over("ReduceMean", m("Mul", xh, wdy), 1), m.over("ReduceMean", wdy, 1)
    m.output(m("Mul", m("Sub", m("Sub", wdy, m("Mul", xh, c1)), c2), rs), "dx", rows, columns)
    m.output(m.over("ReduceSum", m("Mul", dy, xh), 0, 0), "dg", columns)
    m.output(m.over("ReduceSum", dy, 0, 0), "db", columns)


def batch_statistics(m, rows, columns):
    x, g, b = m.input("x", rows, columns), m.input("g", columns), m.input("b", columns)
    centred = m("Sub", x, m.over("ReduceMean", x, 0))
    variance = m.over("ReduceMean", m("Mul", centred, centred), 0)
    scaled = m("Mul", centred, m("Reciprocal", m("Sqrt", m("Add", variance, 1e-5))))
    m.output(m("Relu", m("Add", m("Mul", scaled, g), b)), "y", rows, columns)


def masked_softmax(m, batch, rows, columns):
    s, mask = m.input("s", batch, rows, columns), m.input("m", batch, 1, columns)
    m.output(m("Softmax", m("Add", m("Mul", s, 0.125), mask), axis=-1), "y", batch, rows, columns)


def group_norm_silu(m, batch, channels, height, width):
    x, g, b = m.input("x", batch, channels, height, width), m.input("g", channels), m.input("b", channels)
    y = m("GroupNormalization", x, g, b, num_groups=32, epsilon=1e-5)
    m.output(m("Mul", y, m("Sigmoid", y)), "y", batch, channels, height, width)


def dien_attention(m, batch, steps, width):
    q, k = m.input("q", batch, width), m.input("k", batch, steps, width)
    v, mask = m.input("v", batch, steps, width), m.input("m", batch, steps)
    dots = m.over("ReduceSum", m("Mul", m.reshape(q, batch, 1, width), k), 2, 0)
    weights = m("Softmax", m("Mul", m("Sigmoid", dots), mask), axis=-1)
    z = m.over("ReduceSum", m("Mul", m.reshape(weights, batch, steps, 1), v), 1, 0)
    m.output(z, "z", batch, width)
    m.output(m("Concat", q, z, m("Mul", q, z), axis=-1), "c", batch, 3 * width)


def adam(m, tensors):
    # The square root of a negative random second moment is no number, which costs no more time than a number.
    for i in range(tensors):
        shape = (768, 768) if i % 4 == 0 else (768,)
        p, g, mean, square = (m.input(f"{name}{i}", *shape) for name in "pgmv")
        mean = m("Add", m("Mul", mean, 0.9), m("Mul", g, 0.1))
        square = m("Add", m("Mul", square, 0.999), m("Mul", m("Mul", g, g), 0.001))
        step = m("Div", m("Mul", mean, 1e-3), m("Add", m("Sqrt", square), 1e-8))
        m.output(m("Sub", p, step), f"p{i}_new", *shape)
        m.output(mean, f"m{i}_new", *shape)
        m.output(square, f"v{i}_new", *shape)


# By the function's name in make_cases.py.
BUILDERS = {
    f.__name__: f
    for f in (
        fig7,
        layer_norms,
        layer_norm_gradient,
        batch_statistics,
        masked_softmax,
        group_norm_silu,
        dien_attention,
        adam,
    )
}


def write(case, path):
    """`case`: (function of make_cases.py, extents...)."""
    build, *extents = case
    model = Model()
    BUILDERS[build.__name__](model, *extents)
    model.save(path)
