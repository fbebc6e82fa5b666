"""Arrays as kernels get them: an address, a type of elements, and a device."""
import ctypes
import math
import sys
from typing import Any, Callable, NamedTuple, Optional, Tuple

from heddle._errors import make
from heddle.tile.language.types import BY_NAME, dtype

HOST = None

# str(dtype) of the libraries -> type of the language; filled as they are met
_TYPES: dict = {}


def element_type(array_dtype: Any) -> dtype:
    """The language's type for a dtype of NumPy or PyTorch, or for its own."""
    try:
        return _TYPES[array_dtype]
    except KeyError:
        pass
    if isinstance(array_dtype, dtype):
        return array_dtype
    _check_byte_order(array_dtype)
    name = str(getattr(array_dtype, "name", None) or array_dtype).rpartition(".")[2].strip("'<>")
    if name not in BY_NAME:
        raise TypeError(f"arrays of {name} have no type in the language; there are {', '.join(sorted(BY_NAME))}")
    found = BY_NAME[name]
    _TYPES[array_dtype] = found
    return found


def _check_byte_order(array_dtype: Any) -> None:
    """Raises InputError for a dtype of NumPy whose bytes lie in the other order."""
    order = getattr(array_dtype, "byteorder", "=")
    if order in "=|" or order == {"little": "<", "big": ">"}[sys.byteorder]:
        return
    why = f"the byte order of its elements ({array_dtype.str}) is not this machine's, which is {sys.byteorder}-endian"
    remedy = 'Use x.astype(x.dtype.newbyteorder("="))'
    raise make(202, "array", why, remedy, f"array: {why}. {remedy}")


class Reinterpreted:
    """An array whose elements are taken as another type."""

    def __init__(self, base: Any, as_type: dtype):
        self.base, self.dtype = base, as_type
        self.shape, self.device = getattr(base, "shape", ()), getattr(base, "device", "cpu")

    def data_ptr(self) -> int:
        return address_of(self.base)

    def stride(self, *axes: int) -> Any:
        return self.base.stride(*axes)

    def __str__(self) -> str:
        return f"{self.dtype} of {self.base}"

    def element_size(self) -> int:
        return self.base.element_size()

    @property
    def data(self) -> Any:
        """The array that has the memory."""
        return self.base.data

    def new_empty(self, sizes: Any) -> "Reinterpreted":
        return Reinterpreted(self.base.new_empty(sizes), self.dtype)

    def cpu(self) -> "Reinterpreted":
        return Reinterpreted(self.base.cpu(), self.dtype)

    def copy_(self, other: "Reinterpreted") -> None:
        self.base.copy_(other.base)

    def clone(self) -> "Reinterpreted":
        return Reinterpreted(self.base.clone(), self.dtype)

    def to(self, device: Any) -> "Reinterpreted":
        return Reinterpreted(self.base.to(device), self.dtype)


def reinterpret(array: Any, as_type: dtype) -> Any:
    """The memory of an array as elements of another type."""
    if isinstance(array, Reinterpreted):
        array = array.base
    if element_type(array.dtype) == as_type:
        return array
    return Reinterpreted(array, as_type)


class Access(NamedTuple):
    """How arrays of a class tell where they are, and whether their memory is read-only."""

    address: Callable[[Any], int]
    device: Callable[[Any], Optional[int]]
    read_only: Callable[[Any], bool] = lambda array: False


# class -> its Access; None: no array
_ACCESS: dict = {}


def access_of(value: Any) -> Optional[Access]:
    """How the array tells where it is; None: it is no array. Asked of each class once."""
    cls = type(value)
    try:
        return _ACCESS[cls]
    except KeyError:
        _ACCESS[cls] = found = _access(value)
        return found


def _access(value: Any) -> Optional[Access]:
    if isinstance(value, type) or not hasattr(value, "dtype"):
        return None
    on_host = lambda array: HOST  # noqa: E731
    if isinstance(value, Reinterpreted):
        return Access(Reinterpreted.data_ptr, _torch_device, lambda array: is_read_only(array.base))
    if hasattr(value, "data_ptr"):
        is_method = callable(type(value).data_ptr)
        return Access(type(value).data_ptr if is_method else lambda array: array.data_ptr, _torch_device)
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__setitem__"):
        return None  # a number
    if hasattr(value, "__array_interface__"):
        return Access(lambda array: array.__array_interface__["data"][0], on_host, lambda array: array.__array_interface__["data"][1])
    if hasattr(value, "__cuda_array_interface__"):
        return Access(lambda array: array.__cuda_array_interface__["data"][0], _dlpack_device,
                      lambda array: array.__cuda_array_interface__["data"][1])
    if not hasattr(value, "__dlpack__"):
        return None
    return Access(lambda array: _dlpack(array)[0], _dlpack_device, lambda array: _dlpack(array)[1])


def _torch_device(array: Any) -> Optional[int]:
    device = array.device
    if isinstance(device, str):
        return int(device.partition(":")[2] or 0) if device.startswith("cuda") else HOST
    return (device.index or 0) if device.type == "cuda" else HOST


def _dlpack_device(array: Any) -> Optional[int]:
    place, ordinal = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (2, 0)
    return int(ordinal) if int(place) in (2, 13) else HOST


class _DLTensor(ctypes.Structure):
    """The head of what a DLPack capsule holds."""

    _fields_ = [("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", ctypes.c_uint32), ("shape", ctypes.c_uint64), ("strides", ctypes.c_uint64), ("byte_offset", ctypes.c_uint64)]


class _DLManagedVersioned(ctypes.Structure):
    """The head of what a capsule of DLPack 1.0 and later holds."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_READ_ONLY, _IS_COPIED = 1, 2  # bits of the flags


def _dlpack(array: Any) -> Tuple[int, bool]:
    """(address, whether the memory is read-only). The capsule goes at once: the array keeps the memory."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    try:
        capsule = array.__dlpack__(max_version=(1, 1))
    except TypeError:  # a library from before that version
        capsule = array.__dlpack__()
    flags = 0
    if is_valid(capsule, b"dltensor_versioned"):
        versioned = _DLManagedVersioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
        flags, held = versioned.flags, versioned.tensor
    else:
        held = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    if flags & _IS_COPIED:
        why = f"a {type(array).__name__} gives a copy of its memory"
        remedy = "Give an array whose memory a kernel can use"
        raise make(202, "array", why, remedy, f"array: {why}. {remedy}")
    return held.data + held.byte_offset, bool(flags & _READ_ONLY)


def is_array(value: Any) -> bool:
    return access_of(value) is not None


def address_of(array: Any) -> int:
    """Where the first element is."""
    return access_of(array).address(array)


def is_read_only(array: Any) -> bool:
    """Whether the array says that its memory is not to be written."""
    return bool(access_of(array).read_only(array))


def bytes_of(array: Any) -> int:
    """From the first element to the last, whose strides are not negative."""
    if isinstance(array, Reinterpreted):
        array = array.base
    size = type_of(array).itemsize or 1
    if 0 in array.shape:
        return 0
    if callable(getattr(array, "stride", None)):
        strides = array.stride()
    elif getattr(array, "strides", None) is not None:
        strides = [stride // size for stride in array.strides]
    else:
        return math.prod(array.shape) * size
    return (1 + sum((extent - 1) * stride for extent, stride in zip(array.shape, strides))) * size


def type_of(array: Any) -> dtype:
    return element_type(array.dtype)


def device_of(array: Any) -> Optional[int]:
    """The ordinal of the GPU that has the array; None: the host."""
    return access_of(array).device(array)


def current_stream(array: Any, device: int) -> int:
    """The stream on which the array's library works now."""
    from heddle._arrays import hooks_of, stream_handle

    if isinstance(array, Reinterpreted):
        array = array.base
    if "torch" in sys.modules and type(array).__module__.startswith("torch"):
        return sys.modules["torch"]._C._cuda_getCurrentRawStream(device)
    stream = hooks_of(type(array)).current_stream(device)
    return 0 if stream is None else stream if isinstance(stream, int) else stream_handle(stream)
