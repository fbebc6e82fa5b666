"""Runs a model in Heddle and in ONNX Runtime on the same inputs and compares the outputs."""

import argparse
import pathlib
import sys
import unittest

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests/python"))
sys.path.insert(0, str(ROOT / "examples/read_text"))  # for the tests that import this module

from heddle_command import Heddle  # noqa: E402

TOLERANCE = 1e-4  # of the largest magnitude of the output
# Outputs are probabilities. Where all are below this, ONNX Runtime's sigmoid, which is good to about 1e-7 in absolute
# terms, no longer tells what they are.
SMALLEST_SCALE = 1e-2


def distance(a, b, scale):
    return float(np.abs(a - b).max() / scale) if a.size else 0.0


def session(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1  # several spin while they wait, which takes time from the tests beside them
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class SideBySide:
    """models: name -> ONNX file.

    Trained networks that decide between two near-equal answers amplify rounding: with and without its optimisations
    ONNX Runtime differs from itself by up to 1.4e-4 there, and from float64 by as much. That distance, for the input at
    hand, is what either side may be off by beyond the tolerance."""

    def __init__(self, test, heddle, models):
        self.test = test
        self.heddle, self.models = Heddle(heddle), models
        level = onnxruntime.GraphOptimizationLevel
        self.sessions = {name: session(path, level.ORT_ENABLE_ALL) for name, path in models.items()}
        self.plain_sessions = {name: session(path, level.ORT_DISABLE_ALL) for name, path in models.items()}

    def run(self, model, inputs):
        """Returns (Heddle's outputs, ONNX Runtime's), both in the model's order, after comparing their numbers."""
        names = [output.name for output in self.sessions[model].get_outputs()]
        expected = self.sessions[model].run(names, inputs)
        plain = self.plain_sessions[model].run(names, inputs)
        by_name = self.heddle.run(self.models[model], inputs)
        actual = [by_name[name.replace("/", "_")] for name in names]
        for name, a, e, p in zip(names, actual, expected, plain):
            self.test.assertEqual(a.shape, e.shape, f"{model}: {name}")
            self.test.assertEqual(a.dtype, e.dtype, f"{model}: {name}")
            scale = max(float(np.abs(e).max(initial=0)), SMALLEST_SCALE)
            error, noise = distance(a, e, scale), distance(p, e, scale)
            print(f"  {model} {e.shape}: differs by {error:.1e}, ONNX Runtime from itself by {noise:.1e}", flush=True)
            self.test.assertLessEqual(error, TOLERANCE + 2 * noise, f"{model}: {name} differs at shape {e.shape}")
        return actual, expected


def main():
    """Runs the tests of the calling module: SCRIPT HEDDLE DATA, where DATA was filled by fetch_test_data.py."""
    parser = argparse.ArgumentParser()
    parser.add_argument("heddle", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    module = sys.modules["__main__"]
    module.HEDDLE, module.DATA = arguments.heddle.resolve(), arguments.data.resolve()
    unittest.main(argv=sys.argv[:1], verbosity=2)
