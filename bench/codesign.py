#!/usr/bin/env python3
"""What a change of a network's design costs on this machine, as Bolt's system tables have it (Xing et al. 2022, section 4.3):
RepVGG with other activations, deepened by 1x1 convolutions, and convolutions whose channels are no multiple of eight as
they are and padded.

usage: codesign.py [--heddle PATH] [--target cpu|cuda] [--precision f16] [--batch 32] [--threads N] [--only PART...] [-o FILE]

Each network is written by `heddle zoo`, changed here, and timed by `heddle bench`: images a second of the median run."""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
ACTIVATIONS = ["Relu", "Gelu", "HardSwish", "Softplus"]
NETWORKS = ["repvgg-a0", "repvgg-b0"]
# Images, height and width, channels in and out, filter: Bolt's table of padding.
CONVOLUTIONS = [(32, 20, 26, 46, 32, 3, 3), (32, 20, 26, 46, 32, 5, 5), (128, 14, 19, 46, 32, 5, 7), (288, 11, 15, 46, 32, 5, 7),
                (128, 20, 26, 174, 64, 3, 3), (128, 20, 26, 174, 64, 5, 5)]
ALIGNED = 8


def gelu_nodes(x, y, name):
    """x (1 + erf(x / sqrt 2)) / 2, as exporters of opset 17 write it."""
    nodes, names = [], [f"{name}_{i}" for i in range(4)]
    constants = {f"{name}_root": 2 ** 0.5, f"{name}_one": 1.0, f"{name}_half": 0.5}
    for key, value in constants.items():
        nodes.append(helper.make_node("Constant", [], [key], value=numpy_helper.from_array(np.float32(value))))
    nodes.append(helper.make_node("Div", [x, f"{name}_root"], [names[0]]))
    nodes.append(helper.make_node("Erf", [names[0]], [names[1]]))
    nodes.append(helper.make_node("Add", [names[1], f"{name}_one"], [names[2]]))
    nodes.append(helper.make_node("Mul", [x, names[2]], [names[3]]))
    nodes.append(helper.make_node("Mul", [names[3], f"{name}_half"], [y]))
    return nodes


def activation_nodes(kind, x, y, name):
    return gelu_nodes(x, y, name) if kind == "Gelu" else [helper.make_node(kind, [x], [y], name=name)]


def with_activation(model, kind):
    """Every Relu replaced."""
    model = copy.deepcopy(model)
    nodes = []
    for node in model.graph.node:
        nodes += activation_nodes(kind, node.input[0], node.output[0], node.name) if node.op_type == "Relu" else [node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def deepened(model):
    """A 1x1 convolution with as many channels and its activation behind each activation of the network but the last."""
    model = copy.deepcopy(model)
    weights = {w.name: w for w in model.graph.initializer}
    random = np.random.default_rng(1)
    last = [node.name for node in model.graph.node if node.op_type == "Relu"][-1]
    nodes, channels = [], {}
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type == "Conv":
            channels[node.output[0]] = weights[node.input[1]].dims[0]
        if node.op_type != "Relu" or node.name == last:
            continue
        width, out, name = channels[node.input[0]], node.output[0], f"{node.name}/deeper"
        node.output[0] = f"{name}_input"
        values = random.standard_normal((width, width, 1, 1)) * (2 / width) ** 0.5
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), f"{name}_weight"))
        nodes.append(helper.make_node("Conv", [node.output[0], f"{name}_weight"], [f"{name}_conv"], name=f"{name}/Conv"))
        nodes.append(helper.make_node("Relu", [f"{name}_conv"], [out], name=f"{name}/Relu"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def convolution(images, height, width, channels, out, kernel_h, kernel_w):
    values = np.random.default_rng(1).standard_normal((out, channels, kernel_h, kernel_w)) / (channels * kernel_h * kernel_w) ** 0.5
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[kernel_h // 2, kernel_w // 2] * 2)
    graph = helper.make_graph([node], "conv", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [images, channels, height, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [images, out, height, width])],
                              [numpy_helper.from_array(values.astype(np.float32), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.rows = options, pathlib.Path(folder), []

    def milliseconds(self, model):
        path = self.folder / "model.onnx"
        onnx.save(model, path)
        o = self.options
        command = [o.heddle, "bench", path, "--target", o.target, "--precision", o.precision, "--seconds", str(o.seconds), "--json"]
        if o.threads:
            command += ["--threads", str(o.threads)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        result = json.loads(done.stdout)
        return result.get("device_p50_ms", result["p50_ms"])  # without the copies of inputs and outputs

    def add(self, part, name, images, model):
        """Times one row; prints and keeps it."""
        ms = self.milliseconds(model)
        row = {"part": part, "name": name, "p50_ms": ms, "images_per_s": images * 1e3 / ms}
        self.rows.append(row)
        print(f"{name:44} {ms:10.3f} ms {row['images_per_s']:12.0f} images/s", flush=True)
        return row


def network(options, name, folder):
    path = pathlib.Path(folder) / f"{name}.onnx"
    subprocess.run([options.heddle, "zoo", name, "--batch", str(options.batch), "-o", path], check=True, stdout=subprocess.DEVNULL)
    return onnx.load(path)


def activations(bench, options, folder):
    model = network(options, NETWORKS[0], folder)
    for kind in ACTIVATIONS:
        bench.add("activations", f"{NETWORKS[0]} {kind}", options.batch, with_activation(model, kind))


def depth(bench, options, folder):
    for name in NETWORKS:
        model = network(options, name, folder)
        plain = bench.add("depth", name, options.batch, model)
        deeper = bench.add("depth", f"{name} deepened by 1x1", options.batch, deepened(model))
        print(f"    {plain['p50_ms'] / deeper['p50_ms']:.2f} of its speed")


def padding(bench, _options, _folder):
    for case in CONVOLUTIONS:
        images, height, width, channels, out, kernel_h, kernel_w = case
        text = f"{images}x{height}x{width}, {channels} -> {out}, {kernel_h}x{kernel_w}"
        plain = bench.add("padding", text, images, convolution(*case))
        aligned = -(-channels // ALIGNED) * ALIGNED
        padded = bench.add("padding", f"{text}, of {aligned}", images,
                           convolution(images, height, width, aligned, out, kernel_h, kernel_w))
        print(f"    padded by the model's author {plain['p50_ms'] / padded['p50_ms']:.2f} times as fast")


PARTS = {"activations": activations, "depth": depth, "padding": padding}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=0, help="on the CPU; 0: as many as cores")
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE", help="the rows as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        try:
            for part in options.only:
                PARTS[part](bench, options, folder)
        except RuntimeError as error:
            sys.exit(str(error))
        finally:
            if options.output:
                result = {"kind": "codesign", "precision": options.precision, "batch": options.batch, "rows": bench.rows}
                options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
