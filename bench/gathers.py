#!/usr/bin/env python3
"""Operators that read an image at computed places beside ONNX Runtime's on a CPU: GridSample, RoiAlign, DeformConv,
Resize and hand-written gathers in f32. One line a case; the geometric mean and the worst at the end.

usage: gathers.py [--heddle PATH] [--random N] [--seed N] [--threads N...] [--only SUBSTRING...] [--bursts N]
                  [--processor-time] [--old PATH] [--verify] [--output FILE]

Bursts of all sides alternate; a time is the median over bursts of each burst's median. `--random N` draws N shapes and
modes instead of the fixed list. `--processor-time` compares the processor time of runs, for a machine that does other
work; `--old` times another build, too. Exit status 1 where a result is wrong."""

import argparse
import datetime
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cpu_models import OrtWorker
from report_gpu import geometric_mean


def model(nodes, inputs, constants=()):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    graph = helper.make_graph(nodes, "gathers", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


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


def burst(heddle, plan, threads, field):
    run = subprocess.run([heddle, "bench", plan, "--target", "cpu", "--threads", str(threads), "--seconds", "0.25",
                          "--json"], capture_output=True, text=True, timeout=300)
    return json.loads(run.stdout)[field] if run.returncode == 0 else sys.exit(run.stderr)


def measure(options, name, graph, path):
    onnx.save(graph, path)
    row = {"case": name}
    if options.verify:
        verified = subprocess.run([options.heddle, "verify", path, "--target", "cpu"], capture_output=True, text=True)
        if verified.returncode != 0:
            row["failure"] = (verified.stderr or verified.stdout).strip()[-300:]
    ours, theirs = ("cpu_ms", "cpu_times_ms") if options.processor_time else ("p50_ms", "times_ms")
    builds = {"heddle": options.heddle, **({"old": options.old} if options.old else {})}
    for threads in options.threads:
        times = {side: [] for side in [*builds, "ort"]}
        with OrtWorker(path, threads) as worker:
            for _ in range(options.bursts):
                for side, build in builds.items():
                    times[side].append(burst(build, path, threads, ours))
                times["ort"].append(statistics.median(worker.burst(0.25)[theirs]))
        row[str(threads)] = {side: statistics.median(values) for side, values in times.items()}
        row[str(threads)]["ratio"] = row[str(threads)]["ort"] / row[str(threads)]["heddle"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--old")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/gathers.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(options.seed)
    drawn = dict(random_case(draw) for _ in range(options.random)) if options.random else cases()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in drawn.items():
            if not any(word in name for word in options.only):
                continue
            rows.append(row := measure(options, name, graph, pathlib.Path(folder) / "model.onnx"))
            for threads in map(str, options.threads):
                t = row[threads]
                old = f"{t['old']:8.3f} | " if "old" in t else ""
                print(f"{name:52} | {threads} | {old}{t['heddle']:8.3f} | {t['ort']:8.3f} | {t['ratio']:6.2f}"
                      f"{' FAILED ' + row['failure'] if 'failure' in row else ''}", flush=True)
            options.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1))
    ratios = [row[str(threads)]["ratio"] for row in rows for threads in options.threads]
    if ratios:
        print(f"ONNX Runtime / Heddle: geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}")
    sys.exit(any("failure" in row for row in rows))


if __name__ == "__main__":
    main()
