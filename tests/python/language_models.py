"""Writes language models with seeded weights into folders, as optimum and onnx-community lay them out.

    language_models.py FOLDER [--layout grouped|plain] [--type f32|f16|q4] [--size tiny|135m|0.5b]

`grouped`: GroupQueryAttention with rotary embeddings, caches in buffers. `plain`: standard operators as torch.onnx exports
them, with masks from shapes, position_ids, and caches that grow by Concat.
"""
import argparse
import dataclasses
import hashlib
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
TYPES = {"f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16)}


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    hidden: int
    heads: int
    groups: int
    words: int
    positions: int = 2048

    @property
    def depth(self):
        return self.width // self.heads


SIZES = {"tiny": Size(2, 64, 96, 4, 2, 320, 512), "135m": Size(30, 576, 1536, 9, 3, 49152), "0.5b": Size(24, 896, 4864, 14, 2, 151936)}


class Writer:
    """Nodes and weights of a model; values are names."""

    def __init__(self, seed, dtype):
        self.random = np.random.default_rng(seed)
        self.onnx_type, self.type = TYPES[dtype]
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.known = {}  # constants by value: branches share theirs

    def constant(self, value):
        value = np.asarray(value)
        key = (value.dtype, value.shape, hashlib.sha1(np.ascontiguousarray(value)).digest())
        if key not in self.known:
            self.known[key] = f"c{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(value, self.known[key]))
        return self.known[key]

    def real(self, value):
        return self.constant(np.asarray(value, self.type))

    def node(self, op, *inputs, domain="", outputs=None, **attributes):
        outputs = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, f"n{len(self.nodes)}", domain=domain, **attributes))
        return outputs[0]

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, value, dtype, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def random_weight(self, *shape, scale=None):
        values = self.random.standard_normal(shape, np.float32)
        return (values * (scale or shape[0] ** -0.5)).astype(self.type)

    def extent(self, x, axis):
        """i64[1]"""
        return self.node("Gather", self.node("Shape", x), self.constant(np.array([axis])), axis=0)

    def proto(self, name, opset=17):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)], ir_version=9)


class Llama(Writer):
    """A decoder with rotary embeddings, gated layers and a head that shares the table of embeddings."""

    def __init__(self, size, dtype, layout, seed=1):
        super().__init__(seed, "f16" if dtype == "f16" else "f32")
        self.size, self.is_packed, self.is_grouped = size, dtype == "q4", layout == "grouped"

    def linear(self, x, inputs, outputs):
        weight = self.random_weight(inputs, outputs)
        if not self.is_packed:
            return self.node("MatMul", x, self.constant(weight))
        blocks = np.zeros((outputs, -(-inputs // 32) * 32), np.float32)
        blocks[:, :inputs] = weight.T
        blocks = blocks.reshape(outputs, -1, 32)
        scales = np.maximum(np.abs(blocks).max(-1) / 7, 1e-8)
        numbers = (np.round(blocks / scales[..., None]) + 8).astype(np.uint8)
        words, scales = self.constant(numbers[..., ::2] | numbers[..., 1::2] << 4), self.constant(scales.astype(self.type))
        return self.node("MatMulNBits", x, words, scales, domain=MICROSOFT, N=outputs, K=inputs, bits=4, block_size=32)

    def norm(self, x):
        weight = self.real(1 + 0.1 * self.random.standard_normal(self.size.width))
        if self.is_grouped:
            return self.node("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=1e-5)
        mean = self.node("ReduceMean", self.node("Pow", x, self.real(2.0)), axes=[-1])
        scale = self.node("Div", self.real(1.0), self.node("Sqrt", self.node("Add", mean, self.real(1e-5))))
        return self.node("Mul", weight, self.node("Mul", x, scale))

    def heads(self, x, count):
        split = self.node("Reshape", x, self.constant(np.array([0, -1, count, self.size.depth])))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def turned(self, x):
        half = self.size.depth // 2
        ends = [self.constant(np.array([end])) for end in (0, half, 2 * half, -1)]
        low, high = self.node("Slice", x, ends[0], ends[1], ends[3]), self.node("Slice", x, ends[1], ends[2], ends[3])
        opposite = self.node("Concat", self.node("Neg", high), low, axis=-1)
        return self.node("Add", self.node("Mul", x, self.cosine), self.node("Mul", opposite, self.sine))

    def repeated(self, x):
        """Each head of keys for the heads of queries that share it."""
        s = self.size
        apart = self.node("Unsqueeze", x, self.constant(np.array([2])))
        shape = self.node("Concat", self.extent(x, 0), self.constant(np.array([s.groups, s.heads // s.groups])), self.extent(x, 2),
                          self.constant(np.array([s.depth])), axis=0)
        merged = self.node("Concat", self.extent(x, 0), self.constant(np.array([s.heads])), self.extent(x, 2),
                           self.constant(np.array([s.depth])), axis=0)
        return self.node("Reshape", self.node("Expand", apart, shape), merged)

    def grouped(self, i, q, k, v, pasts):
        presents = [f"present.{i}.{part}" for part in ("key", "value")]
        mixed = self.node("GroupQueryAttention", q, k, v, *pasts, *self.counts, *self.angles, domain=MICROSOFT,
                          outputs=[f"mixed.{i}", *presents], num_heads=self.size.heads, kv_num_heads=self.size.groups, do_rotary=1)
        for name in presents:
            self.outputs.append(helper.make_tensor_value_info(name, self.onnx_type, ["batch", self.size.groups, "total", self.size.depth]))
        return mixed

    def plain(self, i, q, k, v, pasts):
        s = self.size
        q, k, v = self.turned(self.heads(q, s.heads)), self.turned(self.heads(k, s.groups)), self.heads(v, s.groups)
        both = []
        for part, past, fresh in zip(("key", "value"), pasts, (k, v)):
            both.append(self.node("Concat", past, fresh, axis=2))
            self.output(f"present.{i}.{part}", both[-1], self.onnx_type, ["batch", s.groups, "past + tokens", s.depth])
        keys = self.node("Transpose", self.repeated(both[0]), perm=[0, 1, 3, 2])
        scores = self.node("Mul", self.node("MatMul", q, keys), self.real(s.depth**-0.5))
        weights = self.node("Softmax", self.node("Add", scores, self.mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, self.repeated(both[1])), perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, self.constant(np.array([0, -1, s.width])))

    def begin_grouped(self):
        seen = self.node("ReduceSum", "attention_mask", self.constant(np.array([1])), keepdims=0)
        last = self.node("Cast", self.node("Sub", seen, self.constant(np.int64(1))), to=TensorProto.INT32)
        total = self.node("Cast", self.node("Gather", self.node("Shape", "attention_mask"), self.constant(np.int64(1)), axis=0), to=TensorProto.INT32)
        self.counts = [last, total]
        turns = np.arange(self.size.positions)[:, None] * self.frequencies
        self.angles = [self.real(np.cos(turns)), self.real(np.sin(turns))]

    def begin_plain(self):
        positions = self.node("Cast", self.node("Unsqueeze", self.input("position_ids", TensorProto.INT64, ["batch", "tokens"]),
                                                self.constant(np.array([1, 3]))), to=TensorProto.FLOAT)
        turns = self.node("Mul", positions, self.constant(np.concatenate([self.frequencies] * 2).astype(np.float32)))
        self.cosine, self.sine = (self.node("Cast", self.node(op, turns), to=self.onnx_type) for op in ("Cos", "Sin"))
        past, fresh = self.extent("past_key_values.0.key", 2), self.extent("input_ids", 1)
        whole = self.node("Add", past, fresh)
        zero, one, flat = self.constant(np.int64(0)), self.constant(np.int64(1)), self.constant(np.array([], np.int64))
        scalar = lambda x: self.node("Reshape", x, flat)
        row = self.node("Unsqueeze", self.node("Range", scalar(past), scalar(whole), one), self.constant(np.array([1])))
        column = self.node("Range", zero, scalar(whole), one)
        later = self.node("Greater", column, row)
        padding = self.node("Equal", self.node("Unsqueeze", "attention_mask", self.constant(np.array([1, 2]))), zero)
        self.mask = self.node("Where", self.node("Or", later, padding), self.real(np.finfo(self.type).min), self.real(0.0))

    def build(self):
        s = self.size
        self.input("input_ids", TensorProto.INT64, ["batch", "tokens"])
        self.input("attention_mask", TensorProto.INT64, ["batch", "total"])
        self.frequencies = 1e4 ** -(np.arange(0, s.depth, 2) / s.depth)
        pasts = [[f"past_key_values.{i}.{part}" for part in ("key", "value")] for i in range(s.layers)]
        self.begin_grouped() if self.is_grouped else self.begin_plain()
        for name in sum(pasts, []):
            self.input(name, self.onnx_type, ["batch", s.groups, "past", s.depth])
        table = self.constant(self.random_weight(s.words, s.width, scale=1))
        x = self.node("Gather", table, "input_ids")
        for i in range(s.layers):
            normed = self.norm(x)
            q, k, v = (self.linear(normed, s.width, count * s.depth) for count in (s.heads, s.groups, s.groups))
            mixed = (self.grouped if self.is_grouped else self.plain)(i, q, k, v, pasts[i])
            x = self.node("Add", x, self.linear(mixed, s.width, s.width))
            normed = self.norm(x)
            gate, up = self.linear(normed, s.width, s.hidden), self.linear(normed, s.width, s.hidden)
            active = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up)
            x = self.node("Add", x, self.linear(active, s.hidden, s.width))
        logits = self.linear(self.norm(x), s.width, s.words)
        self.output("logits", logits, self.onnx_type, ["batch", "tokens", s.words])
        return self.proto("llama")


def merged(proto):
    """The model as the branch of a decoder that is merged with one without earlier keys."""
    graph = proto.graph
    names = [output.name for output in graph.output]
    for node in graph.node:
        node.output[:] = ["later." + name if name in names else name for name in node.output]
    shape = lambda output: [extent.dim_value or 1 for extent in output.type.tensor_type.shape.dim]
    first = [helper.make_node("Constant", [], ["first." + output.name], value=numpy_helper.from_array(np.zeros(shape(output), np.float32)))
             for output in graph.output]
    bodies = {}
    for branch, nodes, prefix in (("then_branch", graph.node, "later."), ("else_branch", first, "first.")):
        outputs = [onnx.ValueInfoProto.FromString(output.SerializeToString()) for output in graph.output]
        for output in outputs:
            output.name = prefix + output.name
        bodies[branch] = helper.make_graph(nodes, branch, [], outputs)
    node = helper.make_node("If", ["use_cache_branch"], names, **bodies)
    inputs = [*graph.input, helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])]
    whole = helper.make_graph([node], "merged", inputs, list(graph.output), list(graph.initializer))
    return helper.make_model(whole, opset_imports=list(proto.opset_import), ir_version=9)


def tokenizer():
    """Bytes, some pairs of letters, and the tokens of a template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [("t", "h"), ("h", "e"), ("th", "e"), ("i", "n"), ("a", "n"), ("e", "r")]
    vocabulary = {word: i for i, word in enumerate([*alphabet, *(a + b for a, b in pairs)])}
    made = Tokenizer(models.BPE(vocabulary, pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>", "<|user|>", "<|assistant|>"])
    return made


TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")


def write(folder, size, dtype="f32", layout="grouped", seed=1):
    """Writes the folder of a model and returns it."""
    folder = pathlib.Path(folder)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    name = "model" + {"f32": "", "f16": "_fp16", "q4": "_q4"}[dtype] + ".onnx"
    proto = Llama(size, dtype, layout, seed).build()
    large = sum(len(constant.raw_data) for constant in proto.graph.initializer) > 1 << 28
    onnx.save(proto, folder / "onnx" / name, save_as_external_data=large, location=name + "_data")
    words = tokenizer()
    words.save(str(folder / "tokenizer.json"))
    end = words.token_to_id("<|end|>")
    files = {"config.json": {"model_type": "llama", "max_position_embeddings": size.positions, "eos_token_id": end, "vocab_size": size.words},
             "generation_config.json": {"eos_token_id": [end]},
             "tokenizer_config.json": {"eos_token": "<|end|>", "chat_template": TEMPLATE}}
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--layout", choices=["grouped", "plain"], default="grouped")
    parser.add_argument("--type", choices=["f32", "f16", "q4"], default="f32")
    parser.add_argument("--size", choices=SIZES, default="135m")
    given = parser.parse_args()
    write(given.folder, SIZES[given.size], given.type, given.layout)
