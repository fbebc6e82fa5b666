#!/usr/bin/env python3
"""Kernels of the tile language on the CPU beside the compiler's own for the same operator, alternating, with all threads: softmax and layer
norm of rows, matrix products, f32. One JSON line a case; the time of each is the median of its bursts' fastest runs.

usage: PYTHONPATH=build/release/python python3 bench/tile_cpu.py > tile_cpu.jsonl
Needs onnx, which writes the models.
"""
import json
import math
import statistics
import time

import heddle
import heddle.tile as triton
import numpy as np
from onnx import TensorProto, helper

import tile_kernels

BURSTS, SECONDS = 7, 0.3
random = np.random.default_rng(0)


def array(*shape):
    return random.standard_normal(shape).astype(np.float32)


def compiled(op, inputs, shape, **attributes):
    """A model of one node; the first of `inputs` is its input, the others are constants of it."""
    names = [f"x{i}" for i in range(len(inputs))]
    constants = [helper.make_tensor(name, TensorProto.FLOAT, value.shape, value.tobytes(), raw=True) for name, value in zip(names[1:], inputs[1:])]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "case",
                              [helper.make_tensor_value_info("x0", TensorProto.FLOAT, inputs[0].shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    out = np.empty(shape, np.float32)
    call = heddle.compile(model)
    return lambda: call(inputs[0], out=out), out


def softmax(m, n):
    x, y = array(m, n), np.empty((m, n), np.float32)
    block = triton.next_power_of_2(n)
    return lambda: tile_kernels.softmax[(m,)](x, y, n, B=block), y, *compiled("Softmax", [x], (m, n), axis=-1)


def layer_norm(m, n):
    x, w, b, y = array(m, n), array(n), array(n), np.empty((m, n), np.float32)
    block = triton.next_power_of_2(n)
    return (lambda: tile_kernels.layer_norm[(m,)](x, w, b, y, n, 1e-5, B=block), y,
            *compiled("LayerNormalization", [x, w, b], (m, n), axis=-1, epsilon=1e-5))


def even(extent, most, multiple):
    """The extent of tiles that cut `extent` into equal parts of at most `most`, rounded up to a multiple."""
    return triton.cdiv(triton.cdiv(extent, triton.cdiv(extent, most)), multiple) * multiple


def matmul(m, n, k):
    """The best of some tiles, the last one fitted to the shape; B lies by columns, as the kernel wants it."""
    a, b, y = array(m, k), array(n, k), np.empty((m, n), np.float32)
    best = None
    for tile in (32, 32, 32), (64, 64, 64), (128, 64, 64), (128, 128, 64), (128, 128, 128), (even(m, 128, 4), even(n, 128, 16), even(k, 96, 16)):
        words = dict(zip(("BM", "BN", "BK"), tile), G=8)
        run = lambda words=words: tile_kernels.matmul[(triton.cdiv(m, words["BM"]) * triton.cdiv(n, words["BN"]),)](a, b, y, m, n, k, **words)
        run()
        taken = burst(run)
        best = min(best or (taken, run), (taken, run), key=lambda pair: pair[0])
    return best[1], y, *compiled("MatMul", [a, np.ascontiguousarray(b.T)], (m, n))


def burst(run):
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    ratios = []
    for function, shape in ((softmax, (4096, 1024)), (softmax, (512, 32000)), (softmax, (1000, 1000)), (layer_norm, (4096, 1024)),
                            (layer_norm, (512, 32000)), (layer_norm, (3000, 700)), (matmul, (512, 512, 512)), (matmul, (1024, 1024, 1024)),
                            (matmul, (200, 300, 400))):
        tile, result, model, expected = function(*shape)
        tile(), model()
        error = float(abs(result - expected).max() / max(1.0, abs(expected).max()))
        times = {"tile": [], "compiler": []}
        for _ in range(BURSTS):
            times["tile"].append(burst(tile))
            times["compiler"].append(burst(model))
        us = {name: round(statistics.median(values) * 1e6, 1) for name, values in times.items()}
        ratios.append(us["compiler"] / us["tile"])
        print(json.dumps({"case": f"{function.__name__} {'x'.join(map(str, shape))}", **us, "compiler / tile": round(ratios[-1], 3), "error": error}),
              flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(json.dumps({"geometric mean": round(mean, 3), "lowest": round(min(ratios), 3)}))


if __name__ == "__main__":
    main()
