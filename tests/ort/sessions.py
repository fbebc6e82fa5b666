"""What the tests of ONNX Runtime's sessions share: models, sessions with HeddleExecutionProvider and without, and main().

The tests run on the CPU, or on the device $HEDDLE_TEST_TARGET, such as cuda:0 (the emulator's, too). Results are compared with
those of ONNX Runtime's own provider, on random inputs. That a session runs at all shows that the tables of src/ort/abi.h are
those of this release: a wrong position calls another function."""

import os
import pathlib
import resource
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

LIBRARY = pathlib.Path(sys.argv[1]).resolve()
NAME = "HeddleExecutionProvider"
TARGET = os.environ.get("HEDDLE_TEST_TARGET", "cpu")
VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
RANDOM = np.random.default_rng(5)


def devices():
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME and device.ep_metadata["target"] == TARGET]


def options(provider=None, **session):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 4
    made.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in session.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    made.add_provider_for_devices(devices(), provider or {})
    return made


def session(model, provider=None, **settings):
    given = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options(provider, **settings), enable_fallback=0)


def plain(model):
    given = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"])


def taken(made):
    return sorted(node.op_type for part in made.get_provider_graph_assignment_info() if part.ep_name == NAME
                  for node in part.get_nodes())


def model_of(nodes, inputs, outputs, constants=(), opset=20):
    """inputs, outputs: (name, dtype or element type, shape)"""
    def ports(listed):
        return [helper.make_tensor_value_info(name, kind if isinstance(kind, int) else helper.np_dtype_to_tensor_dtype(np.dtype(kind)),
                                              shape) for name, kind, shape in listed]

    initializers = [numpy_helper.from_array(value, name) for name, value in dict(constants).items()]
    graph = helper.make_graph(nodes, "graph", ports(inputs), ports(outputs), initializers)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def perceptron():
    """x[n,48] -> y[n,32], of any n."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "product"),
        helper.make_node("Add", ["a", "b"], ["c"], "bias"),
        helper.make_node("Relu", ["c"], ["d"], "relu"),
        helper.make_node("Softmax", ["d"], ["y"], "softmax"),
    ]
    return model_of(nodes, [("x", np.float32, ["n", 48])], [("y", np.float32, ["n", 32])],
                    {"w": normal(48, 32), "b": normal(32)})


def memory_in_use():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class SessionCase(unittest.TestCase):
    def check(self, made, model, inputs, tolerance=1e-5):
        expected = plain(model).run(None, inputs)
        for actual, wanted in zip(made.run(None, inputs), expected):
            self.assertEqual((actual.shape, actual.dtype), (wanted.shape, wanted.dtype))
            np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)


def main():
    onnxruntime.register_execution_provider_library("heddle", str(LIBRARY))
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
