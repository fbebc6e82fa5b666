#!/usr/bin/env python3
"""Operators that read an image at computed places beside ONNX Runtime's on a CPU: GridSample, RoiAlign, DeformConv,
Resize and hand-written gathers in f32. One line a case; the geometric mean and the worst at the end.

usage: gathers.py [--heddle PATH] [--random N] [--seed N] [--threads N...] [--only SUBSTRING...] [--bursts N]
                  [--processor-time] [--old PATH] [--verify] [--output FILE]

Bursts of all sides alternate; a time is the median over bursts of each burst's median. `--random N` draws N shapes and
modes instead of the fixed list. `--processor-time` compares the processor time of runs, for a machine that does other
work; `--old` times another build, too. Exit status 1 where a result is wrong."""

import numpy as np
from onnx import helper

from cpu_operators import main, model


def grid_sample(batch, channels, extents, out, mode="linear", padding="zeros", align=0):
    # Standard normal numbers lie within and without [-1, 1].
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding, align_corners=align)
    return model([node], [("x", [batch, channels, *extents]), ("g", [batch, *out, len(extents)])])


def roi_align(channels, extents, rois, pooled, ratio=2, mode="avg", batch=1):
    draw = np.random.default_rng(1)
    corner = draw.uniform(0, 0.6, [rois, 2]) * extents[::-1]
    size = draw.uniform(0.1, 0.4, [rois, 2]) * extents[::-1]
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    node = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=pooled, output_width=pooled,
                            sampling_ratio=ratio, mode=mode, spatial_scale=1.0)
    return model([node], [("x", [batch, channels, *extents])],
                 [("r", boxes), ("b", draw.integers(0, batch, rois).astype(np.int64))])


def deform_conv(batch, channels, extents, filters, kernel=3, stride=1, groups=1, mask=False):
    out = [(n + 2 * (kernel // 2) - kernel) // stride + 1 for n in extents]
    taps = kernel * kernel
    w = np.random.default_rng(1).standard_normal([filters, channels // groups, kernel, kernel]).astype(np.float32)
    inputs = [("x", [batch, channels, *extents]), ("o", [batch, 2 * taps, *out])]
    names = ["x", "w", "o"]
    if mask:
        inputs.append(("m", [batch, taps, *out]))
        names += ["", "m"]
    node = helper.make_node("DeformConv", names, ["y"], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4,
                            strides=[stride] * 2, group=groups)
    return model([node], inputs, [("w", w / np.float32(np.sqrt(channels * taps)))])


def resize(shape, sizes, mode="linear", coordinates="half_pixel", last=False):
    """`shape` and `sizes`: channels first; `last`: the image has channels last."""
    if last:
        shape, sizes = (list(s[:1]) + list(s[2:]) + [s[1]] for s in (shape, sizes))
    more = {"nearest_mode": "floor"} if mode == "nearest" else {}
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=coordinates,
                            **more)
    return model([node], [("x", list(shape))], [("s", np.array(sizes, np.int64))])


def gather_sum(rows, columns, picks):
    """Two gathers along rows by one table, scaled and added: what no operator of ONNX stands for."""
    table = np.random.default_rng(1).integers(0, columns, [2, picks]).astype(np.int64)
    nodes = [helper.make_node("Gather", ["x", "a"], ["p"], axis=1), helper.make_node("Gather", ["x", "b"], ["q"], axis=1),
             helper.make_node("Mul", ["p", "w"], ["s"]), helper.make_node("Add", ["s", "q"], ["y"])]
    return model(nodes, [("x", [rows, columns]), ("w", [picks])], [("a", table[0]), ("b", table[1])])


def cases():
    nearest = {"mode": "nearest", "coordinates": "asymmetric"}
    return {
        "grid 64ch 64x64": grid_sample(1, 64, (64, 64), (64, 64)),
        "grid nearest 64ch 64x64": grid_sample(1, 64, (64, 64), (64, 64), "nearest"),
        "grid cubic 16ch 64x64": grid_sample(1, 16, (64, 64), (64, 64), "cubic"),
        "grid 3ch 256x256": grid_sample(1, 3, (256, 256), (256, 256), "linear", "border", 1),
        "grid 3d 8ch 16x32x32": grid_sample(1, 8, (16, 32, 32), (16, 32, 32)),
        "roi 64ch 50x50 100": roi_align(64, (50, 50), 100, 7),
        "roi 256ch 50x50 100": roi_align(256, (50, 50), 100, 7),
        "roi max 64ch 14x14": roi_align(64, (50, 50), 40, 14, 2, "max"),
        "deform 32ch 32x32": deform_conv(1, 32, (32, 32), 32),
        "deform mask 64ch 56x56": deform_conv(1, 64, (56, 56), 64, mask=True),
        "resize nearest 2x 64ch 64x64": resize((1, 64, 64, 64), (1, 64, 128, 128), **nearest),
        "resize nearest 64ch 80x80 to 100x90": resize((1, 64, 80, 80), (1, 64, 100, 90), **nearest),
        "resize linear 2x 64ch 64x64": resize((1, 64, 64, 64), (1, 64, 128, 128)),
        "resize linear 64ch 64x64 to 96x96": resize((1, 64, 64, 64), (1, 64, 96, 96)),
        "resize linear half 64ch 64x64": resize((1, 64, 64, 64), (1, 64, 32, 32)),
        "resize linear 1ch 128x128 to 512x512": resize((1, 1, 128, 128), (1, 1, 512, 512)),
        "resize linear last 64ch 64x64 to 96x96": resize((1, 64, 64, 64), (1, 64, 96, 96), last=True),
        "resize linear last 3ch 224x224 to 300x300": resize((1, 3, 224, 224), (1, 3, 300, 300), last=True),
        "resize cubic 16ch 64x64 to 96x96": resize((1, 16, 64, 64), (1, 16, 96, 96), "cubic"),
        "gather sum 512x1024": gather_sum(512, 1024, 768),
    }


def random_case(draw):
    extent = lambda low=8, high=96: draw.randint(low, high)  # noqa: E731
    channels = draw.choice([1, 2, 3, 8, 16, 24, 32, 64, 100, 128])
    size = (extent(), extent())
    kind = draw.choice(["grid", "grid", "grid3", "roi", "deform", "resize", "resize", "resize", "gather"])
    if kind == "grid":
        arguments = (draw.choice([1, 2]), channels, size, (extent(), extent()), draw.choice(["nearest", "linear", "cubic"]),
                     draw.choice(["zeros", "border", "reflection"]), draw.choice([0, 1]))
        return f"grid {arguments}", grid_sample(*arguments)
    if kind == "grid3":
        arguments = (1, channels, tuple(extent(4, 20) for _ in range(3)), tuple(extent(4, 20) for _ in range(3)),
                     draw.choice(["nearest", "linear"]))
        return f"grid {arguments}", grid_sample(*arguments)
    if kind == "roi":
        arguments = (channels, size, draw.choice([1, 10, 50, 100]), draw.choice([5, 7, 14]), draw.choice([1, 2, 3]),
                     draw.choice(["avg", "avg", "max"]))
        return f"roi {arguments}", roi_align(*arguments)
    if kind == "deform":
        channels = max(channels, 2)
        arguments = (1, channels, size, draw.choice([8, 32, 64]), draw.choice([1, 3, 5]), draw.choice([1, 2]), 1,
                     draw.choice([False, True]))
        return f"deform {arguments}", deform_conv(*arguments)
    if kind == "gather":
        arguments = (draw.choice([16, 100, 512]), draw.choice([64, 500, 2000]), draw.choice([64, 333, 1000]))
        return f"gather {arguments}", gather_sum(*arguments)
    factor = draw.choice([0.5, 2, 3, 4, 0])
    to = [int(n * factor) if factor else extent(8, 160) for n in size]
    mode = draw.choice(["nearest", "linear", "linear", "cubic"])
    coordinates = draw.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    # ONNX Runtime resizes images with channels last in linear mode only.
    last = mode == "linear" and draw.random() < 0.3
    arguments = ((1, channels, *size), (1, channels, *to), mode, coordinates, last)
    return f"resize {arguments}", resize(*arguments)


if __name__ == "__main__":
    main(__doc__, cases(), random_case)
