#!/usr/bin/env python3
"""The products and convolutions of a model on the CPU one by one: Heddle beside ONNX Runtime, same machine, same threads.

usage: cpu_layers.py MODEL.onnx [--heddle PATH] [--threads N...] [--bursts N] [--seconds S] [--precision f32|bf16]
                     [--top N]

Times are those of kernels within runs of the whole model: `heddle explain --measure` and ONNX Runtime's profiler, in
turns, medians of all runs. A kernel of Heddle stands beside all nodes of ONNX Runtime whose results it computes. The
table has the kernels for which Heddle loses most, then the sums of each form of kernel."""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "bench"))

from heddle_command import Heddle  # noqa: E402


def ort_times(path, threads, seconds):
    """Seconds of each node in the runs of a burst: name -> list. ONNX Runtime names a fused node after one of its nodes
    or after a result of one."""
    import time

    import onnx
    import onnxruntime

    from ort_worker import random_inputs

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(folder, "profile")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs = random_inputs(path)
        session.run(None, inputs)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            session.run(None, inputs)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    graph = onnx.load(path, load_external_data=False).graph
    producers = {value: node.name for node in graph.node for value in node.output}
    times = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = re.sub("(_nchwc|_token_[0-9]+)$", "", event["name"].removesuffix("_kernel_time"))
            times[producers.get(name, name)].append(event["dur"] * 1e-6)
    return {name: values[1:] for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a burst of ONNX Runtime")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--top", type=int, default=15)
    options = parser.parse_args()
    heddle = Heddle(options.heddle)
    for threads in options.threads:
        ours, theirs, about = collections.defaultdict(list), collections.defaultdict(list), {}
        for _ in range(options.bursts):
            report = json.loads(heddle("explain", options.model, "--target", "cpu", "--threads", threads, "--measure",
                                       "--json", "--precision", options.precision).output)
            for group in report["groups"]:
                kernel = group["kernels"][-1] if group["kernels"] else {"label": "reference", "algorithm": "", "tasks": 1}
                key = group["nodes"]
                ours[key].append(group["measured_s"])
                about[key] = (kernel["label"].split(" + ")[0], kernel["algorithm"] or "region", kernel["tasks"])
            for name, values in ort_times(options.model, threads, options.seconds).items():
                theirs[name] += values
        group_of = {}
        for key in ours:  # a constant that several nodes share has the name of the first one
            for name in key.split(", "):
                group_of.setdefault(name, key)
        sums, left, last = collections.defaultdict(float), 0.0, ""
        for name, values in theirs.items():
            # Long lists of nodes end with "... (9 nodes)". Nodes that are left out follow one that is listed.
            last = group_of.get(name, last if last.endswith(" nodes)") else "")
            if last:
                sums[last] += statistics.median(values)
            else:
                left += statistics.median(values)
        rows = [(key, statistics.median(values), sums[key]) for key, values in ours.items()]
        print(f"{options.model}, {threads} thread(s): Heddle {sum(r[1] for r in rows) * 1e3:.2f} ms, ONNX Runtime "
              f"{(sum(r[2] for r in rows) + left) * 1e3:.2f} ms, of which no kernel of Heddle's "
              f"{left * 1e3:.2f} ms")
        forms = collections.defaultdict(lambda: [0, 0.0, 0.0])
        for key, mine, other in rows:
            form = forms[about[key][1]]
            form[0], form[1], form[2] = form[0] + 1, form[1] + mine, form[2] + other
        for key, mine, other in sorted(rows, key=lambda r: r[2] - r[1])[: options.top]:
            label, form, tasks = about[key]
            print(f"  {label:44.44} {form:9} {tasks:4} tasks {mine * 1e6:8.0f} us {other * 1e6:8.0f} us  {other / mine:5.2f}")
        for form, (count, mine, other) in sorted(forms.items()):
            print(f"  all {count} {form}: {mine * 1e3:.2f} ms, ONNX Runtime {other * 1e3:.2f} ms, {other / mine:.2f}")


if __name__ == "__main__":
    main()
