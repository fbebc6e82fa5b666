"""A Ray Serve application for bench/serving.py: serve_worker.py ENGINE MODEL REPLICAS MOST_ROWS PORT

ENGINE: heddle, or onnxruntime with its CPU provider. The server is that of examples/python/serving/ray_serve.py. Prints "ready", and
ends with standard input."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples/python/serving"))

import ray  # noqa: E402
import ray_serve  # noqa: E402
from ray import serve  # noqa: E402


class Heddle(ray_serve.Rows.func_or_class):
    def __init__(self, path, most_rows):
        super().__init__(path, "x")
        self.run.set_max_batch_size(most_rows)


class OnnxRuntime(Heddle):
    def load(self, path, name):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.model = lambda rows: session.run(None, {name: rows})[0]
        self.shape = tuple(session.get_inputs()[0].shape[1:])


def main():
    engine, path, replicas, most_rows, port = sys.argv[1], sys.argv[2], *(int(text) for text in sys.argv[3:6])
    ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    ours = {"heddle": Heddle, "onnxruntime": OnnxRuntime}[engine]
    deployment = serve.deployment(ours, name="Rows", num_replicas=replicas, max_ongoing_requests=4 * ray_serve.MOST_ROWS,
                                  health_check_period_s=1, health_check_timeout_s=2)
    serve.run(deployment.bind(path, most_rows))
    print("ready", flush=True)
    sys.stdin.read()
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
