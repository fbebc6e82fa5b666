"""A library of arrays with the C interface of DLPack, as torch has it: on heddle.Tensor, through ctypes."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

import heddle


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", Device), ("rank", c_int32), ("dtype", DataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class Managed(Structure):
    _fields_ = [("version", c_uint32 * 2), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", DLTensor)]

    @classmethod
    def of(cls, capsule):
        """What a versioned capsule holds, as long as the capsule is there."""
        managed = cls.from_address(_pointer(capsule, b"dltensor_versioned"))
        managed.capsule = capsule
        return managed

    @staticmethod
    def address_in(capsule):
        """Where the memory of a capsule without a version is."""
        return DLTensor.from_address(_pointer(capsule, b"dltensor")).data


READ_ONLY = 1  # of the flags

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, c_char_p]
_increment = ctypes.pythonapi.Py_IncRef
_increment.argtypes = [ctypes.py_object]

FLOAT = DataType(2, 32, 1)
NAMES = {(2, 32): "f32", (1, 8): "u8"}


class Exchanged:
    """An array of this library: a tensor, and how its elements are to be read."""

    stream = 0  # current for all
    allocated = []  # shapes that were asked for

    def __init__(self, tensor, shape=None, strides=None, offset=0, read_only=False):
        self.tensor, self.read_only = tensor, read_only
        shape = tensor.shape if shape is None else shape
        self.shape = tuple(shape)
        self._shape = (c_int64 * len(shape))(*shape)
        self._strides = None if strides is None else (c_int64 * len(strides))(*strides)
        self._offset = offset

    def numpy(self):
        return self.tensor.numpy()

    def __dlpack__(self, **words):
        raise AssertionError("the C interface is there to be used")


def _owned(tensor):
    """The capsule's content of a heddle.Tensor, which the caller takes."""
    capsule = tensor.__dlpack__(max_version=(1, 1))
    address = _pointer(capsule, b"dltensor_versioned")
    _rename(capsule, b"used_dltensor_versioned")
    return address


@CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, c_void_p)
def _allocate(prototype, out, context, set_error):
    wanted = prototype.contents
    shape = [wanted.shape[i] for i in range(wanted.rank)]
    Exchanged.allocated.append(shape)
    dtype = NAMES[wanted.dtype.code, wanted.dtype.bits]
    out[0] = _owned(heddle.empty(shape, dtype, device=f"cuda:{wanted.device.id}", stream=Exchanged.stream))
    return 0


@CFUNCTYPE(c_int, ctypes.py_object, POINTER(c_void_p))
def _own(array, out):
    out[0] = _owned(array.tensor)
    managed = Managed.from_address(out[0])
    managed.tensor.rank, managed.tensor.shape, managed.tensor.byte_offset = len(array.shape), array._shape, array._offset
    if array._strides is not None:
        managed.tensor.strides = array._strides
    if array.read_only:
        managed.flags |= READ_ONLY
    return 0


class Versioned:
    """An array of a library that has DLPack in Python alone."""

    def __init__(self, tensor, read_only=False):
        self.tensor, self.read_only = tensor, read_only

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **words):
        if "max_version" not in words:
            raise BufferError("without a version nobody would know that the memory is read-only")
        capsule = self.tensor.__dlpack__(**words)
        if self.read_only:
            Managed.of(capsule).flags |= READ_ONLY
        return capsule


class _Holder:
    """Takes over what a pointer owns, as an array of another library would."""

    def __init__(self, address):
        self.address = address
        device = Managed.from_address(address).tensor.device
        self.device = (device.type, device.id)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **words):
        return _new(self.address, b"dltensor_versioned", None)


@CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
def _to_object(managed, out):
    tensor = Managed.from_address(managed).tensor
    array = Exchanged.__new__(Exchanged)
    array.managed = managed
    array.tensor = _Holder(managed)
    array.shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    array._view = tensor
    _increment(array)
    out[0] = id(array)
    return 0


@CFUNCTYPE(c_int, ctypes.py_object, POINTER(DLTensor))
def _view(array, out):
    if hasattr(array, "_view"):
        ctypes.memmove(out, ctypes.byref(array._view), ctypes.sizeof(DLTensor))
        return 0
    tensor = array.tensor
    on_gpu = tensor.device != "cpu"
    device = Device(2, int(tensor.device.split(":")[1])) if on_gpu else Device(1, 0)
    described = DLTensor(tensor.data_ptr, device, len(array.shape), FLOAT, array._shape, array._strides, array._offset)
    ctypes.memmove(out, ctypes.byref(described), ctypes.sizeof(DLTensor))
    return 0


@CFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
def _current_stream(kind, device, out):
    out[0] = Exchanged.stream
    return 0


class Api(Structure):
    _fields_ = [("version", c_uint32 * 2), ("previous", c_void_p), ("allocate", c_void_p), ("own", c_void_p),
                ("to_object", c_void_p), ("view", c_void_p), ("current_stream", c_void_p)]


def _address(function):
    return ctypes.cast(function, c_void_p).value


_api = Api((c_uint32 * 2)(1, 3), None, _address(_allocate), _address(_own), _address(_to_object), _address(_view),
           _address(_current_stream))
_NAME = b"dlpack_exchange_api"  # a capsule keeps the address of its name
Exchanged.__dlpack_c_exchange_api__ = _new(ctypes.addressof(_api), _NAME, None)
