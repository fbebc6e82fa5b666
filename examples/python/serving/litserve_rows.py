"""An ONNX model behind LitServe: litserve_rows.py MODEL INPUT [PORT]

Each worker compiles the model once, for batches of 1 to 32 rows; INPUT is the name of its input. Requests that arrive
together are one run. A request is a row as JSON, the answer is the row of the first output."""
import sys

import heddle
import litserve
import numpy as np
from fastapi import HTTPException

MOST_ROWS = 32


class Rows(litserve.LitAPI):
    def __init__(self, path, name):
        super().__init__(max_batch_size=MOST_ROWS, batch_timeout=0.001)
        self.path, self.name = path, name

    def setup(self, device):
        target = device if device.startswith("cuda") else "cpu"
        self.model = heddle.compile(self.path, target=target, dims={f"{self.name}.0": (1, MOST_ROWS)})
        self.shape = self.model.inputs[0].shape[1:]

    def decode_request(self, request):
        row = np.asarray(request, np.float32)
        if row.shape != self.shape:  # it would fail the requests in its batch, too
            raise HTTPException(400, f"a row of shape {self.shape} is expected, {row.shape} was sent")
        return row

    def batch(self, rows):
        return np.stack(rows)

    def predict(self, rows):
        results = self.model(rows)
        return results[0] if isinstance(results, tuple) else results

    def unbatch(self, results):
        return list(results)

    def encode_response(self, row):
        return row.tolist()


if __name__ == "__main__":
    server = litserve.LitServer(Rows(*sys.argv[1:3]), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[3]) if len(sys.argv) > 3 else 8000, generate_client_file=False)
