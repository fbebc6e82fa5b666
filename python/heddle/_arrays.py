"""What Heddle asks of array libraries beside `__dlpack__`: streams, memory, and arrays of their own kind.

None of them is imported here: a library whose array is given is loaded already.
"""
import sys
from typing import Any


def stream_handle(stream: Any) -> int:
    """The address of a stream of torch (`cuda_stream`), CuPy (`ptr`) or with the protocol `__cuda_stream__`."""
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    from heddle._errors import InputError

    raise InputError(
        f"argument stream: a {type(stream).__name__} is no stream. Give a stream of torch or CuPy, or its address as a number",
        201, "argument stream", f"a {type(stream).__name__} is no stream", "Give a stream of torch or CuPy, or its address")


class Hooks:
    """For any library with `__dlpack__`. Results are heddle.Tensor, which every other library takes."""

    def export(self, array: Any, stream: int) -> Any:
        """The capsule of an array, whose producer's work is in front of what comes onto `stream`."""
        on_gpu = int(array.__dlpack_device__()[0]) in (2, 13)
        # DLPack calls the default stream 1.
        words = {"stream": (stream or 1)} if on_gpu else {}
        try:
            return array.__dlpack__(**words, max_version=(1, 1))
        except TypeError:
            return array.__dlpack__(**words)

    def from_dlpack(self, tensor: Any) -> Any:
        return tensor

    def empty(self, shape: tuple, dtype: str, device: int) -> Any:
        """Memory of the library's own allocator; None: it has none for others."""
        return None

    def current_stream(self, device: int) -> Any:
        return None


class TorchHooks(Hooks):
    """torch before 2.10, which has no C interface of DLPack."""

    def __init__(self):
        self.torch = sys.modules["torch"]

    def export(self, array: Any, stream: int) -> Any:
        # -1: the work goes onto torch's own stream, so that nothing is to be waited for.
        return self.torch.utils.dlpack.to_dlpack(array.detach())

    def from_dlpack(self, tensor: Any) -> Any:
        return self.torch.from_dlpack(tensor)

    def empty(self, shape: tuple, dtype: str, device: int) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=f"cuda:{device}")

    def current_stream(self, device: int) -> Any:
        return self.torch._C._cuda_getCurrentRawStream(device) if self.torch.cuda.is_available() else None


class CupyHooks(Hooks):
    def __init__(self):
        self.cupy = sys.modules["cupy"]

    def export(self, array: Any, stream: int) -> Any:
        return array.__dlpack__(stream=-1)  # on CuPy's own current stream

    def from_dlpack(self, tensor: Any) -> Any:
        return self.cupy.from_dlpack(tensor)

    def empty(self, shape: tuple, dtype: str, device: int) -> Any:
        with self.cupy.cuda.Device(device):
            return self.cupy.empty(shape, dtype=dtype)

    def current_stream(self, device: int) -> Any:
        with self.cupy.cuda.Device(device):
            return self.cupy.cuda.get_current_stream().ptr


class JaxHooks(Hooks):
    """JAX has streams of its own, which wait for ours as `__dlpack__` says."""

    def from_dlpack(self, tensor: Any) -> Any:
        return sys.modules["jax"].dlpack.from_dlpack(tensor)


def hooks_of(cls: type) -> Hooks:
    """Those of the library that a class of arrays belongs to."""
    library = cls.__module__.partition(".")[0]
    if library == "torch":
        return TorchHooks()
    if library == "cupy":
        return CupyHooks()
    if library in ("jax", "jaxlib"):
        return JaxHooks()
    return Hooks()
