"""An ONNX model behind KServe's Python predictor: kserve_model.py MODEL INPUT [--http_port 8080], and KServe's other options.

The model is compiled once, for batches of 1 to 32 rows; INPUT is the name of its input. Both of KServe's protocols serve
`rows`: v1 with {"instances": [row, ...]}, v2 with a tensor of rows. Where KServe's batcher joins requests, one run computes
them."""
import argparse
import asyncio
import uuid

import heddle
import kserve
import numpy as np

MOST_ROWS = 32


class Rows(kserve.Model):
    def __init__(self, path, name):
        super().__init__("rows")
        self.model = heddle.compile(path, dims={f"{name}.0": (1, MOST_ROWS)})
        self.shape = self.model.inputs[0].shape[1:]
        self.ready = True

    def check(self, rows):
        if rows.shape[1:] != self.shape or not 1 <= len(rows) <= MOST_ROWS:
            raise kserve.errors.InvalidInput(f"1 to {MOST_ROWS} rows of shape {self.shape} are expected, {rows.shape} was sent")
        return rows

    async def predict(self, payload, headers=None, response_headers=None):
        is_v2 = isinstance(payload, kserve.InferRequest)
        rows = payload.inputs[0].as_numpy() if is_v2 else np.asarray(payload["instances"], np.float32)
        results = await asyncio.to_thread(self.model, self.check(rows))  # the server answers others meanwhile
        first = results[0] if isinstance(results, tuple) else results
        if not is_v2:
            return {"predictions": first.tolist()}
        output = kserve.InferOutput(self.model.outputs[0].name, list(first.shape), "FP32")
        output.set_data_from_numpy(np.asarray(first), binary_data=False)
        return kserve.InferResponse(payload.id or str(uuid.uuid4()), self.name, [output])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("path")
    parser.add_argument("input")
    arguments = parser.parse_args()
    kserve.ModelServer(http_port=arguments.http_port, enable_grpc=arguments.enable_grpc).start([Rows(arguments.path, arguments.input)])
