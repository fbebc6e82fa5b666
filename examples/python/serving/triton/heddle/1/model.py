"""A model of Triton Inference Server's Python backend: model.onnx beside this file, compiled by Heddle.

The requests that the server collects (dynamic_batching of config.pbtxt) are one run. Parameters of config.pbtxt: `threads`
and `precision`, as of heddle.compile()."""
import json
import os

import heddle
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        given = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        on_gpu = args["model_instance_kind"] == "GPU"
        self.names = [port["name"] for port in config["input"]]
        self.outputs = [port["name"] for port in config["output"]]
        self.model = heddle.compile(
            os.path.join(args["model_repository"], args["model_version"], "model.onnx"),
            target=f"cuda:{args['model_instance_device_id']}" if on_gpu else "cpu",
            precision=given.get("precision", "f32"),
            threads=int(given.get("threads", 0)),
            dims={f"{name}.0": (1, max(config["max_batch_size"], 1)) for name in self.names})

    def run(self, inputs):
        """Arrays by name; outputs in the order of config.pbtxt."""
        results = self.model.run(inputs)
        return [results[name] for name in self.outputs]

    def response(self, results):
        tensors = [pb_utils.Tensor(name, np.ascontiguousarray(result)) for name, result in zip(self.outputs, results)]
        return pb_utils.InferenceResponse(output_tensors=tensors)

    def answer(self, inputs):
        try:
            return self.response(self.run(inputs))
        except heddle.Error as error:
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(error)))

    def execute(self, requests):
        given = [{name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self.names} for request in requests]
        if len({tuple(inputs[name].shape[1:] for name in self.names) for inputs in given}) > 1:
            return [self.answer(inputs) for inputs in given]
        try:
            results = self.run({name: np.concatenate([inputs[name] for inputs in given]) for name in self.names})
        except heddle.Error:
            return [self.answer(inputs) for inputs in given]  # each request gets its own error
        ends = np.cumsum([len(inputs[self.names[0]]) for inputs in given])[:-1]
        return [self.response(part) for part in zip(*(np.split(result, ends) for result in results))]
