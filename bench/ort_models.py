#!/usr/bin/env python3
"""Models in ONNX Runtime with Heddle's provider: ort_models.py HEDDLE LIBRARY [--models NAME...] [--threads N...]

HEDDLE: the command; LIBRARY: libheddle_ort.so; NAME: of a zoo model, or an ONNX file. For each model and number of threads, in short bursts in turn: ONNX Runtime alone, with
the provider, and `heddle bench`. A time is the median over bursts of each burst's tenth percentile, since other programs disturb the
rest; processor time is the median over bursts of their medians. Prints a row each, then the geometric mean of how many times as fast a
session is with the provider, and the lowest.
"""

import argparse
import datetime
import json
import math
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from cpu_models import OrtWorker  # noqa: E402
from heddle_command import Heddle  # noqa: E402

MODELS = ["resnet18", "resnet50", "repvgg-a0", "mobilenet-v2", "vit-b16", "bert-base", "transformer", "t5-small", "asr", "crnn", "dien"]
SECONDS = 1.0  # of a burst
SLACK, SLACK_MS = 0.03, 0.02  # a session may take this much longer than `heddle bench`


def burst_of(worker):
    """Milliseconds of a run, and of processor time."""
    burst = worker.burst(SECONDS)
    times = sorted(burst["times_ms"])
    return times[len(times) // 10], statistics.median(burst["cpu_times_ms"])


def bench_of(heddle, plan, threads):
    result = heddle.bench(plan, threads, SECONDS)
    return result["p10_ms"], result["cpu_ms"]


def measure(heddle, library, name, model, threads, count):
    with tempfile.TemporaryDirectory() as folder, OrtWorker(model, threads) as alone, OrtWorker(model, threads, library) as ours:
        plan = pathlib.Path(folder) / "model.plan"
        heddle.compile(model, plan, threads)
        sides = [lambda: burst_of(alone), lambda: burst_of(ours), lambda: bench_of(heddle, plan, threads)]
        bursts = [[side() for side in sides] for _ in range(count)]
    (a, a_cpu), (b, b_cpu), (c, c_cpu) = ([statistics.median(times) for times in zip(*side)] for side in zip(*bursts))
    near = "" if b <= c * (1 + SLACK) + SLACK_MS else f", {b / c - 1:.1%} over heddle bench"
    print(f"{name:14} {threads} thread(s): alone {a:8.3f} ms ({a_cpu:8.3f} of processors), with the provider {b:8.3f} ({b_cpu:8.3f}), "
          f"heddle bench {c:8.3f} ({c_cpu:8.3f}); {a / b:.2f} times as fast, {a_cpu / b_cpu:.2f} by processor time{near}", flush=True)
    return {"model": name, "threads": threads, "alone_ms": a, "provider_ms": b, "bench_ms": c, "alone_cpu_ms": a_cpu, "provider_cpu_ms": b_cpu,
            "bench_cpu_ms": c_cpu, "near": not near}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bursts", type=int, default=5)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    heddle = Heddle(arguments.heddle)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            is_file = name.endswith(".onnx")
            model = pathlib.Path(name) if is_file else pathlib.Path(folder) / f"{name}.onnx"
            if not is_file:
                heddle("zoo", name, "-o", model)
            rows += [measure(heddle, str(arguments.library.resolve()), model.stem, model, threads, arguments.bursts)
                     for threads in arguments.threads]
            if not is_file:
                model.unlink()
    ratios = [row["alone_ms"] / row["provider_ms"] for row in rows]
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    print(f"geometric mean {mean:.2f}, lowest {min(ratios):.2f}")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
