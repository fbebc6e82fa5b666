"""Runs models through Heddle's C interface (include/heddle/c_api.h) with ctypes."""

import ctypes
import sys
import time
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

import numpy as np

# heddle_dtype of the element types that cross this module.
DTYPES = {
    np.dtype(name): number
    for name, number in [
        ("float64", 0),
        ("float32", 1),
        ("float16", 2),
        ("int64", 10),
        ("int32", 11),
        ("int8", 13),
        ("uint8", 19),
        ("bool", 22),
    ]
}
NUMPY_DTYPES = {number: dtype for dtype, number in DTYPES.items()}

PROGRESS = CFUNCTYPE(None, c_char_p, c_double, c_void_p)

# name -> (result, arguments); every function that can fail takes the error last.
FUNCTIONS = {
    "heddle_error_message": (c_char_p, [c_void_p]),
    "heddle_error_free": (None, [c_void_p]),
    "heddle_options_new": (c_void_p, []),
    "heddle_options_set": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "heddle_options_set_shape": (c_int, [c_void_p, c_char_p, POINTER(c_int64), c_size_t, POINTER(c_void_p)]),
    "heddle_options_set_progress": (None, [c_void_p, PROGRESS, c_void_p]),
    "heddle_options_free": (None, [c_void_p]),
    "heddle_model_load": (c_void_p, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "heddle_model_free": (None, [c_void_p]),
    "heddle_model_output_count": (c_size_t, [c_void_p]),
    "heddle_model_run": (
        c_int,
        [c_void_p, POINTER(c_char_p), POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(c_void_p)],
    ),
    "heddle_tensor_new": (c_void_p, [c_int, POINTER(c_int64), c_size_t, c_void_p, POINTER(c_void_p)]),
    "heddle_tensor_dtype": (c_int, [c_void_p]),
    "heddle_tensor_rank": (c_size_t, [c_void_p]),
    "heddle_tensor_shape": (POINTER(c_int64), [c_void_p]),
    "heddle_tensor_bytes": (c_size_t, [c_void_p]),
    "heddle_tensor_data": (c_void_p, [c_void_p]),
    "heddle_tensor_free": (None, [c_void_p]),
}


def shape_argument(shape):
    return (c_int64 * len(shape))(*shape), len(shape)


class CompileProgress:
    """Tells on stderr how far the compilation of a model is: one line on a terminal, else a line now and then."""

    BETWEEN_LINES = 15  # seconds, where lines stay

    def __init__(self, what):
        self.what = what
        self.counted_from = None  # (time, fraction): kernels give the pace
        self.told = time.monotonic()

    def show(self, stage, fraction, _context=None):
        stage, now = stage.decode(), time.monotonic()
        left = ""
        if " of " in stage:
            self.counted_from = self.counted_from or (now, fraction)
            passed, done = now - self.counted_from[0], fraction - self.counted_from[1]
            left = f", {passed * (1 - fraction) / done:.0f} s left" if done > 0 and passed > 1 else ""
        text = f"{self.what}: {stage}, {fraction:.0%}{left}"
        if sys.stderr.isatty():
            print(f"\r{text}\033[K" if fraction < 1 else "\r\033[K", end="", file=sys.stderr, flush=True)
        elif now - self.told >= self.BETWEEN_LINES:
            self.told = now
            print(text, file=sys.stderr, flush=True)


class HeddleLibrary:
    """library: libheddle.so; models: name -> ONNX file. A model is compiled for the shapes of its inputs when they
    first occur (or taken from Heddle's cache) and kept."""

    def __init__(self, library, models, threads=0):
        self.library = ctypes.CDLL(str(library))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.files = {name: str(path).encode() for name, path in models.items()}
        self.threads = str(threads).encode()
        self.loaded = {}  # (name, shapes of the inputs) -> handle
        self.callbacks = []  # which models may call as long as they live

    def close(self):
        for handle in self.loaded.values():
            self.library.heddle_model_free(handle)
        self.loaded.clear()

    def call(self, name, *arguments):
        """A function whose failure is a null result and an error in the last parameter."""
        error = c_void_p()
        result = getattr(self.library, name)(*arguments, byref(error))
        if not result:
            message = self.library.heddle_error_message(error).decode()
            self.library.heddle_error_free(error)
            raise RuntimeError(message)
        return result

    def load(self, model, inputs):
        key = (model, tuple((name, value.shape) for name, value in inputs.items()))
        if key not in self.loaded:
            options = self.library.heddle_options_new()
            shapes = ", ".join("x".join(map(str, value.shape)) for value in inputs.values())
            progress = PROGRESS(CompileProgress(f"compiling {model} for {shapes}").show)
            try:
                self.callbacks.append(progress)
                self.library.heddle_options_set_progress(options, progress, None)
                self.call("heddle_options_set", options, b"threads", self.threads)
                for name, value in inputs.items():
                    self.call("heddle_options_set_shape", options, name.encode(), *shape_argument(value.shape))
                self.loaded[key] = self.call("heddle_model_load", self.files[model], options)
            finally:
                self.library.heddle_options_free(options)
        return self.loaded[key]

    def to_tensor(self, array):
        array = np.ascontiguousarray(array)
        return self.call("heddle_tensor_new", DTYPES[array.dtype], *shape_argument(array.shape), array.ctypes.data)

    def to_array(self, tensor):
        library = self.library
        shape = [library.heddle_tensor_shape(tensor)[i] for i in range(library.heddle_tensor_rank(tensor))]
        data = ctypes.string_at(library.heddle_tensor_data(tensor), library.heddle_tensor_bytes(tensor))
        return np.frombuffer(data, NUMPY_DTYPES[library.heddle_tensor_dtype(tensor)]).reshape(shape)

    def run(self, model, inputs):
        """`inputs`: name -> array. Returns the outputs in the model's order."""
        handle = self.load(model, inputs)
        count = self.library.heddle_model_output_count(handle)
        names = (c_char_p * len(inputs))(*(name.encode() for name in inputs))
        tensors, outputs = (c_void_p * len(inputs))(), (c_void_p * count)()
        try:
            for i, value in enumerate(inputs.values()):
                tensors[i] = self.to_tensor(value)
            self.call("heddle_model_run", handle, names, tensors, len(inputs), outputs)
            return [self.to_array(output) for output in outputs]
        finally:
            for tensor in [*tensors, *outputs]:
                self.library.heddle_tensor_free(tensor)
