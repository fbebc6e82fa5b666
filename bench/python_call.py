#!/usr/bin/env python3
"""What a call from Python costs the host over the same call from C and C++.

Host arrays: a model of one small kernel, called with NumPy arrays, beside heddle_model_run() of the C interface on
tensors that are made already. Arrays on a GPU: the same beside heddle_model_enqueue(), on a driver whose functions do
nothing, so that what is left is Heddle's. Both alternate in bursts; a burst's time is that of its fastest call of 16.

usage: PYTHONPATH=build/release/python build/venv/bin/python bench/python_call.py [--build build/release] [--json]
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BURSTS, CALLS = 200, 16


class DeviceTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


class CModel:
    """A model by the C interface. A call by ctypes costs some of its own, which `floor` tells and is taken off."""

    def __init__(self, build, path, target):
        self.library = library = ctypes.CDLL(str(build / "libheddle.so"))
        for name in ("heddle_options_new", "heddle_model_load", "heddle_tensor_new"):
            getattr(library, name).restype = ctypes.c_void_p
        options = ctypes.c_void_p(library.heddle_options_new())
        for key, value in (("target", target), ("threads", "1")):
            assert library.heddle_options_set(options, key.encode(), value.encode(), None)
        self.model = ctypes.c_void_p(library.heddle_model_load(str(path).encode(), options, None))
        assert self.model.value
        self.empty = library.heddle_tensor_free  # of nothing

    def host_call(self, shape, array):
        library = self.library
        extents = (ctypes.c_int64 * len(shape))(*shape)
        data = array.ctypes.data_as(ctypes.c_void_p)
        handle = library.heddle_tensor_new(1, extents, ctypes.c_size_t(len(shape)), data, None)
        names, inputs = (ctypes.c_char_p * 1)(b"x"), (ctypes.c_void_p * 1)(handle)
        outputs, one = (ctypes.c_void_p * 1)(), ctypes.c_size_t(1)
        run, free, model = library.heddle_model_run, library.heddle_tensor_free, self.model

        def call():
            run(model, names, inputs, one, outputs, None)
            free(ctypes.c_void_p(outputs[0]))

        return call

    def device_call(self, shape, x, y):
        library = self.library
        extents = (ctypes.c_int64 * len(shape))(*shape)
        inputs = DeviceTensor(x.data_ptr, 1, len(shape), extents)
        outputs = DeviceTensor(y.data_ptr, 1, len(shape), extents)
        workspace = ctypes.c_size_t()
        assert library.heddle_model_prepare(self.model, ctypes.byref(inputs), ctypes.byref(workspace), None)
        enqueue, model, none = library.heddle_model_enqueue, self.model, ctypes.c_void_p()
        first, second = ctypes.byref(inputs), ctypes.byref(outputs)
        space = ctypes.c_void_p(1 << 40)  # nothing is at any address of this driver
        return lambda: enqueue(model, first, second, space, none, None)


def softmax(path, shape):
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    graph = helper.make_graph([node], "softmax", [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def alternate(calls):
    """Microseconds of a call of each kind: medians of bursts."""
    for call in calls.values():
        for _ in range(50):
            call()
    times = {name: [] for name in calls}
    for _ in range(BURSTS):
        for name, call in calls.items():
            best = float("inf")
            for _ in range(CALLS):
                start = time.perf_counter_ns()
                call()
                best = min(best, time.perf_counter_ns() - start)
            times[name].append(best / 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def measure(build, target, shape=(4, 64)):
    import heddle
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "softmax.onnx"
        softmax(path, shape)
        model, other = heddle.compile(path, target=target, threads=1), CModel(build, path, target)
        x = np.ones(shape, np.float32)
        out = np.empty(shape, np.float32)
        if target == "cpu":
            native = other.host_call(shape, x)
        else:
            x, out = heddle.tensor(x, device="cuda"), heddle.empty(shape, "f32", device="cuda")
            native = other.device_call(shape, x, out)
        nothing = ctypes.c_void_p()
        us = alternate({"python": lambda: model(x), "python_out": lambda: model(x, out=out), "native": native,
                        "ctypes": lambda: other.empty(nothing), "lambda": lambda: None})
    # A ctypes call inside of a function, and a call of Python inside of one, begin from different zeros.
    native = us["native"] - (us["ctypes"] - us["lambda"]) - us["lambda"]
    return {"python_us": us["python"] - us["lambda"], "python_out_us": us["python_out"] - us["lambda"], "native_us": native,
            "over_us": us["python"] - us["lambda"] - native}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    driver = build / "tests/ops/libops_stub_driver.so"
    for path, target in (driver, "ops_stub_driver"), (build / "libheddle.so", "heddle_shared"):
        if not path.exists():
            sys.exit(f"python_call: there is no {path}: build the target {target}")
    os.environ["HEDDLE_CUDA_DRIVER"] = str(driver)
    found = {"numpy": measure(build, "cpu"), "device": measure(build, "cuda")}
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for kind, us in found.items():
        print(f"{kind:7} from Python {us['python_us']:.2f} us ({us['python_out_us']:.2f} us with out=), "
              f"from C {us['native_us']:.2f} us: {us['over_us']:.2f} us more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
