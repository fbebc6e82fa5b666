"""Small models for the tests of the Python package, and what NumPy makes of them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def _model(nodes, inputs, outputs, weights=(), opset=20):
    graph = helper.make_graph(nodes, "tests", inputs, outputs, initializer=[numpy_helper.from_array(v, n) for n, v in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def _value(name, shape, dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


class Mlp:
    """y = relu(x w + b), z = x + 1; x is [rows, 8]."""

    def __init__(self, rows=4, seed=0):
        random = np.random.default_rng(seed)
        self.w = random.standard_normal((8, 5), dtype=np.float32)
        self.b = random.standard_normal(5, dtype=np.float32)
        one = np.ones((), np.float32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"]),
                 helper.make_node("Relu", ["s"], ["y"]), helper.make_node("Add", ["x", "one"], ["z"])]
        self.proto = _model(nodes, [_value("x", [rows, 8])], [_value("y", [rows, 5]), _value("z", [rows, 8])],
                            [("w", self.w), ("b", self.b), ("one", one)])

    def expected(self, x):
        return np.maximum(x @ self.w + self.b, 0), x + 1


def add(shape=(3, 5), dtype=F32):
    """c = a + b"""
    return _model([helper.make_node("Add", ["a", "b"], ["c"])], [_value("a", shape, dtype), _value("b", shape, dtype)],
                  [_value("c", shape, dtype)])


def turns():
    """y = x + trips, one trip after the other"""
    one = np.ones(4, np.float32)
    body = helper.make_graph([helper.make_node("Add", ["state", "one"], ["next"]), helper.make_node("Identity", ["go"], ["goes"])], "body",
                             [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("state", [4])],
                             [_value("goes", [], TensorProto.BOOL), _value("next", [4])])
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    return _model([node], [_value("trips", [], TensorProto.INT64), _value("x", [4])], [_value("y", [4])], [("one", one)])


def product(size):
    """c = a @ b"""
    return _model([helper.make_node("MatMul", ["a", "b"], ["c"])], [_value("a", [size, size]), _value("b", [size, size])],
                  [_value("c", [size, size])])


def outer():
    """y = a b, which is much larger than a and b"""
    return _model([helper.make_node("MatMul", ["a", "b"], ["y"])], [_value("a", ["rows", 1]), _value("b", [1, "columns"])],
                  [_value("y", ["rows", "columns"])])


def custom(domain, name):
    """A node that Heddle does not know"""
    proto = _model([helper.make_node(name, ["x"], ["y"], domain=domain)], [_value("x", [4])], [_value("y", [4])])
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    return proto


def cast(source, target, shape):
    """y = x as another type"""
    return _model([helper.make_node("Cast", ["x"], ["y"], to=target)], [_value("x", shape, source)], [_value("y", shape, target)], opset=25)


def dequantize(dtype, shape, scale):
    """y = x * scale"""
    return _model([helper.make_node("DequantizeLinear", ["x", "scale"], ["y"])], [_value("x", shape, dtype)], [_value("y", shape)],
                  [("scale", np.float32(scale).reshape(()))], opset=21)


def cache_step(rows=3, columns=7):
    """present = past [rows, columns] with x [rows, 1] at the columns `at`; sum of its rows."""
    nodes = [helper.make_node("ScatterElements", ["past", "at", "x"], ["present"], axis=1),
             helper.make_node("ReduceSum", ["present", "columns"], ["sum"], keepdims=0)]
    return _model(nodes, [_value("past", [rows, columns]), _value("x", [rows, 1]), _value("at", [rows, 1], TensorProto.INT64)],
                  [_value("present", [rows, columns]), _value("sum", [rows])], [("columns", np.array([1]))])


def attention_step(by_mask, columns=8, of_old_keys=False):
    """Two caches [2,3,7,columns] whose rows `at`, one for each of the first dimension, become e^k and 2 v, and e^q. The rows
    are found by ScatterElements or (`by_mask`) by a comparison with all positions, which leaves out what lies outside.
    `of_old_keys`: v is added to what row 2 of the keys was before, not to itself."""
    shape, row = [2, 3, 7, columns], [2, 3, 1, columns]
    nodes = [helper.make_node("Exp", ["k"], ["new_k"]), helper.make_node("Add", ["v", "v"], ["new_v"]),
             helper.make_node("Exp", ["q"], ["o"]), helper.make_node("Reshape", ["at", "to_one"], ["one"])]
    weights = [("to_one", np.array([2, 1, 1, 1]))]
    if of_old_keys:
        nodes[1] = helper.make_node("Add", ["v", "old"], ["new_v"])
        nodes.insert(0, helper.make_node("Slice", ["past_k", "from", "to", "along"], ["old"]))
        weights += [("from", np.array([2])), ("to", np.array([3])), ("along", np.array([2]))]
    if by_mask:
        nodes.append(helper.make_node("Equal", ["one", "rows"], ["mask"]))
        weights.append(("rows", np.arange(7).reshape(1, 1, 7, 1)))
        nodes += [helper.make_node("Where", ["mask", f"new_{c}", f"past_{c}"], [f"present_{c}"]) for c in "kv"]
    else:
        nodes.append(helper.make_node("Expand", ["one", "row"], ["index"]))
        weights.append(("row", np.array(row)))
        nodes += [helper.make_node("ScatterElements", [f"past_{c}", "index", f"new_{c}"], [f"present_{c}"], axis=2) for c in "kv"]
    inputs = [_value("past_k", shape), _value("past_v", shape), _value("k", row), _value("v", row), _value("q", [2, 9, 1, columns]),
              _value("at", [2], TensorProto.INT64)]
    return _model(nodes, inputs, [_value("present_k", shape), _value("present_v", shape), _value("o", [2, 9, 1, columns])], weights)


def old_values():
    """Models whose outputs lie in the memory of inputs while something still reads the old value, by what that is:
    the model, the aliases, and the inputs as functions of a generator."""
    square, long = (4, 7), TensorProto.INT64
    reals = lambda random: random.standard_normal(square, dtype=np.float32)
    backwards = lambda random: np.tile(np.arange(7)[::-1], (4, 1))
    past, q, idx = _value("past", square), _value("q", square), _value("idx", square, long)
    outputs = [_value("present", square), _value("other", square)]
    scatter = lambda indices, updates: helper.make_node("ScatterElements", ["past", indices, updates], ["present"], axis=1)
    other = helper.make_node("Identity", ["past"], ["other"])
    twice = helper.make_node("Add", ["past", "past"], ["present"])
    alias = {"present": "past"}
    return {
        "the update's new elements": (_model([scatter("idx", "past")], [past, idx], outputs[:1]), alias, [reals, backwards]),
        "the update's indices": (
            _model([scatter("past", "idx")], [_value("past", square, long), idx], [_value("present", square, long)]), alias,
            [backwards, backwards]),
        "an output beside an update": (_model([scatter("idx", "q"), other], [past, idx, q], outputs), alias,
                                       [reals, backwards, reals]),
        "an output beside a copy": (_model([twice, other], [past], outputs), alias, [reals]),
        "two that change places": (
            _model([helper.make_node("Identity", ["q"], ["present"]), other], [past, q], outputs),
            {"present": "past", "other": "q"}, [reals, reals]),
    }


def layer_norm(rows=6, columns=96, seed=1):
    random = np.random.default_rng(seed)
    scale, bias = random.standard_normal((2, columns), dtype=np.float32)
    node = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1, epsilon=1e-5)
    proto = _model([node], [_value("x", [rows, columns])], [_value("y", [rows, columns])],
                   [("scale", scale), ("bias", bias)])

    def expected(x):
        x = x.astype(np.float64)
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    return proto, expected


def text():
    """An output that is text beside one that is not."""
    words = helper.make_tensor("words", TensorProto.STRING, [2], ["warp", "weft"])
    nodes = [helper.make_node("Constant", [], ["t"], value=words), helper.make_node("Neg", ["x"], ["y"])]
    return _model(nodes, [_value("x", [2])], [_value("t", [2], TensorProto.STRING), _value("y", [2])])


def unsupported():
    node = helper.make_node("NoSuchOperator", ["x"], ["y"], domain="nowhere.example")
    proto = _model([node], [_value("x", [2])], [_value("y", [2])])
    proto.opset_import.append(helper.make_opsetid("nowhere.example", 1))
    return proto


def save(proto, folder, name="model.onnx"):
    path = folder / name
    onnx.save(proto, path)
    return path
