"""An ONNX model behind Ray Serve: ray_serve.py MODEL INPUT, or `serve run ray_serve:app` with $MODEL and $INPUT.

A replica compiles the model once, for batches of 1 to 32 rows; INPUT is the name of its input. Requests that arrive
together are one run. A request is a row as JSON, the answer is the row of the first output."""
import os
import sys
import time

import numpy as np
from ray import serve

MOST_ROWS = 32


@serve.deployment(max_ongoing_requests=4 * MOST_ROWS)
class Rows:
    def __init__(self, path, name):
        self.load(path, name)

    def load(self, path, name):
        import heddle  # in the replica's process

        self.model = heddle.compile(path, threads=1, dims={f"{name}.0": (1, MOST_ROWS)})
        self.shape = self.model.inputs[0].shape[1:]

    @serve.batch(max_batch_size=MOST_ROWS, batch_wait_timeout_s=0.001)
    async def run(self, rows):
        results = self.model(np.stack(rows))
        return list(results[0] if isinstance(results, tuple) else results)

    async def __call__(self, request):
        row = np.asarray(await request.json(), np.float32)
        if row.shape != self.shape:  # it would fail the requests in its batch, too
            raise ValueError(f"a row of shape {self.shape} is expected, {row.shape} was sent")
        return (await self.run(row)).tolist()


if __name__ == "__main__":
    serve.run(Rows.bind(*sys.argv[1:3]))
    print("serving on http://127.0.0.1:8000/", flush=True)
    while True:
        time.sleep(60)
elif "MODEL" in os.environ:
    app = Rows.bind(os.environ["MODEL"], os.environ["INPUT"])
