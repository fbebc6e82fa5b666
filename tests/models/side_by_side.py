"""Runs a model in Heddle and in ONNX Runtime on the same inputs and compares the outputs."""
import argparse
import pathlib
import sys
import unittest

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/read_text"))

from heddle_command import HeddleCommand  # noqa: E402

TOLERANCE = 1e-4  # of the largest magnitude of the output
# Outputs are probabilities. Where all are below this, ONNX Runtime's sigmoid, which is good to about 1e-7 in absolute
# terms, no longer tells what they are.
SMALLEST_SCALE = 1e-2


class SideBySide:
    """models: name -> ONNX file."""

    def __init__(self, test, heddle, models):
        self.test = test
        self.command = HeddleCommand(heddle, models)
        self.sessions = {name: onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
                         for name, path in models.items()}
        self.worst = {name: 0.0 for name in models}

    def run(self, model, inputs):
        """Returns (Heddle's outputs, ONNX Runtime's), both in the model's order, after comparing their numbers."""
        names = [output.name for output in self.sessions[model].get_outputs()]
        expected = self.sessions[model].run(names, inputs)
        by_name = self.command.run(model, inputs)
        actual = [by_name[name.replace("/", "_")] for name in names]
        for name, a, e in zip(names, actual, expected):
            self.test.assertEqual(a.shape, e.shape, f"{model}: {name}")
            self.test.assertEqual(a.dtype, e.dtype, f"{model}: {name}")
            error = float(np.abs(a - e).max() / max(np.abs(e).max(), SMALLEST_SCALE)) if e.size else 0.0
            self.worst[model] = max(self.worst[model], error)
            self.test.assertLessEqual(error, TOLERANCE, f"{model}: {name} differs at shape {e.shape}")
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
