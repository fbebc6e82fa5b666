#!/usr/bin/env python3
"""A quantised model (QDQ) layer by layer: integers of Heddle and of ONNX Runtime, beside the exact results.

usage: quantised_agreement.py MODEL [--heddle PATH] [--isa avx512|avx2] [--seed N] [--layers]

The model is cut at each QuantizeLinear of an activation. Every part gets the integers that ONNX Runtime computes for the
whole model, so no difference is carried from one layer to the next. The exact results are those of the same operators in
float64, including their divisions; a result is near a tie if its exact quotient is within a thousandth of k + 1/2. The
last two lines compare the whole model, where differences are carried. --layers prints a line for each layer with
differences."""

import argparse
import collections
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from ort_worker import random_inputs

TIE = 1e-3


def session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def cut(model):
    """The model with an input for each quantised activation that a node reads, and all of them as outputs."""
    typed = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    constants = {tensor.name for tensor in model.graph.initializer}
    quantised = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] not in constants]
    whole, parts = onnx.ModelProto(), onnx.ModelProto()
    whole.CopyFrom(model), parts.CopyFrom(model)
    del whole.graph.output[:], parts.graph.output[:]
    whole.graph.output.extend(typed[name] for name in quantised)
    parts.graph.output.extend(typed[name] for name in quantised)
    for name in quantised:
        given = onnx.ValueInfoProto()
        given.CopyFrom(typed[name])
        given.name = "given_" + name
        parts.graph.input.append(given)
        for node in parts.graph.node:
            node.input[:] = ["given_" + name if i == name else i for i in node.input]
    return whole, parts, quantised


def windows(x, kernel, attrs, fill):
    """[images, channels, rows, columns, kernel rows, kernel columns]"""
    pads, strides, dilations = attrs.get("pads", [0] * 4), attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return found[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def convolution(x, w, bias, attrs):
    groups = attrs.get("group", 1)
    found = windows(x, w.shape[2:], attrs, 0.0)
    parts = []
    for part, filters in zip(np.split(found, groups, axis=1), np.split(w, groups)):
        parts.append(np.tensordot(filters, part, ((1, 2, 3), (1, 4, 5))).swapaxes(0, 1))
    return np.concatenate(parts, axis=1) + bias.reshape(1, -1, 1, 1)


def along(axis, values, rank):
    return values if values.ndim == 0 else values.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


class Exact:
    """Evaluates the parts in float64; QuantizeLinear gives its quotient, before it is rounded."""

    def __init__(self, model, inputs):
        self.values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | inputs
        self.quotients = {}
        for node in model.graph.node:
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            self.values[node.output[0]] = self.node(node, attrs, [self.values[name] if name else None for name in node.input])

    def node(self, node, attrs, given):
        def wide(i, default=0.0):
            return np.asarray(given[i] if i < len(given) and given[i] is not None else default, np.float64)

        x, op = wide(0), node.op_type
        if op == "DequantizeLinear":
            scale, zero = (along(attrs.get("axis", 1), wide(i), x.ndim) for i in (1, 2))
            return (x - zero) * scale
        if op == "QuantizeLinear":
            self.quotients[node.output[0]] = x / wide(1), int(wide(2))
            return None
        if op in ("Add", "Mul"):
            return x + wide(1) if op == "Add" else x * wide(1)
        if op in ("Relu", "Sigmoid"):
            return np.maximum(x, 0) if op == "Relu" else 1 / (1 + np.exp(-x))
        if op == "Clip":
            return x.clip(wide(1), wide(2))
        if op == "Conv":
            return convolution(x, wide(1), wide(2, np.zeros(given[1].shape[0])), attrs)
        if op == "Gemm":
            return x @ (wide(1).T if attrs.get("transB", 0) else wide(1)) + wide(2)
        if op == "MatMul":
            return x @ wide(1)
        if op == "MaxPool":
            return windows(x, attrs["kernel_shape"], attrs, -np.inf).max((4, 5))
        if op in ("GlobalAveragePool", "ReduceMean"):
            axes = tuple(range(2, x.ndim)) if op == "GlobalAveragePool" else tuple(attrs.get("axes", given[-1]))
            return x.mean(axes, keepdims=bool(attrs.get("keepdims", 1)))
        if op == "Flatten":
            return x.reshape(int(np.prod(x.shape[: attrs.get("axis", 1)])), -1)
        if op == "Reshape":
            return x.reshape(given[1])
        raise SystemExit(f"{op} is not known here")


def heddle(options, model, inputs):
    """The outputs, by their order."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "parts.onnx")
        command = [options.heddle, "run", folder / "parts.onnx", "--target", "cpu", "--output-dir", folder / "out"]
        for i, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"{i}.npy", value)
            command += ["--input", f"{name}={folder / f'{i}.npy'}"]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HEDDLE_CPU_ISA": options.isa})
        if run.returncode != 0:
            raise SystemExit(run.stderr)
        return [np.load(folder / "out" / f"{v.name.replace('/', '_')}.npy") for v in model.graph.output]


def compare(found, quotient, zero):
    """Elements that differ from the exact ones: all, those that are not near a tie, and the largest difference."""
    low, high = (0, 255) if found.dtype == np.uint8 else (-128, 127)
    exact = np.clip(np.round(quotient) + zero, low, high)
    steps = np.abs(found.astype(np.int64) - exact.astype(np.int64))
    near = np.abs(np.abs(quotient - np.floor(quotient)) - 0.5) < TIE
    return np.count_nonzero(steps), np.count_nonzero(steps[~near]), int(steps.max(initial=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--isa", default="avx512")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", action="store_true")
    options = parser.parse_args()
    model = onnx.load(options.model)
    whole, parts, names = cut(model)
    levels = onnxruntime.GraphOptimizationLevel
    given = random_inputs(options.model, options.seed)
    made = session(whole, levels.ORT_ENABLE_ALL).run(names, given)
    inputs = given | {"given_" + name: value for name, value in zip(names, made)}
    sides = {
        "Heddle": heddle(options, parts, inputs),
        "ONNX Runtime": session(parts, levels.ORT_ENABLE_ALL).run(names, inputs),
        "ONNX Runtime, no optimisations": session(parts, levels.ORT_DISABLE_ALL).run(names, inputs),
    }
    carried = {
        "Heddle": heddle(options, whole, given),
        "ONNX Runtime, no optimisations": session(whole, levels.ORT_DISABLE_ALL).run(names, given),
    }
    exact = Exact(parts, inputs).quotients
    producers = {output: node for node in model.graph.node for output in node.output}
    quantisers = {node.output[0]: node for node in model.graph.node if node.op_type == "QuantizeLinear"}
    elements = sum(value.size for value in made)
    print(f"{options.model.name}: {elements} integers in {len(names)} layers")
    for side, results in sides.items():
        total, by_op = np.zeros(3, np.int64), collections.Counter()
        for name, found in zip(names, results):
            quotient, zero = exact[name]
            counts = compare(found, quotient, zero)
            total[:2] += counts[:2]
            total[2] = max(total[2], counts[2])
            source = producers.get(quantisers[name].input[0])
            by_op[source.op_type if source else "input"] += counts[1]
            if options.layers and counts[0]:
                print(f"  {side}: {name}: {counts[0]} of {found.size}, {counts[1]} not near ties, by {counts[2]}")
        others = ", ".join(f"{op} {n}" for op, n in by_op.items() if n)
        print(f"{side}: {total[0]} differ from the exact ones, {total[1]} of them not near ties"
              f"{f' ({others})' if others else ''}, by at most {total[2]}")
    for side, results in carried.items():
        steps = np.abs(results[-1].astype(np.int64) - made[-1].astype(np.int64))
        print(f"{side}: as a whole, {np.mean(steps == 0):.1%} of the last integers are those of ONNX Runtime, others"
              f" differ by at most {steps.max()}")


if __name__ == "__main__":
    main()
