"""A model of open extents, called on batches of several sizes by several threads, with results in memory of the caller.

usage: open_shapes.py
"""
import threading

import heddle
import numpy as np
from onnx import TensorProto, helper


def softmax_model():
    value = helper.make_tensor_value_info
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    graph = helper.make_graph([node], "softmax", [value("x", TensorProto.FLOAT, ["rows", 256])],
                              [value("y", TensorProto.FLOAT, ["rows", 256])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def work(model, rows, errors):
    x = np.random.default_rng(rows).standard_normal((rows, 256), dtype=np.float32)
    y = np.empty(model.output_shapes(x.shape)[0], np.float32)
    model(x, out=y)
    expected = np.exp(x - x.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    errors[rows] = float(abs(y - expected).max())


def main():
    model = heddle.compile(softmax_model(), dims={"rows": (1, 64)})
    errors = {}
    threads = [threading.Thread(target=work, args=(model, rows, errors)) for rows in (1, 7, 32, 64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in sorted(errors):
        print(f"{rows} rows: error {errors[rows]:.1e}")
    assert max(errors.values()) < 1e-6


if __name__ == "__main__":
    main()
