"""Checks the zoo's models with ONNX's checker and ONNX Runtime: check_models.py HEDDLE [NAME...].

Every model is valid, keeps all its activations finite and well inside f16's range, and its output differs between two
random inputs; Heddle's outputs equal ONNX Runtime's. Small sizes by default; --full takes the models at their own.
Without names, --quick takes the models that zoo_models.draw() chooses."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from heddle_command import Heddle  # noqa: E402
from zoo_models import DEFAULT, SMALL, draw, write_model  # noqa: E402

TOLERANCE = 1e-4  # of the largest magnitude of an output
LARGEST_ACTIVATION = 1e4  # f16 ends at 65504
SEEDS = (1, 2)


def index_ranges(model):
    ranges = {p.key.removeprefix("range:"): p.value for p in model.metadata_props if p.key.startswith("range:")}
    return {name: tuple(map(int, text.split(","))) for name, text in ranges.items()}


def random_inputs(model, seed):
    generator = np.random.default_rng(seed)
    ranges = index_ranges(model)
    inputs = {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name in ranges:
            inputs[value.name] = generator.integers(*ranges[value.name], shape).astype(np.int64)
        elif value.name == "mask":
            inputs[value.name] = np.ones(shape, np.float32)
        else:
            inputs[value.name] = generator.standard_normal(shape).astype(np.float32)
    return inputs


def with_all_activations(path):
    """The model with every f32 value of the main graph as an output, in the same folder as its data."""
    model = onnx.load(path)
    # Large weights go to a file of their own, which no later step copies.
    onnx.save(model, path.with_suffix(".probe.onnx"), save_as_external_data=True, location=f"{path.stem}.probe.data")
    inferred = onnx.shape_inference.infer_shapes(model)
    is_float = {v.name for v in inferred.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    constants = {o for n in model.graph.node if n.op_type == "Constant" for o in n.output}
    extra = [onnx.ValueInfoProto(name=o) for n in model.graph.node for o in n.output if o in is_float - constants]
    outputs = [o.name for o in model.graph.output]
    model.graph.output.extend(extra)
    probe = path.with_suffix(".probe.onnx")
    onnx.save(model, probe)
    return probe, outputs


def check_activations(name, path, model):
    """A line about the activations, and the outputs for two seeds; raises ValueError if a rule is broken."""
    probe, outputs = with_all_activations(path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # several spin while they wait, which takes time from the tests beside them
    session = onnxruntime.InferenceSession(probe, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    masked = any(n.op_type in ("Trilu", "LessOrEqual") for n in model.graph.node)
    largest, at, runs = 0.0, "", []
    for seed in SEEDS:
        results = dict(zip(names, session.run(None, random_inputs(model, seed))))
        runs.append([results[o] for o in outputs])
        for key, value in results.items():
            # A causal mask holds minus infinity, and so do the scores that it was added to.
            finite = value[np.isfinite(value)]
            if np.isnan(value).any() or np.isposinf(value).any() or (finite.size < value.size and not masked):
                raise ValueError(f"{name}: {key} is not finite")
            if finite.size and np.abs(finite).max() > largest:
                largest, at = float(np.abs(finite).max()), key
    for a, b in zip(*runs):
        if a.std() == 0 or np.array_equal(a, b):
            raise ValueError(f"{name}: the output does not depend on the input")
    if largest > LARGEST_ACTIVATION:
        raise ValueError(f"{name}: {at} reaches {largest:.3g}")
    return f"largest {largest:6.3g} at {at}", dict(zip(outputs, runs[0]))


def check_heddle(heddle, name, path, model, expected):
    """The largest error of Heddle's outputs, relative to the largest magnitude of each."""
    actual = Heddle(heddle).run(path, random_inputs(model, SEEDS[0]))
    errors = [float(np.abs(actual[o] - e).max() / np.abs(e).max()) for o, e in expected.items()]
    if not max(errors) <= TOLERANCE:
        raise ValueError(f"{name}: Heddle differs from ONNX Runtime by {max(errors):.2g}")
    return max(errors)


def check(heddle, name, sizes, folder):
    path = write_model(heddle, name, sizes, folder)
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path, load_external_data=False)
    line, expected = check_activations(name, path, model)
    error = check_heddle(heddle, name, path, model, expected)
    print(f"{name:14} {line}; Heddle's error {error:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    problems = 0
    for name in arguments.names or (draw(member=0) if arguments.quick else SMALL):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(arguments.heddle, name, DEFAULT if arguments.full else SMALL[name], folder)
            except (ValueError, RuntimeError, subprocess.CalledProcessError) as error:
                print(error, flush=True)
                problems += 1
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
