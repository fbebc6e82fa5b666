#!/usr/bin/env python3
"""Compares the throughput of all GPUs of a host with that of one. Threads of one process call a model on each GPU.

usage: serve_devices.py [--targets TARGET...] [--model MODEL.onnx] [--threads N] [--seconds S] [--precision P] [--output FILE]

A target may be named several times; by default there is one for each GPU. The model (ResNet-50 of the zoo, batch 8, by default) is
compiled for the first target. The others find its plan in the cache. --threads is the number of threads for each target. The
throughput of the first target and that of all targets are measured in turns, three times; the medians are printed. The exit status
is 1 if results differ between targets."""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import heddle

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}  # of inputs


def gpus():
    import ctypes

    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        sys.exit("the driver reports no GPU: name --targets")
    return [f"cuda:{number}" for number in range(count.value)]


def inputs_of(model):
    random = np.random.default_rng(0)
    return [random.standard_normal(port.shape).astype(TYPES[port.dtype]) for port in model.inputs]


def runs_a_second(models, inputs, threads, seconds):
    """The throughput of all models together. Each thread calls one model again and again."""
    end, counts = time.perf_counter() + seconds, [0] * len(models) * threads

    def call(index):
        model = models[index % len(models)]
        while time.perf_counter() < end:
            model(*inputs)
            counts[index] += 1
    workers = [threading.Thread(target=call, args=(index,)) for index in range(len(counts))]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", help="writes the model")
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--output")
    options = parser.parse_args()
    targets = options.targets or gpus()
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or f"{folder}/model.onnx"
        if not options.model:
            subprocess.run([options.heddle, "zoo", "resnet50", "--batch", "8", "-o", path], check=True, stdout=subprocess.DEVNULL)
        models, seconds = [], []
        for target in targets:
            start = time.perf_counter()
            models.append(heddle.compile(path, target=target, precision=options.precision))
            seconds.append(round(time.perf_counter() - start, 3))
        inputs = inputs_of(models[0])
        results = [np.asarray(found[0] if isinstance(found, tuple) else found) for found in (model(*inputs) for model in models)]
        one, all_of_them = [], []
        for _ in range(3):
            one.append(runs_a_second(models[:1], inputs, options.threads, options.seconds))
            all_of_them.append(runs_a_second(models, inputs, options.threads, options.seconds))
    same = all(np.array_equal(results[0], other) for other in results[1:])
    row = {"date": datetime.date.today().isoformat(), "targets": targets, "compile_s": seconds, "one": statistics.median(one),
           "all": statistics.median(all_of_them), "same": same}
    row["over_one"] = row["all"] / row["one"] / len(targets)
    print(f"prepared in {', '.join(map(str, seconds))} s; {targets[0]} {row['one']:.1f} runs a second, {len(targets)} together "
          f"{row['all']:.1f}: {row['over_one']:.3f} of {len(targets)} times one; results are {'the same' if same else 'DIFFERENT'}")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(row, indent=1))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
