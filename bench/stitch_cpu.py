#!/usr/bin/env python3
"""The stitch suite on the CPU: Heddle with --fusion stitch, basic and none against ONNX Runtime, f32.

For each case and thread count bursts of every contestant follow each other in turn; a figure is the median over bursts
of each burst's median. The floor is what the case has to move (inputs and outputs once) at the copy bandwidth that
this script measures; cases that fit into the caches can be below it. On a machine that does other work,
--processor-time compares the processor time of runs on one thread instead of wall time."""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench/stitch")]

import make_cases  # noqa: E402
import onnx_models  # noqa: E402
from cpu_models import OrtWorker, commit, device, spread  # noqa: E402
from heddle_command import Heddle  # noqa: E402

POLICIES = ["stitch", "basic", "none"]


def copy_bandwidth(threads, clock, megabytes=256, rounds=7):
    """Bytes read and written a second of `clock`, over `threads` threads that copy arrays of their own."""
    pairs = [(np.ones(megabytes << 17), np.zeros(megabytes << 17)) for _ in range(threads)]
    seconds = []
    for _ in range(rounds):
        workers = [threading.Thread(target=np.copyto, args=(to, source)) for source, to in pairs]
        start = clock()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds.append(clock() - start)
    return 2 * threads * (megabytes << 20) / statistics.median(seconds)


def compulsory_bytes(path):
    import onnx

    graph = onnx.load(path).graph
    return 4 * sum(
        int(np.prod([d.dim_value for d in value.type.tensor_type.shape.dim])) for value in [*graph.input, *graph.output]
    )


def time_case(name, model, threads, arguments, bandwidth):
    heddle = Heddle(arguments.heddle)
    times = {policy: [] for policy in [*POLICIES, "ort"]}
    kernels = {}
    with tempfile.TemporaryDirectory() as folder, OrtWorker(model, threads) as worker:
        source = ROOT / "bench/stitch" / f"{name}.hir"
        plans = {policy: pathlib.Path(folder) / f"{policy}.plan" for policy in POLICIES}
        for policy, plan in plans.items():
            options = ("--fusion", policy, "--threads", threads)
            heddle("compile", source, *options, "-o", plan)
            kernels[policy] = json.loads(heddle("explain", source, *options, "--json").output)["kernels"]
        for _ in range(arguments.bursts):
            for policy, plan in plans.items():
                result = heddle.bench(plan, threads, arguments.seconds)
                times[policy].append(result["cpu_ms" if arguments.processor_time else "p50_ms"])
            burst = worker.burst(arguments.seconds)
            times["ort"].append(
                statistics.median(burst["cpu_times_ms" if arguments.processor_time else "times_ms"])
            )
    row = {"case": name, "threads": threads, "floor_ms": compulsory_bytes(model) / bandwidth * 1e3, "kernels": kernels}
    for contestant, values in times.items():
        row[f"{contestant}_ms"] = statistics.median(values)
        row[f"{contestant}_spread"] = spread(values)
    row["over_ort"] = row["ort_ms"] / row["stitch_ms"]
    row["over_basic"] = row["basic_ms"] / row["stitch_ms"]
    print(
        f"{name:28} {threads} thr: floor {row['floor_ms']:8.3f}  stitch {row['stitch_ms']:8.3f} ({kernels['stitch']})  "
        f"basic {row['basic_ms']:8.3f} ({kernels['basic']})  none {row['none_ms']:8.3f} ({kernels['none']})  "
        f"ort {row['ort_ms']:8.3f} ms   over ort {row['over_ort']:5.2f}, over basic {row['over_basic']:5.2f}, "
        f"of the floor {row['floor_ms'] / row['stitch_ms']:4.0%}",
        flush=True,
    )
    return row


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=pathlib.Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--only", nargs="+", choices=make_cases.CASES, help="these cases alone")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bursts", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a burst")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--keep", metavar="NAME", help="write bench/results/NAME.json instead of a file in build/bench")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.processor_time:
        arguments.threads = [1]
    import onnxruntime  # only for its version

    result = {
        "kind": "stitch_cpu",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "device": device(),
        "load_before": os.getloadavg()[0],
        "onnxruntime": onnxruntime.__version__,
        "time": "processor" if arguments.processor_time else "wall",
        "copy_gbps": {},
        "rows": [],
    }
    for threads in arguments.threads:
        bandwidth = copy_bandwidth(threads, time.process_time if arguments.processor_time else time.perf_counter)
        result["copy_gbps"][threads] = bandwidth * 1e-9
        print(f"copy bandwidth on {threads} thread(s): {bandwidth * 1e-9:.1f} GB/s")
        rows = []
        for name in arguments.only or make_cases.CASES:
            model = ROOT / "build/bench/stitch" / f"{name}.onnx"
            onnx_models.write(make_cases.CASES[name], model)
            rows.append(time_case(name, model, threads, arguments, bandwidth))
        result["rows"] += rows
        for rival in ("ort", "basic"):
            ratios = [row[f"over_{rival}"] for row in rows]
            mean = statistics.geometric_mean(ratios)
            result[f"geometric_mean_over_{rival}_{threads}"] = mean
            print(f"{threads} thread(s): geometric mean over {rival} {mean:.2f}, lowest {min(ratios):.2f}")

    path = ROOT / "bench/results" / f"{arguments.keep}.json"
    if not arguments.keep:
        path = ROOT / "build/bench" / f"stitch_cpu-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
