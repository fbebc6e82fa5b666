"""Compiles a model, runs it on random NumPy arrays, checks it and tells what became of it.

usage: run_model.py MODEL.onnx [cpu|cuda]
"""
import sys

import heddle
import numpy as np


def random(port):
    """Values for an input: floats are normal, integers 0 or 1."""
    generator = np.random.default_rng(0)
    if port.dtype in ("f32", "f64", "f16"):
        return generator.standard_normal(port.shape).astype({"f32": "float32", "f64": "float64", "f16": "float16"}[port.dtype])
    return generator.integers(0, 2, port.shape).astype({"i64": "int64", "i32": "int32", "bool": "bool"}[port.dtype])


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    try:
        model = heddle.compile(sys.argv[1], target=target)
        results = model.run({port.name: random(port) for port in model.inputs})
        for name, value in results.items():
            print(f"{name}: {value.dtype} {value.shape}, mean {value.mean():.6g}")
        print(model.explain())
        print(heddle.verify(model))
    except heddle.Error as error:  # str(error) says what, where, why and what to do
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
