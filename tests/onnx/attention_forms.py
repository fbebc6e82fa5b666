"""Attention in the forms that models have it: attention_forms.py HEDDLE [NAME...].

Each form is a small model of ONNX operators. It has to become one kernel of attention on an H200 (`heddle explain`), and to
equal the float64 reference in f16 (`heddle verify`) on the GPU that is there, or the emulator. Without names, an ordinary
run verifies one form of three."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from drawing import draw  # noqa: E402

BATCH, HEADS, KEY_HEADS, ROWS, KEYS, DEPTH = 2, 8, 2, 33, 45, 64
LOWEST = float(np.finfo(np.float32).min)
FORMS = {}


class Graph:
    """Nodes of a model in order; every method returns the name of a value."""

    def __init__(self, opset=24):
        self.nodes, self.inputs, self.initializers, self.opset = [], [], [], opset

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def constant(self, values, dtype=np.float32):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def save(self, path, *results):
        values = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph(self.nodes, "attention", self.inputs, values, self.initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)

    def qkv(self, rows=ROWS, keys=KEYS, key_heads=HEADS):
        return (self.input("q", [BATCH, HEADS, rows, DEPTH]), self.input("k", [BATCH, key_heads, keys, DEPTH]),
                self.input("v", [BATCH, key_heads, keys, DEPTH]))

    def scores(self, q, k):
        scaled = self.node("Mul", q, self.constant(DEPTH ** -0.5))
        return self.node("MatMul", scaled, self.node("Transpose", k, perm=[0, 1, 3, 2]))

    def mix(self, scores, v):
        return self.node("MatMul", self.node("Softmax", scores, axis=-1), v)


def form(build):
    FORMS[build.__name__] = build
    return build


def causal(rows, keys):
    return np.arange(keys)[None, :] <= np.arange(rows)[:, None]


@form
def scale_on_both(g):
    q, k, v = g.qkv()
    root = g.constant(DEPTH ** -0.25)
    keys = g.node("Mul", g.node("Transpose", k, perm=[0, 1, 3, 2]), root)
    return g.mix(g.node("MatMul", g.node("Mul", q, root), keys), v)


@form
def scale_behind_the_scores(g):
    q, k, v = g.qkv()
    scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
    return g.mix(g.node("Div", scores, g.constant(DEPTH ** 0.5)), v)


@form
def added_mask(g):
    q, k, v = g.qkv()
    return g.mix(g.node("Add", g.scores(q, k), g.input("mask", [BATCH, 1, ROWS, KEYS])), v)


@form
def boolean_mask(g):
    q, k, v = g.qkv()
    mask = g.input("mask", [BATCH, 1, 1, KEYS], TensorProto.BOOL)
    return g.mix(g.node("Where", mask, g.scores(q, k), g.constant(LOWEST)), v)


@form
def causal_by_trilu(g):
    q, k, v = g.qkv(ROWS, ROWS)
    ones = g.node("Expand", g.constant(1), g.constant([ROWS, ROWS], np.int64))
    outside = g.node("Equal", g.node("Trilu", ones, upper=0), g.constant(0))
    return g.mix(g.node("Add", g.scores(q, k), g.node("Where", outside, g.constant(-np.inf), g.constant(0))), v)


@form
def causal_by_positions(g):
    q, k, v = g.qkv(ROWS, ROWS)
    places = g.node("Range", *(g.constant(x, np.int64) for x in (0, ROWS, 1)))
    across, down = (g.node("Unsqueeze", places, g.constant([axis], np.int64)) for axis in (0, 1))
    return g.mix(g.node("Where", g.node("LessOrEqual", across, down), g.scores(q, k), g.constant(LOWEST)), v)


@form
def window_by_positions(g):
    q, k, v = g.qkv(ROWS, ROWS)
    places = g.node("Range", *(g.constant(x, np.int64) for x in (0, ROWS, 1)))
    across, down = (g.node("Unsqueeze", places, g.constant([axis], np.int64)) for axis in (0, 1))
    near = g.node("Less", g.node("Sub", down, across), g.constant(9, np.int64))
    seen = g.node("And", g.node("LessOrEqual", across, down), near)
    return g.mix(g.node("Where", seen, g.scores(q, k), g.constant(-np.inf)), v)


@form
def guard_of_empty_rows(g):
    q, k, v = g.qkv()
    mask = g.input("mask", [BATCH, 1, 1, KEYS], TensorProto.BOOL)
    weights = g.node("Softmax", g.node("Where", mask, g.scores(q, k), g.constant(-np.inf)), axis=-1)
    return g.node("MatMul", g.node("Where", g.node("IsNaN", weights), g.constant(0), weights), v)


@form
def division_behind_the_values(g):
    q, k, v = g.qkv()
    scores = g.scores(q, k)
    axes = g.constant([-1], np.int64)
    powers = g.node("Exp", g.node("Sub", scores, g.node("ReduceMax", scores, axes)))
    return g.node("Div", g.node("MatMul", powers, v), g.node("ReduceSum", powers, axes))


@form
def soft_cap(g):
    q, k, v = g.qkv()
    bent = g.node("Tanh", g.node("Div", g.scores(q, k), g.constant(20)))
    return g.mix(g.node("Mul", bent, g.constant(20)), v)


def with_sink(g, q, k, v, masked):
    scores = g.scores(q, k)
    if masked:
        scores = g.node("Where", g.constant(causal(ROWS, KEYS), bool), scores, g.constant(-np.inf))
    sink = g.node("Expand", g.input("sink", [1, HEADS, 1, 1]), g.constant([BATCH, HEADS, ROWS, 1], np.int64))
    weights = g.node("Softmax", g.node("Concat", scores, sink, axis=-1), axis=-1)
    ends = (g.constant([x], np.int64) for x in (0, KEYS, 3))
    return g.node("MatMul", g.node("Slice", weights, *ends), v)


@form
def sink(g):
    return with_sink(g, *g.qkv(), masked=False)


@form
def sink_beside_a_mask(g):
    return with_sink(g, *g.qkv(), masked=True)


@form
def alibi(g):
    q, k, v = g.qkv()
    slopes = 2.0 ** -np.arange(1, HEADS + 1)
    bias = slopes[:, None, None] * (np.arange(KEYS)[None, None, :] - np.arange(ROWS)[None, :, None])
    return g.mix(g.node("Add", g.scores(q, k), g.constant(bias[None])), v)


@form
def keys_of_groups_expanded(g):
    q, k, v = g.qkv(key_heads=KEY_HEADS)
    wide = g.constant([BATCH, KEY_HEADS, HEADS // KEY_HEADS, KEYS, DEPTH], np.int64)
    flat = g.constant([BATCH, HEADS, KEYS, DEPTH], np.int64)
    k, v = (g.node("Reshape", g.node("Expand", g.node("Unsqueeze", x, g.constant([2], np.int64)), wide), flat) for x in (k, v))
    return g.mix(g.scores(q, k), v)


@form
def keys_of_groups_broadcast(g):
    q, k, v = g.qkv(key_heads=KEY_HEADS)
    split = g.constant([BATCH, KEY_HEADS, HEADS // KEY_HEADS, ROWS, DEPTH], np.int64)
    k, v = (g.node("Unsqueeze", x, g.constant([2], np.int64)) for x in (k, v))
    keys = g.node("Transpose", k, perm=[0, 1, 2, 4, 3])
    scores = g.node("Mul", g.node("MatMul", g.node("Reshape", q, split), keys), g.constant(DEPTH ** -0.5))
    return g.node("Reshape", g.mix(scores, v), g.constant([BATCH, HEADS, ROWS, DEPTH], np.int64))


@form
def cross_attention(g):
    q, k, v = g.qkv(17, 100)
    return g.mix(g.scores(q, k), v)


@form
def one_query(g):
    q, k, v = g.qkv(1, 100)
    return g.mix(g.scores(q, k), v)


@form
def head_of_an_image(g):
    """As autoencoders for images have it: one head of 512 elements over all pixels, and none in the shapes."""
    channels, side = 512, 6
    image = g.input("image", [BATCH, channels, side, side])
    pixels = g.node("Transpose", g.node("Reshape", image, g.constant([BATCH, channels, side * side], np.int64)), perm=[0, 2, 1])
    random = np.random.default_rng(1)

    def project(x):
        matrix, bias = random.standard_normal((channels, channels)) / channels ** 0.5, random.standard_normal(channels)
        return g.node("Add", g.node("MatMul", x, g.constant(matrix)), g.constant(bias))

    q, k, v = (project(pixels) for _ in range(3))
    scores = g.node("Mul", g.node("MatMul", q, g.node("Transpose", k, perm=[0, 2, 1])), g.constant(channels ** -0.5))
    rows = project(g.mix(scores, v))
    result = g.node("Reshape", g.node("Transpose", rows, perm=[0, 2, 1]), g.constant([BATCH, channels, side, side], np.int64))
    return g.node("Add", result, image)


@form
def operator(g):
    return g.node("Attention", *g.qkv())


@form
def operator_with_all(g):
    return g.node("Attention", *g.qkv(key_heads=KEY_HEADS), g.input("mask", [ROWS, KEYS], TensorProto.BOOL), scale=0.2, softcap=15.0)


@form
def operator_causal(g):
    return g.node("Attention", *g.qkv(), is_causal=1)


@form
def operator_causal_by_lengths(g):
    lengths = g.input("lengths", [BATCH], TensorProto.INT64)
    return g.node("Attention", *g.qkv(key_heads=KEY_HEADS), "", "", "", lengths, is_causal=1)


@form
def operator_with_a_past(g):
    q, k, v = g.qkv(3, 3)
    past = [g.input(name, [BATCH, HEADS, 30, DEPTH]) for name in ("past_k", "past_v")]
    return g.node("Attention", q, k, v, "", *past, outputs=3)[0]


@form
def operator_of_three_dimensions(g):
    q = g.input("q", [BATCH, ROWS, HEADS * DEPTH])
    k, v = (g.input(name, [BATCH, KEYS, KEY_HEADS * DEPTH]) for name in "kv")
    return g.node("Attention", q, k, v, q_num_heads=HEADS, kv_num_heads=KEY_HEADS)


@form
def microsoft_multi_head_attention(g):
    q = g.input("q", [BATCH, ROWS, HEADS * DEPTH])
    k, v = (g.input(name, [BATCH, KEYS, HEADS * DEPTH]) for name in "kv")
    return g.node("MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=HEADS)


@form
def microsoft_attention(g):
    random = np.random.default_rng(1)
    weight, bias = random.standard_normal((256, 3 * HEADS * DEPTH)) / 16, random.standard_normal(3 * HEADS * DEPTH) / 16
    return g.node("Attention", g.input("x", [BATCH, ROWS, 256]), g.constant(weight), g.constant(bias), domain="com.microsoft",
                  num_heads=HEADS)


@form
def microsoft_group_query_attention(g):
    q = g.input("q", [BATCH, ROWS, HEADS * DEPTH])
    k, v = (g.input(name, [BATCH, ROWS, KEY_HEADS * DEPTH]) for name in "kv")
    lengths, longest = g.constant([ROWS - 1] * BATCH, np.int32), g.constant(ROWS, np.int32)
    return g.node("GroupQueryAttention", q, k, v, "", "", lengths, longest, outputs=3, domain="com.microsoft", num_heads=HEADS,
                  kv_num_heads=KEY_HEADS)[0]


@form
def microsoft_group_query_attention_of_a_step(g):
    q = g.input("q", [BATCH, 1, HEADS * DEPTH])
    k, v = (g.input(name, [BATCH, 1, KEY_HEADS * DEPTH]) for name in "kv")
    past = [g.input(name, [BATCH, KEY_HEADS, KEYS, DEPTH]) for name in ("past_k", "past_v")]
    lengths = g.input("lengths", [BATCH], TensorProto.INT32)
    return g.node("GroupQueryAttention", q, k, v, *past, lengths, g.constant(KEYS, np.int32), outputs=3, domain="com.microsoft",
                  num_heads=HEADS, kv_num_heads=KEY_HEADS)[0]


def from_pages(g, name, table, kv_heads, page=16):
    """[batch, kv_heads, keys, depth] from a pool of pages, which is f16 as the kernel reads it."""
    entries = table.shape[1]
    pool = g.input(name, [9, page, kv_heads, DEPTH], TensorProto.FLOAT16)
    pages = g.node("Gather", pool, g.constant(table, np.int64), axis=0)
    keys = g.node("Reshape", pages, g.constant([BATCH, entries * page, kv_heads, DEPTH], np.int64))
    return g.node("Cast", g.node("Transpose", keys, perm=[0, 2, 1, 3]), to=TensorProto.FLOAT)


@form
def keys_in_pages(g):
    table = np.array([[5, 0, 3], [-1, 6, 2]])
    q = g.input("q", [BATCH, HEADS, ROWS, DEPTH])
    k, v = (from_pages(g, name, table, HEADS) for name in "kv")
    mask = g.input("mask", [BATCH, 1, 1, 48], TensorProto.BOOL)
    return g.mix(g.node("Where", mask, g.scores(q, k), g.constant(LOWEST)), v)


@form
def shared_keys_in_pages(g):
    table = np.array([[5, 0, 3, 1], [7, 8, 2, 5]])
    q = g.input("q", [BATCH, HEADS, 1, DEPTH])
    k, v = (from_pages(g, name, table, KEY_HEADS) for name in "kv")
    shape = g.constant([BATCH, KEY_HEADS, HEADS // KEY_HEADS, 64, DEPTH], np.int64)
    k, v = (g.node("Reshape", g.node("Expand", g.node("Unsqueeze", x, g.constant([2], np.int64)), shape),
                   g.constant([BATCH, HEADS, 64, DEPTH], np.int64)) for x in (k, v))
    return g.mix(g.scores(q, k), v)


def heddle(command, arguments, **environment):
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)


def check(command, name, folder, verifies):
    """What is wrong with a form; "": nothing."""
    path = pathlib.Path(folder) / f"{name}.onnx"
    graph = Graph()
    graph.save(path, FORMS[name](graph))
    options = ("--target", "cuda", "--precision", "f16")
    explained = heddle(command, ["explain", path, *options, "--json"], HEDDLE_CUDA_DRIVER="/nonexistent")
    if explained.returncode != 0:
        return explained.stderr.strip()
    groups = json.loads(explained.stdout)["groups"]
    labels = [kernel["label"] for group in groups for kernel in group["kernels"]]
    if sum(label.startswith("attention ") for label in labels) != 1:
        return f"its kernels are {', '.join(labels)}"
    if name.endswith("in_pages") and not any("pages of 16 keys" in label for label in labels):
        return f"its keys are gathered first: {', '.join(labels)}"
    if not verifies:
        return ""
    verified = heddle(command, ["verify", path, *options])
    return "" if verified.returncode == 0 else (verified.stdout + verified.stderr).strip()[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    problems = 0
    verified = arguments.names or draw(FORMS, len(FORMS) // 3)
    for name in arguments.names or FORMS:
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(arguments.heddle, name, folder, name in verified)
        print(f"{name:34} {wrong or 'ok'}", flush=True)
        problems += bool(wrong)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
