#!/usr/bin/env python3
"""Convolutions beside ONNX Runtime's on a CPU, f32: few channels, depthwise, first layers, dilations, sequences. One line
a case; the geometric mean and the worst at the end.

usage: conv_cpu.py [--heddle PATH] [--random N] [--seed N] [--threads N...] [--only SUBSTRING...] [--bursts N]
                   [--processor-time] [--old PATH] [--verify] [--output FILE]

The options are those of gathers.py. A case is a model of one convolution with a bias; those named `chain` are several in
a row, so that what lies between them need not be in ONNX's layout."""

import numpy as np
from onnx import helper

from cpu_operators import main, model


def layer(draw, into, out, index, channels, filters, kernel, stride=1, pad=None, dilation=1, groups=1, relu=False):
    """Nodes and constants of a convolution with a bias, and a ReLU behind it."""
    w = draw.standard_normal([filters, channels // groups, *kernel]).astype(np.float32)
    w /= np.float32(np.sqrt(channels // groups * np.prod(kernel)))
    names = [f"w{index}", f"b{index}"]
    pads = [(n - 1) * dilation // 2 if pad is None else pad for n in kernel]
    middle = f"c{index}" if relu else out
    nodes = [helper.make_node("Conv", [into, *names], [middle], strides=[stride] * len(kernel), pads=pads * 2,
                              dilations=[dilation] * len(kernel), group=groups)]
    if relu:
        nodes.append(helper.make_node("Relu", [middle], [out]))
    return nodes, list(zip(names, [w, draw.standard_normal(filters).astype(np.float32)]))


def conv(batch, channels, extents, filters, kernel, **options):
    nodes, constants = layer(np.random.default_rng(1), "x", "y", 0, channels, filters, [kernel] * len(extents), **options)
    return model(nodes, [("x", [batch, channels, *extents])], constants)


def depthwise(batch, channels, extents, kernel, **options):
    return conv(batch, channels, extents, channels, kernel, groups=channels, **options)


def chain(channels, size, layers):
    """`layers`: (filters, kernel, options) each, with a ReLU behind all but the last."""
    draw, nodes, constants, at, c = np.random.default_rng(1), [], [], "x", channels
    for i, (filters, kernel, options) in enumerate(layers):
        last = i + 1 == len(layers)
        more, values = layer(draw, at, "y" if last else f"x{i}", i, c, filters, [kernel] * 2, relu=not last, **options)
        nodes += more
        constants += values
        at, c = f"x{i}", filters
    return model(nodes, [("x", [1, channels, size, size])], constants)


def cases():
    square = lambda n: (n, n)  # noqa: E731
    found = {}
    for c, o, n in (8, 32, 128), (8, 32, 256), (3, 3, 512), (16, 16, 160), (32, 8, 128), (24, 6, 56), (4, 64, 64):
        found[f"1x1 {c}->{o} {n}x{n}"] = conv(1, c, square(n), o, 1)
    for c, n, k, s in (10, 128, 3, 1), (10, 128, 3, 2), (3, 512, 3, 1), (24, 80, 5, 1), (32, 112, 3, 2), (96, 28, 3, 1):
        found[f"depthwise {c} {n}x{n} k{k} s{s}"] = depthwise(1, c, square(n), k, stride=s)
    for c, o, n, k, s in ((3, 24, 224, 3, 2), (3, 16, 640, 3, 2), (3, 32, 320, 3, 2), (1, 8, 256, 3, 2), (3, 16, 224, 7, 2),
                          (3, 3, 256, 3, 1), (3, 3, 720, 3, 1), (1, 1, 512, 5, 1), (8, 8, 128, 3, 1), (16, 16, 96, 3, 1),
                          (24, 24, 256, 3, 1), (6, 10, 100, 3, 1), (16, 2, 160, 3, 1), (64, 3, 128, 3, 1)):
        found[f"{c}->{o} {n}x{n} k{k} s{s}"] = conv(1, c, square(n), o, k, stride=s)
    for d in 8, 32, 64:
        found[f"24->24 256x256 k3 d{d}"] = conv(1, 24, square(256), 24, 3, dilation=d)
    found["64->64 64x64 k3 d4"] = conv(1, 64, square(64), 64, 3, dilation=4)
    found["depthwise 64 64x64 k3 d4"] = depthwise(1, 64, square(64), 3, dilation=4)
    found["depthwise 8x512x4096 k31"] = depthwise(8, 512, (4096,), 31)
    found["depthwise 1x256x1000 k7"] = depthwise(1, 256, (1000,), 7)
    found["16->16 16000 k9"] = conv(1, 16, (16000,), 16, 9)
    found["8->8 16x32x32 k3"] = conv(1, 8, (16, 32, 32), 8, 3)
    found["groups 16->16 97x65 k3 g4"] = conv(1, 16, (97, 65), 16, 3, groups=4)
    pair = [(16, 3, {"groups": 16}), (16, 1, {})]
    found["chain 3->16 s2, separable 16 at 160"] = chain(3, 320, [(16, 3, {"stride": 2}), *pair, *pair])
    found["chain 3->3 at 256"] = chain(3, 256, [(3, 3, {})] * 4)
    found["chain 8->8 at 128"] = chain(8, 128, [(8, 3, {})] * 4)
    found["chain 24->24 dilated at 128"] = chain(24, 128, [(24, 3, {"dilation": d}) for d in (1, 2, 4, 8)])
    return found


def random_case(draw):
    channels, filters = (draw.choice([1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48]) for _ in range(2))
    rank = draw.choice([1, 2, 2, 2, 2, 3])
    most = {1: 20000, 2: 260, 3: 32}[rank]
    extents = tuple(draw.randint(most // 8, most) for _ in range(rank))
    kernel = draw.choice([1, 3, 3, 3, 5, 7] if rank < 3 else [1, 3])
    options = {"stride": draw.choice([1, 1, 1, 2, 3])}
    if kernel > 1:
        options["dilation"] = draw.choice([1, 1, 1, 2, 5, 16])
        options["pad"] = draw.choice([0, kernel // 2 * options["dilation"]])
    kind = draw.choice(["dense", "dense", "depthwise", "groups"])
    if kind == "depthwise":
        filters = options["groups"] = channels
    if kind == "groups":
        options["groups"] = 2
        channels, filters = 2 * channels, 2 * filters
    if any(n + 2 * options.get("pad", 0) < (kernel - 1) * options.get("dilation", 1) + 1 for n in extents):
        return random_case(draw)
    batch = draw.choice([1, 1, 2])
    name = f"{batch}x{channels}x{'x'.join(map(str, extents))} to {filters} k{kernel} {options}"
    return name, conv(batch, channels, extents, filters, kernel, **options)


if __name__ == "__main__":
    main(__doc__, cases(), random_case)
