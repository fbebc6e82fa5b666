"""Runs a model by ONNX Runtime: ort_worker.py MODEL THREADS [LIBRARY]

With LIBRARY, libheddle_ort.so, the session has Heddle's provider.

Loads the model, prints one JSON line {"version", "load_s"}, then for each line "SECONDS" on standard input runs for
that long and prints {"times_ms", "cpu_times_ms", "peak_bytes"}. Ends with standard input."""

import json
import resource
import sys
import time

import numpy as np
import onnx
import onnxruntime

FEWEST_RUNS = 3


def random_inputs(path, seed=0):
    """By the input's type; index inputs stay below the range that the zoo notes in the model's metadata."""
    model = onnx.load(path, load_external_data=False)
    ranges = {
        p.key.removeprefix("range:"): int(p.value.split(",")[1])
        for p in model.metadata_props
        if p.key.startswith("range:")
    }
    generator, inputs = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name in ranges:
            inputs[value.name] = generator.integers(0, ranges[value.name], shape).astype(np.int64)
        else:
            inputs[value.name] = generator.standard_normal(shape).astype(np.float32)
    return inputs


def burst(session, inputs, seconds):
    """Milliseconds of each run within about `seconds`: wall time, and processor time over all threads."""
    session.run(None, inputs)
    times, cpu_times, end = [], [], time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < end:
        start, cpu_start = time.perf_counter(), time.process_time()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1e3)
        cpu_times.append((time.process_time() - cpu_start) * 1e3)
    return times, cpu_times


def main():
    path, threads = sys.argv[1], int(sys.argv[2])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    if len(sys.argv) > 3:
        onnxruntime.register_execution_provider_library("heddle", sys.argv[3])
        devices = [device for device in onnxruntime.get_ep_devices() if device.ep_metadata.get("target") == "cpu"]
        options.add_provider_for_devices(devices, {"threads": str(threads)})
        providers = None
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=providers, enable_fallback=0)
    print(json.dumps({"version": onnxruntime.__version__, "load_s": time.perf_counter() - start}), flush=True)
    inputs = random_inputs(path)
    for line in sys.stdin:
        times, cpu_times = burst(session, inputs, float(line))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"times_ms": times, "cpu_times_ms": cpu_times, "peak_bytes": peak}), flush=True)


if __name__ == "__main__":
    main()
