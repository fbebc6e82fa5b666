#!/usr/bin/env python3
"""Small networks of few channels beside ONNX Runtime's on a CPU, f32: written with the layers of public face detectors,
low-light enhancers, segmenters and speech enhancers, with random weights. One line a network; the geometric mean and the
worst at the end.

usage: small_nets.py [--heddle PATH] [--threads N...] [--only SUBSTRING...] [--bursts N] [--processor-time] [--old PATH]
                     [--verify] [--output FILE]

The options are those of gathers.py."""

import numpy as np
from onnx import helper

from cpu_operators import main, model


class Net:
    """Appends layers to a graph; a layer takes and gives the name of a value and its channels."""

    def __init__(self, seed=1):
        self.draw, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def constant(self, value):
        name = f"k{len(self.constants)}"
        self.constants.append((name, np.asarray(value)))
        return name

    def op(self, kind, *inputs, out=None, outputs=1, **attributes):
        names = [out or f"v{len(self.nodes)}"] + [f"v{len(self.nodes)}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def random(self, *shape, scale=1.0):
        return (self.draw.standard_normal(shape) * scale).astype(np.float32)

    def conv(self, x, c, o, kernel=3, stride=1, groups=1, dilation=1, act="Relu", pads=None):
        kernel = [kernel] * 2 if isinstance(kernel, int) else list(kernel)
        stride = [stride] * 2 if isinstance(stride, int) else list(stride)
        w = self.random(o, c // groups, *kernel, scale=(2 / (c // groups * np.prod(kernel))) ** 0.5)
        same = [(n - 1) * dilation // 2 for n in kernel]
        y = self.op("Conv", x, self.constant(w), self.constant(self.random(o, scale=0.1)), strides=stride, group=groups,
                    pads=pads or same * 2, dilations=[dilation] * 2)
        return self.op(act, y) if act else y

    def separable(self, x, c, o, kernel=3, stride=1, dilation=1, act="Relu"):
        """A pointwise and a depthwise convolution, as YuNet has them."""
        x = self.conv(x, c, o, 1, act=None)
        return self.conv(x, o, o, kernel, stride, o, dilation, act)

    def upsample(self, x, factor=2):
        scales = self.constant(np.array([1, 1, factor, factor], np.float32))
        return self.op("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def result(self, x):
        return self.op("Identity", x, out="y")

    def model(self, *inputs):
        return model(self.nodes, list(inputs), self.constants)


def head(net, x, c, outputs):
    """Predictions as rows: [1, positions, outputs]."""
    y = net.separable(x, c, outputs, act=None)
    y = net.op("Transpose", y, perm=[0, 2, 3, 1])
    return net.op("Reshape", y, net.constant(np.array([1, -1, outputs], np.int64)))


def face_detector(size=320):
    """YuNet: a strided stem, separable units, a pyramid by nearest resizing and sums, heads of few channels."""
    net = Net()
    x = net.conv("x", 3, 16, 3, 2)
    x = net.separable(x, 16, 16)
    x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.separable(net.separable(x, 16, 32), 32, 64)
    x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    maps = []
    for _ in range(3):
        x = net.separable(net.separable(x, 64, 64), 64, 64)
        maps.append(x)
        x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    top = net.separable(maps[2], 64, 64)
    middle = net.separable(net.op("Add", maps[1], net.upsample(top)), 64, 64)
    bottom = net.separable(net.op("Add", maps[0], net.upsample(middle)), 64, 64)
    rows = []
    for level in bottom, middle, top:
        scores = net.op("Sigmoid", head(net, level, 64, 2))
        rows.append(net.op("Concat", scores, head(net, level, 64, 4), head(net, level, 64, 10), axis=2))
    net.result(net.op("Concat", *rows, axis=1))
    return net.model(("x", [1, 3, size, size]))


def shuffle_detector(size=352):
    """FastestDet: ShuffleNetV2 with 24 to 192 channels, one map joined from three, a separable head."""
    net = Net()

    def shuffle(x, c, extent):
        x = net.op("Reshape", x, net.constant(np.array([1, 2, c // 2, extent, extent], np.int64)))
        x = net.op("Transpose", x, perm=[0, 2, 1, 3, 4])
        return net.op("Reshape", x, net.constant(np.array([1, c, extent, extent], np.int64)))

    def unit(x, c, extent):
        a, b = net.op("Split", x, axis=1, outputs=2, num_outputs=2)
        b = net.conv(b, c // 2, c // 2, 1)
        b = net.conv(net.conv(b, c // 2, c // 2, 3, groups=c // 2, act=None), c // 2, c // 2, 1)
        return shuffle(net.op("Concat", a, b, axis=1), c, extent)

    def down(x, c, o, extent):
        a = net.conv(net.conv(x, c, c, 3, 2, c, act=None), c, o // 2, 1)
        b = net.conv(x, c, o // 2, 1)
        b = net.conv(net.conv(b, o // 2, o // 2, 3, 2, o // 2, act=None), o // 2, o // 2, 1)
        return shuffle(net.op("Concat", a, b, axis=1), o, extent)

    x = net.conv("x", 3, 24, 3, 2)
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    maps, c, extent = [], 24, size // 4
    for o, units in (48, 3), (96, 7), (192, 3):
        extent //= 2
        x = down(x, c, o, extent)
        for _ in range(units):
            x = unit(x, o, extent)
        c = o
        maps.append(x)
    first = net.op("AveragePool", maps[0], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = net.op("Concat", first, maps[1], net.upsample(maps[2]), axis=1)
    x = net.conv(x, 48 + 96 + 192, 96, 1)
    spread = [net.conv(x, 96, 96, 5, groups=96) for _ in range(2)]
    x = net.conv(net.op("Concat", x, *spread, axis=1), 288, 96, 1)
    scores = net.op("Sigmoid", net.conv(net.conv(x, 96, 96, 5, groups=96), 96, 1, 1, act=None))
    boxes = net.op("Tanh", net.conv(net.conv(x, 96, 96, 5, groups=96), 96, 4, 1, act=None))
    kinds = net.op("Softmax", net.conv(net.conv(x, 96, 96, 5, groups=96), 96, 80, 1, act=None), axis=1)
    net.result(net.op("Concat", scores, boxes, kinds, axis=1))
    return net.model(("x", [1, 3, size, size]))


def enhancer(height=360, width=640):
    """SCI: three convolutions of three channels estimate the light, by which the picture is divided."""
    net = Net()
    x = net.conv("x", 3, 3)
    for _ in range(3):
        x = net.op("Add", x, net.conv(x, 3, 3))
    light = net.op("Add", net.op("Sigmoid", net.conv(x, 3, 3, act=None)), "x")
    light = net.op("Clip", light, net.constant(np.float32(1e-4)), net.constant(np.float32(1)))
    net.result(net.op("Clip", net.op("Div", "x", light), net.constant(np.float32(0)), net.constant(np.float32(1))))
    return net.model(("x", [1, 3, height, width]))


def segmenter(size=256):
    """DeepLab's head on the first blocks of MobileNetV2: dilated convolutions in parallel, a resize to the picture."""
    net = Net()

    def block(x, c, o, stride=1, dilation=1):
        wide = 6 * c
        y = net.conv(net.conv(x, c, wide, 1), wide, wide, 3, stride, wide, dilation)
        y = net.conv(y, wide, o, 1, act=None)
        return net.op("Add", x, y) if c == o and stride == 1 else y

    x = net.conv("x", 3, 16, 3, 2)
    x = net.conv(net.conv(x, 16, 16, 3, groups=16), 16, 8, 1, act=None)
    x = block(block(x, 8, 12, 2), 12, 12)
    x = block(block(x, 12, 16, 2), 16, 16)
    x = block(block(x, 16, 24, 1, 2), 24, 24, 1, 2)
    branches = [net.conv(x, 24, 32, 1)] + [net.conv(x, 24, 32, 3, dilation=d) for d in (6, 12, 18)]
    pooled = net.conv(net.op("GlobalAveragePool", x), 24, 32, 1)
    shape = net.constant(np.array([1, 32, size // 8, size // 8], np.int64))
    x = net.op("Concat", *branches, net.op("Expand", pooled, shape), axis=1)
    x = net.conv(net.conv(x, 160, 32, 1), 32, 21, 1, act=None)
    sizes = net.constant(np.array([1, 21, size, size], np.int64))
    net.result(net.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel"))
    return net.model(("x", [1, 3, size, size]))


def speech_enhancer(frames=63, bands=129):
    """GTCRN: strided convolutions over bands, dilated ones over frames, GRUs along bands and frames, transposed ones."""
    net = Net()

    def gru(x, width):
        w, r = net.random(1, 3 * width, width, scale=0.2), net.random(1, 3 * width, width, scale=0.2)
        y = net.op("GRU", x, net.constant(w), net.constant(r), hidden_size=width, linear_before_reset=1, outputs=1)
        return net.op("Squeeze", y, net.constant(np.array([1], np.int64)))

    def recur(x, perm, back):
        return net.op("Transpose", gru(net.op("Transpose", x, perm=perm), 16), perm=back)

    x = net.conv("x", 3, 16, (1, 5), (1, 2))
    skips = [x]
    x = net.conv(x, 16, 16, (1, 5), (1, 2), groups=2)
    skips.append(x)
    for d in 1, 2, 5:
        y = net.conv(x, 16, 16, 1)
        y = net.conv(y, 16, 16, 3, groups=16, dilation=d)
        x = net.op("Add", x, net.conv(y, 16, 16, 1, act=None))
    shape = net.constant(np.array([16, frames, 33], np.int64))
    flat = net.op("Reshape", x, shape)
    flat = net.op("Add", flat, recur(flat, [2, 1, 0], [2, 1, 0]))
    flat = net.op("Add", flat, recur(flat, [1, 2, 0], [2, 0, 1]))
    x = net.op("Reshape", flat, net.constant(np.array([1, 16, frames, 33], np.int64)))
    for d in 5, 2, 1:
        y = net.conv(net.conv(x, 16, 16, 1), 16, 16, 3, groups=16, dilation=d)
        x = net.op("Add", x, net.conv(y, 16, 16, 1, act=None))
    for o in 16, 2:
        x = net.op("Add", x, skips.pop())
        w, b = net.random(16, o, 1, 5, scale=0.2), net.random(o, scale=0.1)
        x = net.op("ConvTranspose", x, net.constant(w), net.constant(b), strides=[1, 2], pads=[0, 2, 0, 2])
        x = net.op("Relu" if o == 16 else "Tanh", x)
    net.result(x)
    return net.model(("x", [1, 3, frames, bands]))


def nets():
    return {
        "face detector 320": face_detector(), "face detector 160": face_detector(160), "shuffle detector 352": shuffle_detector(),
        "enhancer 360x640": enhancer(), "segmenter 256": segmenter(), "speech enhancer 63x129": speech_enhancer(),
    }


if __name__ == "__main__":
    main(__doc__, nets())
