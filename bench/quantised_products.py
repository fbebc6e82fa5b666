#!/usr/bin/env python3
"""Products with constant weights of few bits beside ONNX Runtime's on a CPU: MatMulNBits with f32 rows (level 0) and with
rows rounded to 8 bits (level 4), MatMulBnb4, and MatMul in f32 for comparison. One line a case; the geometric mean and
the worst at the end.

usage: quantised_products.py [--heddle PATH] [--random N] [--seed N] [--threads N...] [--only SUBSTRING...] [--bursts N]
                             [--processor-time] [--old PATH] [--verify] [--output FILE]

The options are those of gathers.py."""

import numpy
from onnx import TensorProto, helper, numpy_helper

from cpu_operators import main


def one_node(node, rows, k, constants, domain="com.microsoft"):
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)] if domain else [helper.make_opsetid("", 20)]
    graph = helper.make_graph([node], "operator", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, k])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def scales(random, shape):
    return random.uniform(0.005, 0.02, shape).astype(numpy.float32)


def of_few_bits(rows, k, n, bits=4, block=32, level=0, zeros=False):
    random = numpy.random.default_rng(1)
    blocks = -(-k // block)
    constants = {"w": random.integers(0, 256, (n, blocks, block * bits // 8), dtype=numpy.uint8), "s": scales(random, (n, blocks))}
    if zeros:
        constants["z"] = random.integers(0, 256, (n, -(-blocks * bits // 8)), dtype=numpy.uint8)
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block,
                            accuracy_level=level)
    return one_node(node, rows, k, constants)


def of_table(rows, k, n, block=64):
    random = numpy.random.default_rng(1)
    constants = {"w": random.integers(0, 256, n * k // 2, dtype=numpy.uint8), "s": scales(random, n * k // block)}
    node = helper.make_node("MatMulBnb4", ["x", "w", "s"], ["y"], domain="com.microsoft", K=k, N=n, block_size=block, quant_type=1)
    return one_node(node, rows, k, constants)


def of_floats(rows, k, n):
    weights = numpy.random.default_rng(1).standard_normal((k, n)).astype(numpy.float32)
    return one_node(helper.make_node("MatMul", ["x", "w"], ["y"]), rows, k, {"w": weights}, "")


def cases():
    found = {}
    for n, k in ((4096, 4096), (11008, 4096), (4096, 14336)):
        for rows in (1, 8, 64):
            for level in (4, 0):
                found[f"{rows}x{n}x{k} 4 bits level {level}"] = of_few_bits(rows, k, n, level=level)
            found[f"{rows}x{n}x{k} f32"] = of_floats(rows, k, n)
    for rows in (1, 8):
        found[f"{rows}x4096x4096 4 bits zeros level 4"] = of_few_bits(rows, 4096, 4096, level=4, zeros=True)
        found[f"{rows}x4096x4096 4 bits block 128 level 4"] = of_few_bits(rows, 4096, 4096, block=128, level=4)
        found[f"{rows}x4096x4096 8 bits level 4"] = of_few_bits(rows, 4096, 4096, bits=8, level=4)
        found[f"{rows}x4096x4096 table"] = of_table(rows, 4096, 4096)
    return found


def random_case(draw):
    bits, block = draw.choice([4, 4, 8]), draw.choice([16, 32, 64, 128, 256])
    arguments = (draw.choice([1, 2, 3, 5, 8, 17, 64, 100]), draw.randint(100, 6000), draw.randint(100, 6000), bits, block,
                 draw.choice([0, 4]), draw.choice([False, True]))
    return f"few bits {arguments}", of_few_bits(*arguments)


if __name__ == "__main__":
    main(__doc__, cases(), random_case)
