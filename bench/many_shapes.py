#!/usr/bin/env python3
"""What new shapes of a model cost on the CPU: 50 lengths of a transformer encoder, a decoder of two layers whose cache
grows by a position a token, and the memory of a process that meets 1,000 shapes. Through the C interface, with a cache
folder of its own, so that nothing is known beforehand.

    build/venv/bin/python bench/many_shapes.py
"""

import argparse
import ctypes
import json
import os
import pathlib
import random
import resource
import statistics
import tempfile
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEADS, WORDS, POSITIONS = 256, 4, 1000, 4096
DEPTH = WIDTH // HEADS


class Graph:
    """Nodes and weights of a model; values are names."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(0)

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def weight(self, *shape, scale=None):
        scale = scale or shape[0] ** -0.5
        return self.constant((self.random.standard_normal(shape) * scale).astype(numpy.float32))

    def node(self, operator, *inputs, name=None, **attributes):
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def extent(self, x, axis):
        return self.node("Gather", self.node("Shape", x), self.constant(numpy.int64(axis)), axis=0)

    def norm(self, x):
        ones, zeros = numpy.ones(WIDTH, numpy.float32), numpy.zeros(WIDTH, numpy.float32)
        return self.node("LayerNormalization", x, self.constant(ones), self.constant(zeros), axis=-1)

    def linear(self, x, inputs, outputs):
        product = self.node("MatMul", x, self.weight(inputs, outputs))
        return self.node("Add", product, self.weight(outputs, scale=0.02))

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.constant(numpy.float32(2**0.5))))
        half = self.node("Mul", x, self.constant(numpy.float32(0.5)))
        return self.node("Mul", half, self.node("Add", erf, self.constant(numpy.float32(1))))

    def feed_forward(self, x):
        return self.linear(self.gelu(self.linear(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH)

    def heads(self, x):
        shape = self.constant(numpy.array([0, 0, HEADS, DEPTH]))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, q, k, v, mask):
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scaled = self.node("Div", scores, self.constant(numpy.float32(DEPTH**0.5)))
        mixed = self.node("MatMul", self.node("Softmax", self.node("Add", scaled, mask), axis=-1), v)
        joined = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", joined, self.constant(numpy.array([0, 0, WIDTH]))), WIDTH, WIDTH)

    def save(self, path, inputs, outputs):
        graph = helper.make_graph(self.nodes, "model", inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def ints(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def write_encoder(path):
    """Two layers with masked attention; batch and seq are symbolic."""
    g = Graph()
    seen = g.node("Cast", g.node("Unsqueeze", "mask", g.constant(numpy.array([1, 2]))), to=TensorProto.FLOAT)
    hidden = g.node("Sub", seen, g.constant(numpy.float32(1)))
    mask = g.node("Mul", hidden, g.constant(numpy.float32(1e9)))
    rows = g.node("Unsqueeze", g.extent("ids", 1), g.constant(numpy.array([0])))
    zero = g.constant(numpy.array([0]))
    places = g.node("Slice", g.weight(512, WIDTH, scale=0.1), zero, rows, zero)
    x = g.norm(g.node("Add", g.node("Gather", g.weight(WORDS, WIDTH, scale=1.0), "ids", axis=0), places))
    for _ in range(2):
        parts = [g.heads(g.linear(x, WIDTH, WIDTH)) for _ in range(3)]
        x = g.norm(g.node("Add", x, g.attention(*parts, mask)))
        x = g.norm(g.node("Add", x, g.feed_forward(x)))
    g.node("Identity", x, name="y")
    inputs = [ints("ids", "batch", "seq"), ints("mask", "batch", "seq")]
    g.save(path, inputs, [floats("y", "batch", "seq", WIDTH)])


def write_decoder(path):
    """Two layers with caches of keys and values; the extents batch, new and past are symbolic."""
    g = Graph()
    past = g.extent("past_key_values.0.key", 2)
    total = g.node("Add", past, g.extent("ids", 1))
    one = g.constant(numpy.int64(1))
    rows = g.node("Range", past, total, one)
    columns = g.node("Range", g.constant(numpy.int64(0)), total, one)
    later = g.node("Greater", columns, g.node("Unsqueeze", rows, g.constant(numpy.array([1]))))
    mask = g.node("Where", later, g.constant(numpy.float32(-1e9)), g.constant(numpy.float32(0)))
    words = g.node("Gather", g.weight(WORDS, WIDTH, scale=1.0), "ids", axis=0)
    x = g.node("Add", words, g.node("Gather", g.weight(POSITIONS, WIDTH, scale=0.1), rows, axis=0))
    inputs, outputs = [ints("ids", "batch", "new")], []
    for layer in range(2):
        y = g.norm(x)
        q, *new = [g.heads(g.linear(y, WIDTH, WIDTH)) for _ in range(3)]
        present = []
        for part, what in zip(new, ("key", "value")):
            inputs.append(floats(f"past_key_values.{layer}.{what}", "batch", HEADS, "past", DEPTH))
            name = f"present.{layer}.{what}"
            present.append(g.node("Concat", inputs[-1].name, part, axis=2, name=name))
            outputs.append(floats(name, "batch", HEADS, "total", DEPTH))
        x = g.node("Add", x, g.attention(q, *present, mask))
        x = g.node("Add", x, g.feed_forward(g.norm(x)))
    g.node("MatMul", g.norm(x), g.weight(WIDTH, WORDS), name="logits")
    g.save(path, inputs, [floats("logits", "batch", "new", WORDS), *outputs])


class Heddle:
    """The functions of the C interface that are needed here."""

    def __init__(self, library):
        self.c = ctypes.CDLL(str(library))
        for name in ("heddle_model_load", "heddle_options_new", "heddle_tensor_new", "heddle_tensor_data",
                     "heddle_tensor_shape"):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.c.heddle_tensor_rank.restype = ctypes.c_size_t
        self.c.heddle_error_message.restype = ctypes.c_char_p
        self.error = ctypes.c_void_p()

    def check(self, result):
        if not result:
            raise RuntimeError(self.c.heddle_error_message(self.error).decode())
        return result

    def load(self, path, shapes, threads):
        options = ctypes.c_void_p(self.c.heddle_options_new())
        error = ctypes.byref(self.error)
        self.check(self.c.heddle_options_set(options, b"threads", str(threads).encode(), error))
        for name, shape in shapes.items():
            extents = (ctypes.c_int64 * len(shape))(*shape)
            self.check(self.c.heddle_options_set_shape(options, name.encode(), extents, ctypes.c_size_t(len(shape)),
                                                       error))
        return ctypes.c_void_p(self.check(self.c.heddle_model_load(str(path).encode(), options, error)))

    def tensor(self, array):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        kind = 10 if array.dtype == numpy.int64 else 1
        made = self.c.heddle_tensor_new(kind, shape, ctypes.c_size_t(array.ndim), array.ctypes.data_as(ctypes.c_void_p),
                                        ctypes.byref(self.error))
        return ctypes.c_void_p(self.check(made))

    def run(self, model, inputs, count):
        """Output handles, which the caller frees."""
        names = (ctypes.c_char_p * len(inputs))(*[name.encode() for name in inputs])
        handles = (ctypes.c_void_p * len(inputs))(*[value.value for value in inputs.values()])
        outputs = (ctypes.c_void_p * count)()
        self.check(self.c.heddle_model_run(model, names, handles, ctypes.c_size_t(len(inputs)), outputs,
                                           ctypes.byref(self.error)))
        return [ctypes.c_void_p(output) for output in outputs]

    def free(self, tensors):
        for tensor in tensors:
            self.c.heddle_tensor_free(tensor)


def cpu_seconds():
    """Of this process and of the compilers that it has waited for: other work on the machine hardly counts."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def run_length(heddle, model, batch, length):
    ids = numpy.arange(batch * length, dtype=numpy.int64).reshape(batch, length) % WORDS
    inputs = {"ids": heddle.tensor(ids), "mask": heddle.tensor(numpy.ones_like(ids))}
    start = time.perf_counter()
    outputs = heddle.run(model, inputs, 1)
    seconds = time.perf_counter() - start
    heddle.free([*inputs.values(), *outputs])
    return seconds


def bench_lengths(heddle, path, arguments):
    model = heddle.load(path, {"ids": [1, 128], "mask": [1, 128]}, arguments.threads)
    lengths = random.Random(1).sample(range(1, 129), arguments.lengths)
    start = cpu_seconds()
    times = [run_length(heddle, model, 1, length) for length in lengths]
    cpu = cpu_seconds() - start
    heddle.c.heddle_model_free(model)
    return {"lengths": len(times), "total_s": sum(times), "cpu_s": cpu, "median_ms": 1e3 * statistics.median(times),
            "slowest_ms": 1e3 * max(times), "over_100_ms": sum(t > 0.1 for t in times)}


def bench_decoder(heddle, path, arguments):
    caches = [f"past_key_values.{layer}.{what}" for layer in range(2) for what in ("key", "value")]
    shapes = {"ids": [1, 1], **{name: [1, HEADS, 0, DEPTH] for name in caches}}
    model = heddle.load(path, shapes, arguments.threads)
    past = [heddle.tensor(numpy.zeros((1, HEADS, 0, DEPTH), numpy.float32)) for _ in caches]
    times, cpu = [], []
    for token in range(arguments.tokens):
        ids = heddle.tensor(numpy.full((1, 1), token % WORDS, numpy.int64))
        start, cpu_start = time.perf_counter(), cpu_seconds()
        logits, *present = heddle.run(model, {"ids": ids, **dict(zip(caches, past))}, 1 + len(caches))
        times.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (cpu_seconds() - cpu_start))
        heddle.free([ids, logits, *past])
        past = present
    heddle.free(past)
    heddle.c.heddle_model_free(model)
    later = sorted(times[2:])
    return {"tokens": len(times), "first_ms": times[:6], "median_ms": statistics.median(later),
            "median_cpu_ms": statistics.median(cpu[2:]),
            "p90_ms": later[int(0.9 * (len(later) - 1))], "slowest_ms": later[-1]}


def bench_memory(heddle, path, arguments):
    model = heddle.load(path, {"ids": [1, 128], "mask": [1, 128]}, arguments.threads)
    shapes = [(batch, length) for batch in range(1, 9) for length in range(1, 129)]
    random.Random(2).shuffle(shapes)
    megabytes = {}
    start = time.perf_counter()
    for count, (batch, length) in enumerate(shapes[: arguments.shapes], 1):
        run_length(heddle, model, batch, length)
        if count * 10 % arguments.shapes == 0:
            megabytes[count] = round(resident_mb(), 1)
    seconds = time.perf_counter() - start
    heddle.c.heddle_model_free(model)
    return {"resident_mb": megabytes, "total_s": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=ROOT / "build/release/libheddle.so", type=pathlib.Path)
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--lengths", default=50, type=int)
    parser.add_argument("--tokens", default=200, type=int)
    parser.add_argument("--shapes", default=1000, type=int)
    parser.add_argument("--only", choices=("lengths", "decoder", "memory"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEDDLE_CACHE_DIR"] = folder + "/cache"
        heddle = Heddle(arguments.library)
        encoder, decoder = folder + "/encoder.onnx", folder + "/decoder.onnx"
        write_encoder(encoder)
        write_decoder(decoder)
        parts = {"lengths": (bench_lengths, encoder), "decoder": (bench_decoder, decoder),
                 "memory": (bench_memory, encoder)}
        for name, (bench, path) in parts.items():
            if arguments.only in (None, name):
                print(json.dumps({name: bench(heddle, path, arguments)}), flush=True)


if __name__ == "__main__":
    main()
