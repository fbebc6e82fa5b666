#!/usr/bin/env python3
"""Products with constant weights of 4 or 8 bits beside f16 on a GPU: chains of products with distinct weights, each one CUDA graph.
A chain alternates between a shape and its transpose. One line a shape and number of rows: the GPU's time of a product with
each number of bits, and how many times as fast the fewest bits are.

usage: packed_products.py [--heddle PATH] [--shapes NxK...] [--rows N...] [--bits N...] [--products N] [--megabytes N] [--jobs N]
                          [--seconds S] [--folder PATH] [--output FILE] [--prepare]

A chain has --products products, fewer where their weights exceed --megabytes, at least 4. Plans are compiled ahead, --jobs
at a time, and kept in the folder; --prepare stops after that, and needs no GPU."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
MICROSOFT = "com.microsoft"
BLOCK = 32


def chain(n, k, bits, products):
    """Rows of k numbers in f16 through `products` products."""
    random = numpy.random.default_rng(1)
    nodes, constants, value = [], [], "x"
    for i in range(products):
        columns, depth = (n, k) if i % 2 == 0 else (k, n)
        if bits == 16:
            weights = (random.random((depth, columns), dtype=numpy.float32) - 0.5) * (3.4 / numpy.sqrt(depth))
            constants.append(numpy_helper.from_array(weights.astype(numpy.float16), f"w{i}"))
            nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
        else:
            words = random.integers(0, 256, (columns, depth // BLOCK, BLOCK * bits // 8), dtype=numpy.uint8)
            scales = (random.random((columns, depth // BLOCK), dtype=numpy.float32) + 0.5) * 3 / (1 << bits) / numpy.sqrt(depth)
            constants += [numpy_helper.from_array(words, f"w{i}"), numpy_helper.from_array(scales.astype(numpy.float16), f"s{i}")]
            nodes.append(helper.make_node("MatMulNBits", [value, f"w{i}", f"s{i}"], [f"y{i}"], domain=MICROSOFT, N=columns, K=depth,
                                          bits=bits, block_size=BLOCK))
        value = f"y{i}"
    last = n if products % 2 == 1 else k
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["rows", k])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT16, ["rows", last])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)], ir_version=10)


def command(options, *arguments):
    done = subprocess.run([str(a) for a in (options.heddle, *arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"heddle {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def products_of(options, n, k, bits):
    return max(4, min(options.products, options.megabytes * 8_000_000 // (n * k * bits)))


def model_of(options, n, k, bits):
    path = options.folder / f"{n}x{k}-{bits}-{products_of(options, n, k, bits)}.onnx"
    if not path.exists():
        onnx.save(chain(n, k, bits, products_of(options, n, k, bits)), path, save_as_external_data=True, location=path.name + ".data")
    return path


def plan_of(options, n, k, bits, rows):
    model = model_of(options, n, k, bits)
    plan = model.with_suffix(f".{rows}.plan")
    if not plan.exists():
        command(options, "compile", model, "--target", "cuda", "--shape", f"x={rows},{k}", "--threads", 2, "-o", plan)
    return plan


def each(options, function, cases):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda case: function(options, *case), cases))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--shapes", nargs="+", default=["4096x4096", "11008x4096", "4096x14336"], metavar="NxK")
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--bits", nargs="+", type=int, default=[4, 16], choices=[4, 8, 16])
    parser.add_argument("--products", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=0.3, help="of a measurement")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/bench/packed_products")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE", help="the rows as JSON")
    parser.add_argument("--prepare", action="store_true", help="write models and plans only")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    each(options, model_of, [(n, k, bits) for bits in options.bits for n, k in shapes])
    each(options, plan_of, [(n, k, bits, rows) for bits in options.bits for n, k in shapes for rows in options.rows])
    if options.prepare:
        return
    found = []
    print(f"{'rows x n x k':>18} | " + " | ".join(f"{bits:2} bits us" for bits in options.bits) + " | ratio")
    for n, k in shapes:
        for rows in options.rows:
            us = {}
            for bits in options.bits:
                result = command(options, "bench", plan_of(options, n, k, bits, rows), "--target", "cuda", "--json", "--seconds", options.seconds)
                us[bits] = json.loads(result)["device_p50_ms"] * 1e3 / products_of(options, n, k, bits)
            found.append({"rows": rows, "n": n, "k": k, "us": us})
            print(f"{f'{rows}x{n}x{k}':>18} | " + " | ".join(f"{us[bits]:10.2f}" for bits in options.bits) +
                  f" | {us[max(us)] / us[min(us)]:5.2f}", flush=True)
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
