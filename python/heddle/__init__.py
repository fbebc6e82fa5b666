"""Heddle: compiled ONNX models, called from Python.

    import heddle
    model = heddle.compile("model.onnx")
    y = model(x)

Arrays are those of NumPy, PyTorch, CuPy, JAX or whatever has `__dlpack__`, on the host or, for a model with
target="cuda", on its GPU. Results are arrays of the library that the inputs came from.
"""
from heddle import _core, _nvrtc, ops
from heddle._core import Tensor, empty, tensor
from heddle._core import version as _version
from heddle._errors import (
    Error, FileError, ForbiddenFileError, InputError, InternalError, MachineError, MissingFileError, ModelError, UnsupportedError,
)
from heddle._model import Explanation, Kernel, Model, Port, compile
from heddle._options import Options
from heddle._ort import ort_library
from heddle._profile import Profile
from heddle._recording import Recording, profile
from heddle._report import Report
from heddle._tools import BenchResult, bench, inspect, tune, verify

__version__ = _version()
_core.prefer_nvrtc(_nvrtc.find())

__all__ = [
    "BenchResult", "Error", "Explanation", "FileError", "ForbiddenFileError", "InputError", "InternalError", "Kernel",
    "MachineError", "MissingFileError", "Model", "ModelError", "Options", "Port", "Profile", "Recording", "Report",
    "Tensor", "UnsupportedError", "bench", "compile", "empty", "inspect", "ops", "ort_library", "profile", "tensor", "tune",
    "verify",
]
