"""Arrays at the border: elements narrower than a byte, byte order, read-only memory, buffers of every form, and DLPack."""
import array
import ctypes
import unittest

import heddle
import models
import numpy as np
from exchange import Exchanged, Managed, Versioned
from onnx import TensorProto

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# dtype of ml_dtypes: (type of ONNX, values)
NARROW = {
    "int4": (TensorProto.INT4, [-8, 7, 0, -1, 3]), "uint4": (TensorProto.UINT4, [15, 7, 0, 8, 3]),
    "int2": (getattr(TensorProto, "INT2", None), [-2, 1, 0, -1, 1]), "uint2": (getattr(TensorProto, "UINT2", None), [3, 1, 0, 2, 3]),
    "float4_e2m1fn": (TensorProto.FLOAT4E2M1, [-6, 0.5, 0, -1, 3]),
}
BYTES = {
    "bfloat16": TensorProto.BFLOAT16, "float8_e4m3fn": TensorProto.FLOAT8E4M3FN, "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2, "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "float8_e8m0fnu": getattr(TensorProto, "FLOAT8E8M0", None),
}
VALUES = {"float8_e8m0fnu": [0.25, 4, 1, 2, 8]}


def compiled(proto):
    return heddle.compile(proto, threads=1)


def narrow_arrays():
    for name, (onnx_type, values) in NARROW.items():
        if onnx_type is not None and hasattr(ml_dtypes, name):
            yield name, onnx_type, np.array(values, np.float32), np.array(values).astype(getattr(ml_dtypes, name))


class Refused(unittest.TestCase):
    def refusal(self, call, cls=heddle.InputError):
        with self.assertRaises(cls) as caught:
            call()
        return str(caught.exception)


@unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
class Narrow(unittest.TestCase):
    def test_inputs(self):
        """The values count, whatever the bits are that ml_dtypes does not read."""
        for name, onnx_type, values, x in narrow_arrays():
            for shape in ((5,), (1, 5, 1)):
                model = compiled(models.cast(onnx_type, TensorProto.FLOAT, shape))
                for bits in (x, (x.view(np.uint8) ^ np.uint8(0xF0)).view(x.dtype)):
                    with self.subTest(name, shape=shape):
                        np.testing.assert_array_equal(model(bits.reshape(shape)), values.reshape(shape))

    def test_outputs(self):
        for name, onnx_type, values, x in narrow_arrays():
            model = compiled(models.cast(TensorProto.FLOAT, onnx_type, (5,)))
            with self.subTest(name):
                result = model(values)
                self.assertEqual(result.dtype, x.dtype)
                self.assertEqual(result.tobytes(), x.tobytes())
                out = np.zeros_like(x)
                self.assertIs(model(values, out=out), out)
                self.assertEqual(out.tobytes(), x.tobytes())

    def test_dequantize(self):
        for name in ("int4", "uint4"):
            onnx_type, values = NARROW[name]
            model = compiled(models.dequantize(onnx_type, (5,), scale=0.5))
            np.testing.assert_array_equal(model(np.array(values).astype(getattr(ml_dtypes, name))), np.array(values, np.float32) * 0.5)

    def test_tensors(self):
        for name, onnx_type, values, x in narrow_arrays():
            with self.subTest(name):
                tensor = heddle.tensor(x)
                np.testing.assert_array_equal(compiled(models.cast(onnx_type, TensorProto.FLOAT, (5,)))(tensor).numpy(), values)
                self.assertEqual(tensor.numpy().tobytes(), x.tobytes())
                np.testing.assert_array_equal(tensor.numpy().astype(np.float32), values)
                bits = heddle.tensor(x.view(np.uint8), tensor.dtype)
                np.testing.assert_array_equal(bits.numpy().astype(np.float32), values)
                if not name.startswith("float"):
                    np.testing.assert_array_equal(np.asarray(tensor), values)

    def test_values_that_decide(self):
        """What the tools and compile() take as values."""
        x = np.array(NARROW["int4"][1]).astype(ml_dtypes.int4)
        self.assertTrue(heddle.verify(models.cast(TensorProto.INT4, TensorProto.FLOAT, (5,)), inputs={"x": x}))

    def test_types_of_whole_bytes(self):
        for name, onnx_type in BYTES.items():
            if onnx_type is None:
                continue
            values = np.array(VALUES.get(name, [-1.5, 0.5, 0, 2, -8]), np.float32)
            x = values.astype(getattr(ml_dtypes, name))
            widen, back = (compiled(models.cast(*types, (5,))) for types in ((onnx_type, TensorProto.FLOAT), (TensorProto.FLOAT, onnx_type)))
            with self.subTest(name):
                np.testing.assert_array_equal(widen(x), values)
                np.testing.assert_array_equal(widen(heddle.tensor(x)).numpy(), values)
                result, out = back(values), np.zeros_like(x)
                self.assertEqual((result.dtype, result.tobytes()), (x.dtype, x.tobytes()))
                back(values, out=out)
                self.assertEqual(out.tobytes(), x.tobytes())

    def test_types_that_heddle_lacks(self):
        model = compiled(models.add((5,)))
        for name in ("float8_e4m3", "float8_e3m4", "float6_e2m3fn", "int1"):
            if hasattr(ml_dtypes, name):
                x = np.zeros(5, getattr(ml_dtypes, name))
                with self.subTest(name), self.assertRaisesRegex(heddle.UnsupportedError, name):
                    model(x, x)


class ByteOrder(Refused):
    def test_numpy(self):
        for dtype in ("f4", "f8", "i4", "u2", "f2"):
            onnx_type = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "i4": TensorProto.INT32, "u2": TensorProto.UINT16,
                         "f2": TensorProto.FLOAT16}[dtype]
            model, x = compiled(models.add((3,), onnx_type)), np.array([1, 2, 3], dtype)
            swapped = x.astype(">" + dtype)
            for call in (lambda: model(swapped, x), lambda: model(x, x, out=np.zeros(3, ">" + dtype)), lambda: heddle.tensor(swapped)):
                told = self.refusal(call)
                for part in ("byte order", f">{np.dtype(dtype).char}", 'newbyteorder("=")'):
                    self.assertIn(part, told)
            np.testing.assert_array_equal(model(swapped.astype(swapped.dtype.newbyteorder("=")), x), x + x)
            np.testing.assert_array_equal(model(x.astype("<" + dtype), x), x + x)

    def test_one_byte_has_no_order(self):
        x = np.array([1, 2, 3], ">i1")
        np.testing.assert_array_equal(compiled(models.add((3,), TensorProto.INT8))(x, x), [2, 4, 6])

    def test_other_buffers(self):
        model = compiled(models.add((3,)))
        swapped = (ctypes.c_float.__ctype_be__ * 3)(1, 2, 3)
        for given in (swapped, memoryview(swapped)):
            self.assertIn("byte order", self.refusal(lambda: model(given, given)))


class Buffers(Refused):
    def test_ctypes(self):
        for of, onnx_type in ((ctypes.c_float, TensorProto.FLOAT), (ctypes.c_double, TensorProto.DOUBLE), (ctypes.c_int32, TensorProto.INT32),
                              (ctypes.c_long, TensorProto.INT64), (ctypes.c_ubyte, TensorProto.UINT8), (ctypes.c_int16, TensorProto.INT16)):
            with self.subTest(of.__name__):
                x = (of * 3)(1, 2, 3)
                np.testing.assert_array_equal(compiled(models.add((3,), onnx_type))(x, x), [2, 4, 6])

    def test_ctypes_of_any_rank(self):
        rows, scalar = ((ctypes.c_float * 3) * 2)((1, 2, 3), (4, 5, 6)), ctypes.c_float(2.5)
        np.testing.assert_array_equal(compiled(models.add((2, 3)))(rows, rows), [[2, 4, 6], [8, 10, 12]])
        self.assertEqual(compiled(models.add(()))(scalar, scalar), 5)
        nothing = (ctypes.c_float * 0)()
        self.assertEqual(compiled(models.add((0,)))(nothing, nothing).shape, (0,))

    def test_ctypes_as_out(self):
        x, out = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_float * 3)()
        self.assertIs(compiled(models.add((3,)))(x, x, out=out), out)
        self.assertEqual(list(out), [2, 4, 6])

    def test_other_exporters(self):
        add = compiled(models.add((4,)))
        floats = array.array("f", [1, 2, 3, 4])
        bits = bytearray(floats.tobytes())
        for x in (floats, memoryview(floats), memoryview(bits).cast("f"), memoryview(bits).cast("f", [4]), memoryview(bytes(bits)).cast("f")):
            np.testing.assert_array_equal(add(x, floats), [2, 4, 6, 8])
        longs = memoryview(array.array("l", [1, 2, 3, 4]))
        np.testing.assert_array_equal(compiled(models.add((4,), TensorProto.INT64))(longs, longs.cast("B").cast("@q")), [2, 4, 6, 8])
        for x in (bytearray([1, 2, 3, 4]), bytes([1, 2, 3, 4])):
            np.testing.assert_array_equal(compiled(models.add((4,), TensorProto.UINT8))(x, x), [2, 4, 6, 8])

    def test_refused(self):
        add = compiled(models.add((2,)))
        floats = memoryview(array.array("f", [1, 2, 3, 4]))
        self.assertIn("strides are [2]", self.refusal(lambda: add(floats[::2], floats[::2])))
        chars = memoryview(b"ab").cast("c")
        self.assertIn('"c"', self.refusal(lambda: add(chars, chars), heddle.UnsupportedError))
        released = memoryview(bytearray(8))
        released.release()
        self.assertIn("released", self.refusal(lambda: add(released, released)))

    def test_rows_in_memory_of_their_own(self):
        try:
            from _testbuffer import ND_PIL, ndarray
        except ImportError:
            self.skipTest("Python has no _testbuffer")
        rows = ndarray([1.0, 2.0, 3.0, 4.0], shape=[2, 2], format="f", flags=ND_PIL)
        self.assertIn("suboffsets", self.refusal(lambda: compiled(models.add((2, 2)))(rows, rows)))


class ReadOnly(Refused):
    def test_inputs_may_be(self):
        x = np.array([1, 2, 3], np.float32)
        x.flags.writeable = False
        np.testing.assert_array_equal(compiled(models.add((3,)))(x, memoryview(x.tobytes()).cast("f")), [2, 4, 6])

    def test_out(self):
        for shape in ((3,), (2, 3)):
            model, x = compiled(models.add(shape)), np.ones(shape, np.float32)
            frozen = np.zeros(shape, np.float32)
            frozen.flags.writeable = False
            lent = heddle.tensor(np.zeros(shape, np.float32))
            outs = [frozen, Versioned(lent, read_only=True), Exchanged(lent, read_only=True)]
            if len(shape) == 1:
                outs.append(memoryview(frozen.tobytes()).cast("f"))
            for out in outs:
                told = self.refusal(lambda: model(x, x, out=out))
                self.assertIn("output c", told)
                self.assertIn("read-only", told)
            self.assertFalse(frozen.any() or lent.numpy().any())
            for out in (Versioned(lent), Exchanged(lent)):
                model(x, x, out=out)
                np.testing.assert_array_equal(lent.numpy(), x + x)
            np.testing.assert_array_equal(np.asarray(model(Versioned(heddle.tensor(x), read_only=True), x).numpy()), x + x)


class Lent(unittest.TestCase):
    """heddle.Tensor.__dlpack__"""

    def capsule(self, tensor, **words):
        return Managed.of(tensor.__dlpack__(max_version=(1, 1), **words))

    def test_copy(self):
        for dtype in (np.float32, np.int16):
            tensor = heddle.tensor(np.array([1, 2, 3], dtype))
            copy = np.from_dlpack(tensor, copy=True)
            copy[0] = 9
            self.assertEqual(tensor.numpy().tolist(), [1, 2, 3])
            for words in ({}, {"copy": None}, {"copy": False}):
                shared = np.from_dlpack(tensor, **words)
                shared[1] += 1
                self.assertEqual(tensor.numpy()[1], shared[1])

    def test_flags(self):
        tensor = heddle.tensor(np.ones(3, np.float32))
        for words, flags in (({}, 0), ({"copy": False}, 0), ({"copy": True}, 2), ({"dl_device": (1, 0)}, 0)):
            lent = self.capsule(tensor, **words)
            self.assertEqual((lent.flags, lent.tensor.data == tensor.data_ptr), (flags, flags == 0))
        self.assertNotEqual(Managed.address_in(tensor.__dlpack__(copy=True)), tensor.data_ptr)  # without a version there are no flags

    def test_what_cannot_be(self):
        tensor = heddle.tensor(np.ones(3, np.float32))
        for words, cls in (({"dl_device": (2, 0), "copy": False}, BufferError), ({"dl_device": (10, 0)}, BufferError),
                           ({"dl_device": "cpu"}, TypeError), ({"copy": "yes"}, TypeError)):
            with self.subTest(words), self.assertRaises(cls):
                tensor.__dlpack__(**words)
        with self.assertRaises(BufferError):
            heddle.empty((3,), "i4").__dlpack__()

    def test_names_of_devices(self):
        for name in ("cuda:1junk", "cuda:", "cuda: 1", "cuda:-1", "cuda:1 ", "cuda:99999999999", "cuda1", "CPU", ""):
            for call in (lambda: heddle.empty((3,), "f32", device=name), lambda: heddle.tensor(np.ones(3), device=name)):
                with self.subTest(name), self.assertRaisesRegex(heddle.InputError, f'"{name}" is no device'):
                    call()
            if name != "":
                with self.subTest(target=name), self.assertRaisesRegex(heddle.InputError, "target"):
                    heddle.compile(models.add(), target=name)


if __name__ == "__main__":
    unittest.main()
