#!/usr/bin/env python3
"""Sessions of ONNX Runtime with Heddle on a GPU, inputs and outputs bound to device memory: ort_gpu.py HEDDLE LIBRARY

For each model, of the zoo or an ONNX file, in f16 and in short bursts in turn: a session's run, one that replays a graph (graph_capture), and `enqueue` by the
Python package and PyTorch where both are there; else the GPU's time of `heddle bench`. Each run is waited for. Times are medians over
bursts of each burst's median, in us of the host's clock. A session is near if it takes 3% or 20 us more.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

from ort_worker import random_inputs

MODELS = ["resnet18", "resnet50", "mobilenet-v2", "vit-b16", "bert-base"]
PLACE = ("gpu", 0, 0x10DE)
BURSTS, SECONDS, FEWEST = 5, 0.2, 5
SLACK, SLACK_US = 0.03, 20.0


def burst(run):
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < FEWEST or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def session_run(model, devices, inputs, outputs, **provider):
    """(a function that runs a session, its outputs in device memory); `outputs`: arrays like them"""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices(devices, {"precision": "f16", **provider})
    session = onnxruntime.InferenceSession(model, options, enable_fallback=0)
    binding = session.io_binding()
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value, *PLACE) for name, value in inputs.items()}
    made = [onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), value.dtype, *PLACE) for value in outputs]
    for name, value in given.items():
        binding.bind_ortvalue_input(name, value)
    for port, value in zip(session.get_outputs(), made):
        binding.bind_ortvalue_output(port.name, value)

    def run(held=given):  # the binding does not keep the inputs
        session.run_with_iobinding(binding)

    for _ in range(3):
        run()
    return run, made


def enqueue_run(model, inputs):
    """None where the package is missing."""
    try:
        import heddle
        import torch
    except ImportError:
        return None
    compiled = heddle.compile(model, target="cuda", precision="f16")
    arrays = [torch.from_numpy(inputs[port.name]).cuda() for port in compiled.inputs]
    results = compiled(*arrays)
    out = results if isinstance(results, tuple) else (results,)
    workspace = torch.empty(max(compiled.workspace_bytes(*(tuple(array.shape) for array in arrays)), 1), dtype=torch.uint8, device="cuda")

    def run():
        compiled(*arrays, out=out, workspace=workspace)
        torch.cuda.synchronize()

    run()
    return run


def device_us(heddle, model):
    done = subprocess.run([heddle, "bench", model, "--target", "cuda", "--precision", "f16", "--seconds", "0.5", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["device_p50_ms"] * 1e3


def measure(heddle, name, model, devices):
    inputs = random_inputs(model)
    outputs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)
    alone, results = session_run(model, devices, inputs, outputs)
    replay, replayed = session_run(model, devices, inputs, outputs, graph_capture="1")
    for a, b in zip(results, replayed):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    runs = [alone, replay]
    enqueue = enqueue_run(model, inputs)
    if enqueue is not None:
        runs.append(enqueue)
    times = [statistics.median(column) for column in zip(*([burst(run) for run in runs] for _ in range(BURSTS)))]
    bar = times[2] if enqueue is not None else device_us(heddle, model)
    near = lambda t: t <= bar * (1 + SLACK) or t <= bar + SLACK_US
    row = {"model": name, "session_us": times[0], "replay_us": times[1], "bar_us": bar, "bar": "enqueue" if enqueue else "device",
           "near": near(times[0]), "replay_near": near(times[1])}
    print(f"{name:14} session {times[0]:9.1f} us, replay {times[1]:9.1f}, {row['bar']} {bar:9.1f}: {'near' if row['near'] else 'FAR'}, "
          f"{'near' if row['replay_near'] else 'FAR'}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    onnxruntime.register_execution_provider_library("heddle", str(arguments.library.resolve()))
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_metadata.get("target") == "cuda:0"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            model = name if name.endswith(".onnx") else f"{folder}/model.onnx"
            if model != name:
                subprocess.run([arguments.heddle, "zoo", name, "-o", model], check=True, capture_output=True)
            rows.append(measure(arguments.heddle, pathlib.Path(name).stem, model, devices))
            if arguments.output:
                arguments.output.write_text(json.dumps(rows, indent=1) + "\n")
    return not all(row["near"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
