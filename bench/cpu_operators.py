"""Operators on a CPU as models of one node beside ONNX Runtime's: what gathers.py, conv_cpu.py and pools.py share.

Bursts of all sides alternate; a time is the median over bursts of each burst's median."""

import argparse
import datetime
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper, numpy_helper

from cpu_models import OrtWorker
from report_gpu import geometric_mean


def model(nodes, inputs, constants=()):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    graph = helper.make_graph(nodes, "operator", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


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


def main(description, cases, random_case=None):
    """`cases`: models by name; `random_case(draw)` makes a further one: its name and model."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--old")
    if random_case:
        parser.add_argument("--random", type=int, default=0)
        parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--verify", action="store_true")
    output = pathlib.Path("build/bench") / f"{pathlib.Path(sys.argv[0]).stem}.json"
    parser.add_argument("--output", type=pathlib.Path, default=output)
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    if random_case and options.random:
        draw = random.Random(options.seed)
        cases = dict(random_case(draw) for _ in range(options.random))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in cases.items():
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
