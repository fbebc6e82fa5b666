"""Kernels made of one expression, for tests that go through many."""
import atexit
import importlib.util
import itertools
import os
import shutil
import tempfile

import numpy as np

_folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
_counter = itertools.count()


def module_of(text):
    """A module of a text, which stands in a file as kernels have to."""
    path = os.path.join(_folder, f"kernels{next(_counter)}.py")
    with open(path, "w") as file:
        file.write("import heddle.tile as triton\nimport heddle.tile.language as tl\n" + text)
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elementwise(expression, names="xy"):
    """A kernel that stores an expression of its arrays: `z[i] = expression(x[i], y[i])`."""
    pointers = ", ".join(f"{name.upper()}" for name in names)
    loads = "".join(f"    {name} = tl.load({name.upper()} + at)\n" for name in names)
    return module_of(f"@triton.jit\ndef kernel(Z, {pointers}, N: tl.constexpr):\n    at = tl.arange(0, N)\n{loads}"
                     f"    tl.store(Z + at, {expression})\n").kernel


def apply(expression, *arrays, out=np.float32, names="xyz", size=None):
    """What an expression of arrays is, in an array that had other numbers before."""
    count = size or len(arrays[0])
    result = np.full(count, 77, out)
    elementwise(expression, names[: len(arrays)])[(1,)](result, *arrays, N=count)
    return result
