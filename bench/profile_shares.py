#!/usr/bin/env python3
"""Whether the parts of fused kernels in a profile are right: shares by samples, and by the estimate, against ablation.

usage: profile_shares.py [--heddle PATH] [--target cpu|cuda] [--precision P] [--times N] [--rounds N] [--seconds S]
                         [--only SUBSTRING...] [-o FILE]

Each case is a kernel of one of the zoo's models, as an ONNX model of its own. Of each node that keeps the shape of its
first input a second model is written in which that input stands for it, which also leaves out what only the node needed:
their shares are added up. The two are timed in turn by `heddle bench` on one thread of a CPU or on a GPU, the fastest
round of each counts, and the difference over the whole is what the node takes. `heddle profile` gives the share by
samples, and the estimate where it has none. One line per node and the mean errors, in percent of the kernel's time; -o
has all as JSON. What is left out may have been hidden behind other work, and where it was the first to read an outside
value (the mean of a norm), another node then waits for the memory: the ablated time is no truth to the last percent
either."""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Graph:
    """A model that is written node by node; the node called `without` is left out."""

    def __init__(self, shape, without=None):
        self.without, self.nodes, self.constants, self.removable = without, [], [], []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        self.count = collections.Counter()
        self.random = np.random.default_rng(1)

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def weight(self, *shape):
        name = f"w{len(self.constants)}"
        values = self.random.uniform(0.01, 0.09, shape).astype(np.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def node(self, op, *inputs, keeps=True, **attributes):
        """`keeps`: the first input has the shape of the result, and may stand for it."""
        self.count[op] += 1
        name = f"{op}{self.count[op]}"
        if keeps:
            self.removable.append(name)
        if name == self.without:
            return inputs[0]
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def alive(self, output):
        """Names of the nodes that a result needs."""
        makers, names, wanted = {node.output[0]: node for node in self.nodes}, set(), [output]
        while wanted:
            node = makers.get(wanted.pop())
            if node is not None and node.name not in names:
                names.add(node.name)
                wanted += node.input
        return names

    def model(self, output):
        result = helper.make_node("Identity", [output], ["y"])
        graph = helper.make_graph([*self.nodes, result], "case", self.inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layer_norm(g, x, width):
    mean = g.node("ReduceMean", x, axes=[-1], keepdims=1, keeps=False)
    centred = g.node("Sub", x, mean)
    variance = g.node("ReduceMean", g.node("Mul", centred, centred), axes=[-1], keepdims=1, keeps=False)
    deviation = g.node("Sqrt", g.node("Add", variance, g.constant(1e-5), keeps=False), keeps=False)
    return g.node("Add", g.node("Mul", g.node("Div", centred, deviation), g.weight(width)), g.weight(width))


def rms_norm(g, x, width):
    mean = g.node("ReduceMean", g.node("Mul", x, x), axes=[-1], keepdims=1, keeps=False)
    deviation = g.node("Sqrt", g.node("Add", mean, g.constant(1e-5), keeps=False), keeps=False)
    return g.node("Mul", g.node("Div", x, deviation), g.weight(width))


def gelu(g, x):
    erf = g.node("Erf", g.node("Div", x, g.constant(1.4142135)))
    return g.node("Mul", g.node("Mul", x, g.node("Add", erf, g.constant(1))), g.constant(0.5))


def tanh_gelu(g, x):
    cube = g.node("Mul", g.node("Mul", x, x), x)
    inner = g.node("Mul", g.node("Add", x, g.node("Mul", cube, g.constant(0.044715))), g.constant(0.7978845))
    return g.node("Mul", g.node("Mul", x, g.node("Add", g.node("Tanh", inner), g.constant(1))), g.constant(0.5))


def norm_case(rows, width, residual):
    def build(g):
        x = g.node("Add", "x", g.input("r", [rows, width])) if residual else "x"
        return layer_norm(g, x, width)
    return [rows, width], build


def rms_case(rows, width, residual):
    def build(g):
        return rms_norm(g, g.node("Add", "x", g.input("r", [rows, width])) if residual else "x", width)
    return [rows, width], build


def product_case(rows, depth, width, activation):
    def build(g):
        product = g.node("MatMul", "x", g.weight(depth, width), keeps=False)
        return activation(g, g.node("Add", product, g.weight(width)))
    return [rows, depth], build


def chain_case(shape, chain):
    return shape, lambda g: chain(g, "x")


def gated(shape):
    return shape, lambda g: g.node("Mul", g.node("Mul", "x", g.node("Sigmoid", "x")), g.input("up", shape))


def cell(shape):
    def build(g):
        forget = g.node("Mul", g.node("Sigmoid", "x"), g.input("c", shape))
        new = g.node("Mul", g.node("Sigmoid", g.input("i", shape)), g.node("Tanh", g.input("g", shape)))
        return g.node("Mul", g.node("Tanh", g.node("Add", forget, new)), g.node("Sigmoid", g.input("o", shape)))
    return shape, build


def softmax(shape, masked):
    def build(g):
        x = g.node("Mul", "x", g.constant(0.125))
        x = g.node("Add", x, g.input("mask", shape[-2:])) if masked else x
        return g.node("Softmax", g.node("Tanh", x), axis=-1)
    return shape, build


def clip(g, x):
    return g.node("Clip", x, g.constant(0), g.constant(6))


def silu(g, x):
    return g.node("Mul", x, g.node("Sigmoid", x))


def cases(times):
    """By name; `times`: how often each has its rows, for GPUs."""
    return {
        "bert-base norm": norm_case(1024 * times, 768, False),
        "bert-base residual norm": norm_case(1024 * times, 768, True),
        "vit-b16 norm": norm_case(1576 * times, 768, False),
        "convnext-t norm 96": norm_case(12544 * times, 96, False),
        "convnext-t norm 192": norm_case(3136 * times, 192, False),
        "swin-t residual norm 96": norm_case(12544 * times, 96, True),
        "swin-t norm 384": norm_case(1568 * times, 384, False),
        "whisper-encoder residual norm": norm_case(1500 * times, 512, True),
        "deberta-v3-small residual norm": norm_case(512 * times, 768, True),
        "llama norm": rms_case(512 * times, 2048, False),
        "llama residual norm": rms_case(512 * times, 2048, True),
        "t5-small norm": rms_case(1024 * times, 512, False),
        "t5-small residual norm": rms_case(1024 * times, 512, True),
        "bert-base product gelu": product_case(128 * times, 192, 3072, gelu),
        "vit-b16 product gelu": product_case(197 * times, 128, 3072, gelu),
        "convnext-t product gelu 96": product_case(3136 * times, 96, 384, gelu),
        "convnext-t product gelu 192": product_case(784 * times, 192, 768, gelu),
        "swin-t product gelu": product_case(3136 * times, 96, 384, gelu),
        "gpt2 product gelu": product_case(128 * times, 128, 3072, tanh_gelu),
        "mobilenet-v2 product clip 24": product_case(3136 * times, 24, 144, clip),
        "mobilenet-v2 product clip 64": product_case(196 * times, 64, 384, clip),
        "asr product silu": product_case(400 * times, 64, 1024, silu),
        "sd-unet product gelu": product_case(1024 * times, 64, 1280, gelu),
        "bert-base gelu": chain_case([512 * times, 3072], gelu),
        "gpt2 gelu": chain_case([512 * times, 3072], tanh_gelu),
        "sd-unet silu": chain_case([320 * times, 4096], silu),
        "llama gate": gated([256 * times, 8192]),
        "crnn cell": cell([64 * times, 4096]),
        "dien cell": cell([512 * times, 512]),
        "gpt2 scores": softmax([12 * times, 256, 256], True),
        "whisper-encoder scores": softmax([8 * times, 300, 300], False),
    }


def write(path, case, without=None):
    shape, build = case
    graph = Graph(shape, without)
    output = build(graph)
    onnx.save(graph.model(output), path)
    return graph.removable, graph.alive(output)


class Heddle:
    def __init__(self, options):
        self.program, self.gpu = options.heddle, options.target != "cpu"
        self.arguments = ["--target", options.target, "--precision", options.precision]
        if not self.gpu:
            self.arguments += ["--threads", "1"]

    def json(self, *arguments, **environment):
        text = subprocess.run([self.program, *map(str, arguments), *self.arguments, "--json"], check=True,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}).stdout
        return json.loads(text)

    def seconds(self, model, seconds):
        times = self.json("bench", model, "--seconds", seconds)
        return (times["device_p10_ms"] if self.gpu else times["p10_ms"]) * 1e-3

    def estimate(self, model):
        """As shares(), where nothing can be sampled."""
        return self.shares(model, 0.0001, HEDDLE_CUPTI=os.devnull) if self.gpu else self.shares(model, 0.0001)

    def shares(self, model, seconds, **environment):
        """By node, and whether they are measured, of the kernel with the most time; None where there are more."""
        profile = self.json("profile", model, "--seconds", seconds, **environment)
        strings, nodes, frames = profile["strings"], profile["nodes"], profile["frames"]
        metric = next(metric for metric in ("GBUSY", "GKER", "CPU") if metric in nodes["values"])
        times, by_node, kernels = nodes["values"][metric], {}, set()
        for index, frame in enumerate(nodes["frame"]):
            if frames["kind"][frame] != "kernel":
                continue
            above = nodes["frame"][nodes["parent"][index]]
            name = strings[frames["name"][above]]
            by_node[name] = by_node.get(name, 0) + times[index]
            kernels.add(strings[frames["name"][frame]])
        total = sum(by_node.values())
        measured = not any(kernel.startswith("~") for kernel in kernels)
        return {name: time / total for name, time in by_node.items()}, measured, len(kernels)


def compare(heddle, name, case, folder, options):
    whole = folder / "whole.onnx"
    removable, alive = write(whole, case)
    sampled, measured, kernels = heddle.shares(whole, options.profile_seconds)
    if kernels != 1 or not measured:
        print(f"{name}: {kernels} kernels, {'measured' if measured else 'not measured'}: left out", flush=True)
        return []
    estimated, _, _ = heddle.estimate(whole)
    rows = []
    for node in removable:
        without = folder / "without.onnx"
        gone = alive - write(without, case, node)[1]
        shares = [sum(way.get(each, 0) for each in gone) for way in (sampled, estimated)]
        if not options.least < max(shares) < 1 - options.least:
            continue
        times = [[heddle.seconds(model, options.seconds) for model in (whole, without)] for _ in range(options.rounds)]
        full, rest = (min(column) for column in zip(*times))
        row = {"case": name, "node": node, "gone": sorted(gone), "ablated": 1 - rest / full, "sampled": shares[0],
               "estimated": shares[1], "seconds": full}
        rows.append(row)
        print(f"{name:32} {node:10} {full * 1e6:8.1f} us  ablated {row['ablated']:6.1%}  samples {row['sampled']:6.1%}"
              f"  estimate {row['estimated']:6.1%}", flush=True)
    return rows


def summarise(rows):
    """Those apart with which a whole pass over the data goes: another pass then waits for the memory in its place."""
    whole_pass = [row for row in rows if any(node.startswith("Reduce") for node in row["gone"])]
    for what, part in (("within a pass", [row for row in rows if row not in whole_pass]), ("a whole pass", whole_pass)):
        for way in ("sampled", "estimated") if part else ():
            errors = [abs(row[way] - row["ablated"]) for row in part]
            print(f"{what:13} {way:9} mean error {statistics.mean(errors):.1%}, median {statistics.median(errors):.1%}, largest "
                  f"{max(errors):.1%} of the kernel, {len(part)} nodes of {len({r['case'] for r in part})} kernels")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build" / "release" / "heddle"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--times", type=int, default=1, help="how often each case has its rows; a GPU needs many to be busy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each timed round")
    parser.add_argument("--profile-seconds", type=float, default=1.0)
    parser.add_argument("--least", type=float, default=0.05, help="share from which a node is looked at")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    heddle, rows = Heddle(options), []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HEDDLE_CACHE_DIR", folder + "/cache")
        for name, case in cases(options.times).items():
            if any(part in name for part in options.only):
                rows += compare(heddle, name, case, pathlib.Path(folder), options)
    if not rows:
        sys.exit("no case is left")
    summarise(rows)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
