#!/usr/bin/env python3
"""What a launch of a kernel from Python costs the host, beside Triton where it is installed.

On a GPU with tensors of PyTorch; without one over a driver that does nothing ($HEDDLE_CUDA_DRIVER), so that what is left is
Heddle's own, and on the CPU with NumPy arrays, where a kernel of one program runs. Kernels are empty; a time is that of the
fastest of bursts of 200 launches, which alternate.

usage: PYTHONPATH=build/release/python build/venv/bin/python bench/tile_launch.py
"""
import ctypes
import importlib
import json
import os
import pathlib
import sys
import tempfile
import time

KERNELS = """
import {package} as triton
import {language} as tl

@triton.jit
def none():
    pass

@triton.jit
def four(x, y, n, BLOCK: tl.constexpr):
    pass

@triton.jit
def twelve(a, b, c, d, m, n, k, s0, s1, scale, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    pass
"""
BURSTS, LAUNCHES = 100, 200


def kernels(folder, package, language):
    path = pathlib.Path(folder) / f"kernels_of_{package.replace('.', '_')}.py"
    path.write_text(KERNELS.format(package=package, language=language))
    return importlib.import_module(path.stem)


def calls(module, arrays):
    """Launches by name: of 0, 4 and 12 arguments, the last also with a function as grid and with the grid bound once."""
    some, most = (arrays[0], arrays[1], 1000), (*arrays, 128, 256, 64, 1, 33, 0.5)
    kept = module.twelve[(1,)]
    found = {"4": lambda: module.four[(1,)](*some, BLOCK=64),
             "12": lambda: module.twelve[(1,)](*most, BLOCK=64, ACTIVATION="relu"),
             "12, grid a function": lambda: module.twelve[lambda words: (words["BLOCK"] // 64,)](*most, BLOCK=64, ACTIVATION="relu"),
             "12, grid bound before": lambda: kept(*most, BLOCK=64, ACTIVATION="relu"),
             "12, num_warps given": lambda: module.twelve[(1,)](*most, BLOCK=64, ACTIVATION="relu", num_warps=4)}
    return {"0": lambda: module.none[(1,)](), **found}


def measured(calls, wait):
    """{name: microseconds}."""
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(BURSTS):
        for name, call in calls.items():
            wait()
            begin = time.perf_counter()
            for _ in range(LAUNCHES):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / LAUNCHES * 1e6)
    return {name: round(us, 2) for name, us in best.items()}


def driver_call():
    """A launch of a kernel without arguments by the driver alone, with what ctypes costs: what no package can go below."""
    driver, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    text = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry none() { ret; }\n\0"
    for result in (driver.cuModuleLoadData(ctypes.byref(module), text),
                   driver.cuModuleGetFunction(ctypes.byref(function), module, b"none")):
        if result != 0:
            raise RuntimeError(f"the driver refuses a kernel that does nothing: CUresult {result}")
    launch = driver.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    return lambda: launch(function, 1, 1, 1, 128, 1, 1, 0, None, None, None)


def on_gpu(folder, torch):
    arrays = [torch.zeros(64, device="cuda") for _ in range(4)]
    every = {}
    for package, language in (("heddle.tile", "heddle.tile.language"), ("triton", "triton.language")):
        try:
            every.update({(package, name): call for name, call in calls(kernels(folder, package, language), arrays).items()})
        except ImportError:
            print(f"{package} is not installed", file=sys.stderr)
    # Without arrays nothing says that a kernel of Heddle's is meant for the GPU.
    every.pop(("heddle.tile", "0"), None)
    every["driver", "0"] = driver_call()
    every["torch", "add"] = lambda: torch.add(arrays[0], arrays[1], out=arrays[2])
    for (package, name), us in measured(every, torch.cuda.synchronize).items():
        print(json.dumps({"device": torch.cuda.get_device_name(), "package": package, "arguments": name, "us": us}), flush=True)


def without_gpu(folder):
    import numpy as np

    import heddle

    module = kernels(folder, "heddle.tile", "heddle.tile.language")
    host = [np.zeros(64, np.float32) for _ in range(4)]
    places = {"cpu": host}
    if os.environ.get("HEDDLE_CUDA_DRIVER"):
        places["a driver that does nothing"] = [heddle.tensor(array, device="cuda") for array in host]
    for place, arrays in places.items():
        for name, us in measured(calls(module, arrays), lambda: None).items():
            print(json.dumps({"device": place, "package": "heddle.tile", "arguments": name, "us": us}), flush=True)


def main():
    try:
        import torch
    except ImportError:
        torch = None
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        if torch is not None and torch.cuda.is_available():
            on_gpu(folder, torch)
        else:
            without_gpu(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
