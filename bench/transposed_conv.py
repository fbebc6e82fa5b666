#!/usr/bin/env python3
"""Transposed convolutions beside PyTorch's on a GPU (cuDNN) or ONNX Runtime's on a CPU: one line per shape, the geometric mean
and the worst at the end.

usage: transposed_conv.py [--heddle PATH] [--target cpu|cuda] [--threads N] [--output FILE] [--only SUBSTRING...] [--bursts N]
                          [--processor-time]

Bursts of both alternate; a time is the median of all runs. On a GPU values are f16, both sides are CUDA graphs with a cold L2, and
images and volumes have their channels last, as within a network; sequences, and all on a CPU, where values are f32, have them first.
`--processor-time` compares the processor time of runs on a CPU, for a machine that does other work. The output is written after each
shape, so that a run which is cut leaves what it has. Exit status 1 where a result is wrong."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from report_gpu import geometric_mean

Case = collections.namedtuple("Case", "batch channels extents filters kernel stride pad output_pad dilation groups",
                              defaults=[0, 0, 1, 1])


def cases():
    """Up-convolutions of UNets, generators and depth heads, vocoders, volumes."""
    return [
        Case(4, 512, (32, 32), 256, 2, 2), Case(4, 256, (64, 64), 128, 2, 2), Case(4, 128, (128, 128), 64, 2, 2),
        Case(8, 256, (32, 32), 128, 4, 2, 1), Case(1, 64, (32, 32), 32, 4, 2, 1), Case(16, 512, (8, 8), 256, 4, 2, 1),
        Case(8, 256, (32, 32), 128, 3, 2, 1, 1), Case(1, 64, (112, 112), 64, 3, 2, 1, 1), Case(2, 128, (48, 48), 3, 9, 4, 4, 3),
        Case(1, 256, (24, 24), 256, 4, 4), Case(4, 96, (56, 56), 48, 8, 4, 2), Case(1, 384, (14, 14), 64, 16, 16),
        Case(8, 64, (32, 32), 3, 4, 2, 1), Case(2, 21, (64, 64), 21, 16, 8, 4, 0, 1, 21), Case(8, 128, (32, 32), 128, 4, 2, 1, 0, 1, 32),
        Case(8, 64, (64, 64), 64, 2, 2, 0, 0, 1, 4), Case(2, 64, (40, 40), 32, 3, 2, 2, 1, 2), Case(1, 512, (100,), 256, 16, 8, 4),
        Case(1, 256, (800,), 128, 16, 8, 4), Case(1, 128, (6400,), 64, 4, 2, 1), Case(4, 64, (2000,), 32, 5, 3, 1),
        Case(1, 64, (16, 16, 16), 32, 2, 2), Case(1, 128, (8, 16, 16), 64, 4, 2, 1), Case(2, 32, (12, 12, 12), 16, 3, 2, 1, 1),
    ]


def text_of(case):
    text = f"{case.batch}x{case.channels}x{'x'.join(map(str, case.extents))} to {case.filters} k{case.kernel} s{case.stride}"
    for name, letter, usual in ("pad", "p", 0), ("output_pad", "op", 0), ("dilation", "d", 1), ("groups", "g", 1):
        text += f" {letter}{getattr(case, name)}" if getattr(case, name) != usual else ""
    return text


def weights(case, dtype):
    draw, rank = np.random.default_rng(1), len(case.extents)
    w = draw.standard_normal([case.channels, case.filters // case.groups] + [case.kernel] * rank) / np.sqrt(case.channels)
    return w.astype(dtype), draw.standard_normal(case.filters).astype(dtype)


def has_channels_last(case, dtype):
    return dtype == np.float16 and len(case.extents) > 1


def write_model(case, dtype, path):
    rank = len(case.extents)
    w, b = weights(case, dtype)
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[case.stride] * rank, pads=[case.pad] * 2 * rank,
                            output_padding=[case.output_pad] * rank, dilations=[case.dilation] * rank, group=case.groups)
    nodes, shape = [node], [case.batch, case.channels, *case.extents]
    if has_channels_last(case, dtype):
        shape = [case.batch, *case.extents, case.channels]
        node.input[0], node.output[0] = "x first", "y first"
        nodes = [helper.make_node("Transpose", ["x"], ["x first"], perm=[0, rank + 1, *range(1, rank + 1)]), node,
                 helper.make_node("Transpose", ["y first"], ["y"], perm=[0, *range(2, rank + 2), 1])]
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    graph = helper.make_graph(nodes, "transposed", [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info("y", kind, [None] * (rank + 2))],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class PyTorch:
    """A CUDA graph; the filters lie in either order, of which the faster counts."""

    def __init__(self, case):
        import torch
        self.torch, rank = torch, len(case.extents)
        w, b = (torch.from_numpy(t).cuda() for t in weights(case, np.float16))
        x = torch.randn([case.batch, case.channels, *case.extents], device="cuda").half()
        function = getattr(torch.nn.functional, f"conv_transpose{rank}d")
        options = {"stride": case.stride, "padding": case.pad, "output_padding": case.output_pad, "groups": case.groups,
                   "dilation": case.dilation}
        filters = {"eager": w}
        if rank > 1:
            layout = torch.channels_last if rank == 2 else torch.channels_last_3d
            x = x.to(memory_format=layout)
            filters["filters with channels last"] = w.to(memory_format=layout)
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        torch.backends.cudnn.benchmark = True
        self.graphs = {}
        for name, order in filters.items():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side), torch.no_grad():
                for _ in range(3):
                    function(x, order, b, **options)
            torch.cuda.synchronize()
            self.graphs[name] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graphs[name]), torch.no_grad():
                function(x, order, b, **options)

    def burst(self):
        torch, times = self.torch, {name: [] for name in self.graphs}
        for _ in range(12):
            for name, graph in self.graphs.items():
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.flush.zero_()
                start.record()
                graph.replay()
                end.record()
                end.synchronize()
                times[name].append(start.elapsed_time(end))
        return {name: values[1:] for name, values in times.items()}

    def close(self):
        self.graphs.clear()


class OnnxRuntime:
    def __init__(self, model, options):
        from cpu_models import OrtWorker
        self.worker = OrtWorker(model, options.threads)
        self.field = "cpu_times_ms" if options.processor_time else "times_ms"

    def burst(self):
        return {"ONNX Runtime": self.worker.burst(0.3)[self.field]}

    def close(self):
        self.worker.__exit__()


def heddle_json(options, command, *arguments):
    run = subprocess.run([options.heddle, command, *map(str, arguments), "--target", options.target, "--json"],
                         capture_output=True, text=True, timeout=300)
    return json.loads(run.stdout) if run.returncode == 0 else {"failure": (run.stderr or run.stdout).strip()[:300]}


def measure(options, case, model):
    on_gpu = options.target == "cuda"
    write_model(case, np.float16 if on_gpu else np.float32, model)
    threads = [] if on_gpu else ["--threads", options.threads]
    row = {"kind": "transposed", "case": text_of(case)}
    verified = subprocess.run([options.heddle, "verify", model, "--target", options.target], capture_output=True, text=True)
    if verified.returncode != 0:
        row["failure"] = (verified.stderr or verified.stdout).strip()[-300:]
    rival = PyTorch(case) if on_gpu else OnnxRuntime(model, options)
    ours, theirs = [], collections.defaultdict(list)
    for _ in range(options.bursts):
        for name, times in rival.burst().items():
            theirs[name] += times
        result = heddle_json(options, "bench", model, *threads, "--seconds", 0.3)
        if "failure" in result:
            row["failure"] = result["failure"]
            break
        usual = result["cpu_ms" if options.processor_time else "p50_ms"]
        ours.append(result.get("device_cold_p50_ms", usual))
        row["floor_ms"] = result["floor_ms"]
    rival.close()
    row["rivals"] = {name: statistics.median(times) for name, times in theirs.items()}
    row["heddle_ms"] = statistics.median(ours) if ours else 0
    row["ratio"] = min(row["rivals"].values()) / row["heddle_ms"] if ours else 0
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--target", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/transposed_conv.json"))
    parser.add_argument("--only", nargs="+", default=[""], help="shapes whose text has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    print("shape | Heddle us | times its floor | rivals us | rival / Heddle")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            if not any(word in text_of(case) for word in options.only):
                continue
            rows.append(row := measure(options, case, pathlib.Path(folder) / "model.onnx"))
            theirs = ", ".join(f"{name} {ms * 1e3:.1f}" for name, ms in row["rivals"].items())
            floors = row["heddle_ms"] / max(row.get("floor_ms", 0), 1e-9)
            print(f"{row['case']} | {row['heddle_ms'] * 1e3:.1f} | {floors:.1f} | {theirs} | {row['ratio']:.3f}"
                  f"{' FAILED ' + row['failure'] if 'failure' in row else ''}", flush=True)
            options.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1))
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if ratios:
        print(f"rival / Heddle: geometric mean {geometric_mean(ratios):.3f} over {len(ratios)} shapes, worst {min(ratios):.3f}")
    sys.exit(any("failure" in row for row in rows))


if __name__ == "__main__":
    main()
