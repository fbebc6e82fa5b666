#!/usr/bin/env python3
"""Writes a decode step of a language model as the exporters of onnx-community lay it out in q4f16 files: MatMulNBits of
4 bits with blocks of 32 and symmetric scales, GatherBlockQuantized, GroupQueryAttention with rotary embeddings and
SkipSimplifiedLayerNormalization in f16. Weights are random with a fixed seed. --bits 16 writes f16 weights.

usage: quantised_llm.py llama-3.2-1b|qwen3-0.6b FILE [--past N] [--tokens N] [--bits 4|8|16] [--layers N] [--block N]

    bench/quantised_llm.py llama-3.2-1b /tmp/llama-q4f16.onnx
    heddle bench /tmp/llama-q4f16.onnx --target cuda"""

import argparse
import dataclasses

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Model:
    layers: int
    width: int
    hidden: int
    heads: int
    key_heads: int
    depth: int
    words: int
    base: float
    norms_heads: bool = False  # normalises queries and keys, head by head


MODELS = {"llama-3.2-1b": Model(16, 2048, 8192, 32, 8, 64, 128256, 5e5),
          "qwen3-0.6b": Model(28, 1024, 3072, 16, 8, 128, 151936, 1e6, True)}
MICROSOFT = "com.microsoft"


class Writer:
    def __init__(self, options):
        self.random = numpy.random.default_rng(1)
        self.options = options
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op, inputs, name, domain="", outputs=None, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs or [name], name, domain=domain, **attributes))
        return name

    def integers(self, name, n, k):
        """Random integers [n, k], several to a byte, and scales that keep products at the magnitude of their inputs."""
        bits, block = self.options.bits, self.options.block
        blocks = -(-k // block)
        words = self.random.integers(0, 256, (n, blocks, block * bits // 8), dtype=numpy.uint8)
        scales = (self.random.random((n, blocks), dtype=numpy.float32) + 0.5) * 3 / (1 << bits) / numpy.sqrt(k)
        return self.constant(name + "_quant", words), self.constant(name + "_scales", scales.astype(numpy.float16))

    def linear(self, x, name, n, k):
        if self.options.bits == 16:
            weights = (self.random.standard_normal((k, n), dtype=numpy.float32) / numpy.sqrt(k)).astype(numpy.float16)
            return self.node("MatMul", [x, self.constant(name + ".weight", weights)], name)
        return self.node("MatMulNBits", [x, *self.integers(name, n, k)], name, MICROSOFT, N=n, K=k, bits=self.options.bits,
                         block_size=self.options.block)

    def embedding(self, ids, words, width):
        if self.options.bits == 16:
            table = self.random.standard_normal((words, width), dtype=numpy.float32).astype(numpy.float16)
            return self.node("Gather", [self.constant("embed_tokens.weight", table), ids], "embed_tokens")
        words_of_bits, scales = self.integers("embed_tokens", words, width)
        table = self.constants[-2]
        table.dims[:] = [words, width * self.options.bits // 8]
        return self.node("GatherBlockQuantized", [words_of_bits, ids, scales], "embed_tokens", MICROSOFT, gather_axis=0,
                         quantize_axis=1, block_size=self.options.block, bits=self.options.bits)

    def ones(self, name, n):
        return self.constant(name, numpy.ones(n, numpy.float16))

    def value(self, name, dtype, shape):
        return helper.make_tensor_value_info(name, dtype, shape)


def head_norm(w, x, name, heads, depth):
    rows = w.node("Reshape", [x, w.constant(name + ".rows", numpy.array([0, -1, heads, depth]))], name + ".split")
    normed = w.node("SimplifiedLayerNormalization", [rows, w.ones(name + ".weight", depth)], name, axis=-1, epsilon=1e-6)
    return w.node("Reshape", [normed, w.constant(name + ".row", numpy.array([0, -1, heads * depth]))], name + ".merged")


def layer(w, model, i, x, normed, counts, angles):
    name, past = f"layers.{i}", w.options.past
    wide, shared = model.heads * model.depth, model.key_heads * model.depth
    q, k, v = (w.linear(normed, f"{name}.{part}_proj", n, model.width) for part, n in (("q", wide), ("k", shared), ("v", shared)))
    if model.norms_heads:
        q, k = head_norm(w, q, f"{name}.q_norm", model.heads, model.depth), head_norm(w, k, f"{name}.k_norm", model.key_heads, model.depth)
    buffers = []
    for part in ("key", "value"):
        w.inputs.append(w.value(f"past_key_values.{i}.{part}", TensorProto.FLOAT16, [1, model.key_heads, past, model.depth]))
        w.outputs.append(w.value(f"present.{i}.{part}", TensorProto.FLOAT16, [1, model.key_heads, past + w.options.tokens, model.depth]))
        buffers.append(f"past_key_values.{i}.{part}")
    mixed = w.node("GroupQueryAttention", [q, k, v, *buffers, *counts, *angles], f"{name}.attention", MICROSOFT,
                   [f"{name}.attention", f"present.{i}.key", f"present.{i}.value"], num_heads=model.heads,
                   kv_num_heads=model.key_heads, do_rotary=1, scale=float(model.depth**-0.5))
    mixed = w.linear(mixed, f"{name}.o_proj", model.width, wide)

    def add_and_norm(branch, part):
        normed, total = f"{name}.{part}", f"{name}.{part}.sum"
        w.node("SkipSimplifiedLayerNormalization", [total_before, branch, w.ones(f"{name}.{part}.weight", model.width)], normed,
               MICROSOFT, [normed, "", "", total], epsilon=1e-5)
        return normed, total

    total_before = x
    normed, x = add_and_norm(mixed, "post_attention_layernorm")
    gate = w.linear(normed, f"{name}.gate_proj", model.hidden, model.width)
    up = w.linear(normed, f"{name}.up_proj", model.hidden, model.width)
    active = w.node("Mul", [gate, w.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
    down = w.linear(w.node("Mul", [active, up], f"{name}.gated"), f"{name}.down_proj", model.width, model.hidden)
    total_before = x
    return add_and_norm(down, "next_layernorm")


def build(model, options):
    w = Writer(options)
    seen = options.past + options.tokens
    w.inputs += [w.value("input_ids", TensorProto.INT64, [1, options.tokens]), w.value("attention_mask", TensorProto.INT64, [1, seen])]
    number = w.node("ReduceSum", ["attention_mask", w.constant("axis", numpy.array([1]))], "seen", keepdims=0)
    last = w.node("Cast", [w.node("Sub", [number, w.constant("one", numpy.array([1]))], "last")], "seqlens_k", to=TensorProto.INT32)
    total = w.constant("total_sequence_length", numpy.array(seen, numpy.int32))
    frequencies = model.base ** -(numpy.arange(0, model.depth, 2) / model.depth)
    turns = numpy.arange(seen)[:, None] * frequencies
    angles = [w.constant("cos_cache", numpy.cos(turns).astype(numpy.float16)), w.constant("sin_cache", numpy.sin(turns).astype(numpy.float16))]
    x = w.embedding("input_ids", model.words, model.width)
    normed = w.node("SimplifiedLayerNormalization", [x, w.ones("first_norm.weight", model.width)], "first_norm", axis=-1, epsilon=1e-5)
    for i in range(options.layers or model.layers):
        normed, x = layer(w, model, i, x, normed, [last, total], angles)
    w.nodes.append(helper.make_node("Identity", [w.linear(normed, "lm_head", model.words, model.width)], ["logits"]))
    w.outputs.insert(0, w.value("logits", TensorProto.FLOAT16, [1, options.tokens, model.words]))
    graph = helper.make_graph(w.nodes, "step", w.inputs, w.outputs, w.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)], ir_version=10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("file")
    for option, otherwise in (("past", 1023), ("tokens", 1), ("bits", 4), ("layers", 0), ("block", 32)):
        parser.add_argument("--" + option, type=int, default=otherwise)
    arguments = parser.parse_args()
    large = arguments.bits == 16
    onnx.save(build(MODELS[arguments.model], arguments), arguments.file, save_as_external_data=large)
