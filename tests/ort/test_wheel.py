"""The wheel onnxruntime-ep-heddle: test_wheel.py LIBRARY

It is made, installed without an index into an empty folder, and registered by its two lines."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

LIBRARY = sys.argv[1]
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/ort_wheel.py"
PROGRAM = """
import numpy, onnxruntime, onnxruntime_ep_heddle, sys
from onnx import TensorProto, helper
onnxruntime.register_execution_provider_library("heddle", onnxruntime_ep_heddle.get_library_path())
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == onnxruntime_ep_heddle.get_ep_name()
                                  and d.ep_metadata["target"] == "cpu"], {})
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [5])
graph = helper.make_graph([helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])], "graph", [value("x")], [value("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=0)
x = numpy.linspace(-1, 1, 5, dtype=numpy.float32)
numpy.testing.assert_allclose(session.run(None, {"x": x})[0], numpy.exp(numpy.sin(x)), rtol=1e-6)
print("right")
"""


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout.strip()


class Wheel(unittest.TestCase):
    def test_runs_where_it_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = run(sys.executable, SCRIPT, LIBRARY, "--into", folder)
            again = run(sys.executable, SCRIPT, LIBRARY, "--into", f"{folder}/again")
            self.assertEqual(pathlib.Path(wheel).read_bytes(), pathlib.Path(again).read_bytes())
            with zipfile.ZipFile(wheel) as archive:
                metadata, = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
            needed = [line for line in metadata.split("\n\n")[0].splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
            self.assertEqual(needed, [])
            run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target",
                f"{folder}/installed", wheel)
            self.assertEqual(run(sys.executable, "-c", PROGRAM, PYTHONPATH=f"{folder}/installed"), "right")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
