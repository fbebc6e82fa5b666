#!/usr/bin/env python3
"""Times recurrences with weights of 8 bits on a CPU beside ONNX Runtime: DynamicQuantizeLSTM, and LSTM and GRU with weights
from DequantizeLinear. Prints a line for each case, then the geometric mean and the worst case.

usage: quantised_recurrences.py [--heddle PATH] [--threads N...] [--only SUBSTRING...] [--bursts N] [--processor-time]
                                [--old PATH] [--verify] [--output FILE]

The options are those of gathers.py."""

import numpy
from onnx import TensorProto, helper, numpy_helper

from cpu_operators import main

GATES = {"LSTM": 4, "GRU": 3}


def recurrence(nodes, width, steps, batch, constants):
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "recurrence",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def weights(shape, seed):
    return numpy.random.default_rng(seed).integers(-127, 128, shape).astype(numpy.int8)


def bias(gates, width):
    return numpy.random.default_rng(3).normal(0, 0.1, (1, 2 * gates * width)).astype(numpy.float32)


def dynamic(width, steps, batch=1):
    constants = {"w": weights((1, width, 4 * width), 1), "r": weights((1, width, 4 * width), 2), "b": bias(4, width)}
    for name in ("w", "r"):
        constants[name + "s"] = numpy.full(1, 0.003, numpy.float32)
        constants[name + "z"] = numpy.zeros(1, numpy.int8)
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y"],
                            domain="com.microsoft", hidden_size=width)
    return recurrence([node], width, steps, batch, constants)


def dequantised(kind, width, steps, batch=1):
    rows = GATES[kind] * width
    constants = {"w": weights((1, rows, width), 1), "r": weights((1, rows, width), 2), "b": bias(GATES[kind], width),
                 "s": numpy.float32(0.003), "z": numpy.int8(0)}
    nodes = [helper.make_node("DequantizeLinear", [name, "s", "z"], [name + "f"]) for name in ("w", "r")]
    nodes.append(helper.make_node(kind, ["x", "wf", "rf", "b"], ["y"], hidden_size=width))
    return recurrence(nodes, width, steps, batch, {name: numpy.asarray(value) for name, value in constants.items()})


def cases():
    found = {}
    for width in (64, 128, 256, 512, 768):
        for steps in (1, 16, 120):
            found[f"DynamicQuantizeLSTM {width}, {steps} steps"] = dynamic(width, steps)
            for kind in GATES:
                found[f"{kind} {width}, {steps} steps"] = dequantised(kind, width, steps)
    for batch in (4, 16):
        found[f"DynamicQuantizeLSTM 256, 16 steps, {batch} sequences"] = dynamic(256, 16, batch)
        found[f"LSTM 256, 16 steps, {batch} sequences"] = dequantised("LSTM", 256, 16, batch)
    return found


if __name__ == "__main__":
    main(__doc__, cases())
