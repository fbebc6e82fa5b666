"""A model on arrays that lie on a GPU: what a program without PyTorch or CuPy does. Needs a GPU.

usage: device_arrays.py MODEL.onnx
"""
import sys

import heddle
import numpy as np


def main():
    model = heddle.compile(sys.argv[1], target="cuda")
    host = [np.random.default_rng(0).standard_normal(port.shape, dtype=np.float32) for port in model.inputs]
    inputs = [heddle.tensor(array, device=model.device) for array in host]
    outputs = [heddle.empty(shape, port.dtype, device=model.device)
               for shape, port in zip(model.output_shapes(), model.outputs)]
    workspace = heddle.empty((max(model.workspace_bytes(), 1),), "u8", device=model.device)
    model(*inputs, out=outputs, workspace=workspace)  # allocates nothing and waits for nothing
    expected = model.run({port.name: array for port, array in zip(model.inputs, host)})
    for port, output in zip(model.outputs, outputs):
        same = np.array_equal(output.numpy(), expected[port.name])  # numpy() waits for the run
        print(f"{port.name}: {output}, {'the same as' if same else 'other than'} from host arrays")


if __name__ == "__main__":
    main()
