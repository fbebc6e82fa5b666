#!/usr/bin/env python3
"""Runs trained models in ONNX Runtime with Heddle's provider: ort_trained.py HEDDLE LIBRARY --into build/trained

The models are those of trained_models.py, which downloads them once. Inputs are random, in the shapes for which `heddle inspect` plans.
Prints a line a model: how many nodes the provider took, and how far the results are from those of `heddle run` and of ONNX Runtime alone.
They are wrong if they are far from both: some models amplify the rounding of either. The exit code is the number of models with wrong
results.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from heddle_command import Heddle  # noqa: E402
from trained_models import PACKAGES, fetch  # noqa: E402

TOLERANCE = 1e-4  # of the largest magnitude of the output
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "bool": bool, "u8": np.uint8}


def random_inputs(heddle, model):
    """By name; None if Heddle has no shapes for the model."""
    done = subprocess.run([heddle, "inspect", str(model), "--json"], capture_output=True, text=True, check=False)
    generator, inputs = np.random.default_rng(3), {}
    for port in json.loads(done.stdout)["inputs"] if done.returncode == 0 else []:
        dtype = DTYPES.get(port["type"].split("[")[0])
        if dtype is None or port.get("shape") is None:
            return None
        inputs[port["name"]] = (generator.standard_normal(port["shape"]) if np.dtype(dtype).kind == "f" else
                                generator.integers(0, 2, port["shape"])).astype(dtype)
    return inputs or None


def session(model, devices=()):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if devices:
        options.add_provider_for_devices(devices, {})
    return onnxruntime.InferenceSession(str(model), options, providers=None if devices else ["CPUExecutionProvider"], enable_fallback=0)


def distance(results, others):
    worst = 0.0
    for a, b in zip(results, others):
        if a.shape != b.shape:
            return float("inf")
        if a.size:
            a, b = a.astype(np.float64), b.astype(np.float64)
            worst = max(worst, float(np.abs(a - b).max()) / max(float(np.abs(b).max()), 1e-2))
    return worst


def check(heddle, model, devices):
    """(the line, whether the results are wrong)"""
    inputs = random_inputs(heddle, model)
    if inputs is None:
        return "no shapes", False
    try:
        expected = session(model).run(None, inputs)
    except Exception as error:  # every class that ONNX Runtime raises derives from it alone
        return f"not run by ONNX Runtime: {str(error).splitlines()[0][:120]}", False
    made = session(model, devices)
    parts = made.get_provider_graph_assignment_info()
    taken = sum(len(part.get_nodes()) for part in parts if part.ep_name == "HeddleExecutionProvider")
    nodes = sum(len(part.get_nodes()) for part in parts)
    results = made.run(None, inputs)
    by_name = Heddle(heddle).run(model, inputs)
    own = distance(results, [by_name[output.name.replace("/", "_")] for output in made.get_outputs()])
    other = distance(results, expected)
    return f"{taken} of {nodes} nodes, differs by {own:.1e} from heddle run, {other:.1e} from ONNX Runtime", min(own, other) > TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder of the downloads")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    onnxruntime.register_execution_provider_library("heddle", str(arguments.library.resolve()))
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_metadata.get("target") == "cpu"]
    wrong = 0
    for package in PACKAGES:
        for model in fetch(package, arguments.into):
            line, is_wrong = check(arguments.heddle.resolve(), model, devices)
            wrong += is_wrong
            print(f"{'WRONG' if is_wrong else 'right':6} {package.split('==')[0]}/{model.name}: {line}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
