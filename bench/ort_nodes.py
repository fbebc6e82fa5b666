#!/usr/bin/env python3
"""Runs the official ONNX node tests through ONNX Runtime with Heddle's provider: ort_nodes.py LIBRARY DATA [PATTERN...] [--target cuda:0].

LIBRARY: libheddle_ort.so; DATA: the folder onnx/backend/test/data/node of the package onnx; PATTERN: part of a test's name. Prints
each test whose results are wrong with the provider but not without it, then how many nodes the provider took. A test that ONNX
Runtime itself does not load is not counted.
"""

import argparse
import collections
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(np.float64): 1e-5}


def options(devices):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 4
    if devices:
        made.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        made.add_provider_for_devices(devices, {"regions": "all"})
    return made


def session(path, devices):
    providers = None if devices else ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(path, options(devices), providers=providers, enable_fallback=0)


def tensors(folder, kind, infos):
    """The values of input_*.pb or output_*.pb by name; None if one is no tensor."""
    values = {}
    for i, info in enumerate(infos):
        file = folder / f"{kind}_{i}.pb"
        if not file.exists() or "tensor" not in info.type or "optional" in info.type or "seq" in info.type:
            return None
        values[info.name] = numpy_helper.to_array(onnx.load_tensor(file))
    return values


def differs(actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return True
    if expected.dtype.kind in "OUS":
        return not np.array_equal(actual.astype(str), expected.astype(str))
    tolerance = TOLERANCE.get(expected.dtype, 2e-3)
    return not np.allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


def run(session_of_test, folder):
    """Whether each data set of a test gives the expected results; None if the session has inputs that are no tensors."""
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = tensors(data, "input", session_of_test.get_inputs())
        outputs = tensors(data, "output", session_of_test.get_outputs())
        if inputs is None or outputs is None:
            return None
        for actual, (_, expected) in zip(session_of_test.run(list(outputs), inputs), outputs.items()):
            if differs(actual, expected):
                return False
    return True


def attempt(path, devices):
    """(what became of it, the session)"""
    try:
        made = session(str(path / "model.onnx"), devices)
        result = run(made, path)
    except Exception as error:  # every class that ONNX Runtime raises derives from it alone
        return str(error).splitlines()[0], None
    return {True: "right", False: "wrong", None: "no tensors"}[result], made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("patterns", nargs="*", default=[""])
    parser.add_argument("--target", default="cpu", help="the device")
    arguments = parser.parse_args()
    onnxruntime.register_execution_provider_library("heddle", str(arguments.library.resolve()))
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_metadata.get("target") == arguments.target]
    counts = collections.Counter()
    failures = 0
    for folder in sorted(arguments.data.iterdir()):
        if not any(pattern in folder.name for pattern in arguments.patterns):
            continue
        plain, _ = attempt(folder, [])
        if plain not in ("right", "wrong"):
            counts["not run by ONNX Runtime"] += 1
            continue
        result, made = attempt(folder, devices)
        if made is not None:
            for part in made.get_provider_graph_assignment_info():
                counts[f"nodes of {part.ep_name}"] += len(part.get_nodes())
        counts[f"{result}, {plain} without the provider" if result in ("right", "wrong") else "failed"] += 1
        if result != "right" and plain == "right":
            failures += 1
            print(f"{folder.name}: {result}", flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
