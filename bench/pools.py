#!/usr/bin/env python3
"""Pooling of images with channels first beside ONNX Runtime's on a CPU, f32: sliding windows, long averages, strides. One
line a case; the geometric mean and the worst at the end.

usage: pools.py [--heddle PATH] [--random N] [--seed N] [--threads N...] [--only SUBSTRING...] [--bursts N]
                [--processor-time] [--old PATH] [--verify] [--output FILE]

The options are those of gathers.py."""

from onnx import helper

from cpu_operators import main, model


def pool(kind, batch, channels, extents, kernel, stride=1, pad=0):
    rank = len(extents)
    more = {"count_include_pad": 1} if kind == "AveragePool" else {}
    node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[kernel] * rank, strides=[stride] * rank, pads=[pad] * 2 * rank, **more)
    return model([node], [("x", [batch, channels, *extents])])


def cases():
    found = {}
    for kind, c, n, k, s in (("Max", 128, 20, 5, 1), ("Max", 128, 20, 13, 1), ("Max", 64, 64, 3, 1), ("Max", 64, 112, 3, 2),
                             ("Max", 32, 160, 2, 2), ("Max", 3, 224, 3, 2), ("Average", 64, 64, 31, 1), ("Average", 64, 64, 3, 1),
                             ("Average", 128, 28, 2, 2), ("Average", 16, 100, 5, 3)):
        found[f"{kind.lower()} {c} {n}x{n} k{k} s{s}"] = pool(f"{kind}Pool", 1, c, (n, n), k, s, 0 if k == 2 else k // 2)
    found["max 64 4000 k5 s1"] = pool("MaxPool", 1, 64, (4000,), 5, 1, 2)
    found["average 16 16x32x32 k3 s1"] = pool("AveragePool", 1, 16, (16, 32, 32), 3, 1, 1)
    return found


def random_case(draw):
    rank = draw.choice([1, 2, 2, 2, 3])
    most = {1: 8000, 2: 160, 3: 32}[rank]
    extents = tuple(draw.randint(most // 8, most) for _ in range(rank))
    kernel = draw.choice([2, 3, 3, 5, 7, 13] if rank < 3 else [2, 3])
    kernel = min(kernel, *extents)
    arguments = (draw.choice(["MaxPool", "AveragePool"]), draw.choice([1, 1, 2]), draw.choice([1, 3, 8, 16, 24, 64, 100, 128]), extents,
                 kernel, draw.choice([1, 1, 2, 3]), draw.choice([0, kernel // 2]))
    return f"pool {arguments}", pool(*arguments)


if __name__ == "__main__":
    main(__doc__, cases(), random_case)
