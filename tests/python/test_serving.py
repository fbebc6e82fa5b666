"""The programs of examples/python/serving: Triton's Python backend against a stand-in of its side, servers on the loopback where their
packages are installed."""
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
import urllib.error
import urllib.request

import models
import numpy as np

SERVING = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "serving"


def has(package):
    return importlib.util.find_spec(package) is not None


def save_open(path):
    """models.Mlp with an open batch and its output y alone."""
    mlp = models.Mlp()
    graph = mlp.proto.graph
    for port in (graph.input[0], graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = "rows"
    del graph.output[1], graph.node[3]
    path.write_bytes(mlp.proto.SerializeToString())
    return mlp


def expected(mlp, x):
    return np.maximum(x @ mlp.w + mlp.b, 0)


def backend():
    """What Triton's Python backend offers its models, as far as ours uses it."""
    module = types.ModuleType("triton_python_backend_utils")

    class Tensor:
        def __init__(self, name, array):
            self.name, self.array = name, array

        def as_numpy(self):
            return self.array

    class InferenceResponse:
        def __init__(self, output_tensors, error=None):
            self.output_tensors, self.error = output_tensors, error

    module.Tensor, module.InferenceResponse, module.TritonError = Tensor, InferenceResponse, RuntimeError
    module.get_input_tensor_by_name = lambda request, name: next(tensor for tensor in request if tensor.name == name)
    return module


class Triton(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        repository = pathlib.Path(folder.name) / "heddle"
        shutil.copytree(SERVING / "triton/heddle", repository)
        self.mlp = save_open(repository / "1/model.onnx")
        self.utils = sys.modules["triton_python_backend_utils"] = backend()
        self.addCleanup(sys.modules.pop, "triton_python_backend_utils")
        spec = importlib.util.spec_from_file_location("triton_model", repository / "1/model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.model = module.TritonPythonModel()
        config = {"max_batch_size": 32, "input": [{"name": "x"}], "output": [{"name": "y"}],
                  "parameters": {"threads": {"string_value": "1"}}}
        self.model.initialize({"model_config": json.dumps(config), "model_repository": str(repository), "model_version": "1",
                               "model_instance_kind": "CPU", "model_instance_device_id": "0"})

    def execute(self, *arrays):
        return self.model.execute([[self.utils.Tensor("x", array)] for array in arrays])

    def test_requests_are_one_batch_and_get_their_own_rows(self):
        arrays = [np.random.default_rng(n).standard_normal((n, 8), dtype=np.float32) for n in (1, 4, 2)]
        for response, array in zip(self.execute(*arrays), arrays, strict=True):
            self.assertIsNone(response.error)
            np.testing.assert_allclose(response.output_tensors[0].as_numpy(), expected(self.mlp, array), rtol=1e-5, atol=1e-5)

    def test_a_wrong_request_fails_alone(self):
        good, bad = np.ones((2, 8), np.float32), np.ones((2, 9), np.float32)
        first, second = self.execute(good, bad)
        np.testing.assert_allclose(first.output_tensors[0].as_numpy(), expected(self.mlp, good), rtol=1e-5, atol=1e-5)
        self.assertIn("HDL", str(second.error))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server(unittest.TestCase):
    def start(self, program, *arguments):
        """Starts a program with a model. Returns the model."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        mlp = save_open(pathlib.Path(folder.name) / "model.onnx")
        server = subprocess.Popen([sys.executable, SERVING / program, f"{folder.name}/model.onnx", "x", *arguments],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(self.end, server)
        return mlp

    def end(self, server):
        """Also ends processes of the server's that outlive it."""
        server.terminate()
        try:
            server.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)

    def ask(self, url, content, patience=0):
        """The answer; for `patience` seconds the server may still be starting."""
        end = time.monotonic() + patience
        while True:
            try:
                request = urllib.request.Request(url, json.dumps(content).encode(), {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read())
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def check_rows(self, url, mlp):
        """Rows one at a time, and several at once."""
        rows = np.random.default_rng(0).standard_normal((6, 8), dtype=np.float32)
        np.testing.assert_allclose(self.ask(url, rows[0].tolist(), 120), expected(mlp, rows[0]), rtol=1e-5, atol=1e-5)
        with self.assertRaises(urllib.error.HTTPError):
            self.ask(url, [1.0])
        with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
            answers = list(pool.map(lambda row: self.ask(url, row.tolist()), rows))
        np.testing.assert_allclose(answers, expected(mlp, rows), rtol=1e-5, atol=1e-5)


@unittest.skipUnless(has("ray"), "skipped: there is no Ray")
class RayServe(Server):
    def test_serves_rows(self):
        self.check_rows("http://127.0.0.1:8000/", self.start("ray_serve.py"))


@unittest.skipUnless(has("litserve"), "skipped: there is no LitServe")
class LitServe(Server):
    def test_serves_rows(self):
        port = free_port()
        self.check_rows(f"http://127.0.0.1:{port}/predict", self.start("litserve_rows.py", str(port)))


@unittest.skipUnless(has("kserve"), "skipped: there is no KServe")
class KServe(Server):
    def test_serves_both_protocols(self):
        port = free_port()
        mlp = self.start("kserve_model.py", "--http_port", str(port), "--enable_grpc", "false")
        url = f"http://127.0.0.1:{port}"
        rows = np.random.default_rng(0).standard_normal((5, 8), dtype=np.float32)
        answer = self.ask(f"{url}/v1/models/rows:predict", {"instances": rows.tolist()}, 120)
        np.testing.assert_allclose(answer["predictions"], expected(mlp, rows), rtol=1e-5, atol=1e-5)
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.ask(f"{url}/v1/models/rows:predict", {"instances": [[1.0]]})
        self.assertEqual(raised.exception.code, 400)
        tensor = {"name": "x", "shape": [5, 8], "datatype": "FP32", "data": rows.ravel().tolist()}
        output, = self.ask(f"{url}/v2/models/rows/infer", {"inputs": [tensor]})["outputs"]
        self.assertEqual((output["name"], output["datatype"]), ("y", "FP32"))
        np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected(mlp, rows), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
