"""What a launch takes as arguments: byte orders, read-only memory, kinds of arguments, and heddle.Tensor of every type."""
import mmap
import os
import tempfile
import unittest

import heddle
import heddle.tile as triton
import numpy as np
from exchange import Versioned

from tile_kernels import module_of

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

KERNELS = '''
@triton.jit
def copy(Z, X, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(Z + at, tl.load(X + at))

@triton.jit
def total(Z, X, N: tl.constexpr):
    tl.store(Z, tl.sum(tl.load(X + tl.arange(0, N)), 0))

@triton.jit
def count(Z, X, N: tl.constexpr):
    tl.atomic_add(Z + tl.arange(0, N), tl.load(X + tl.arange(0, N)))

@triton.jit
def some(Z, X, n, where, N: tl.constexpr):
    if where > 0:
        out = Z
    else:
        out = X
    at = tl.arange(0, N)
    tl.store(out + at, 1.0, at < n)

@triton.jit
def declared(Z, n: tl.int64, f: tl.float32, X: tl.const):
    tl.store(Z, n + f + tl.load(X))

@triton.jit
def helper(p, n):
    row = p + tl.arange(0, 4) * n
    return tl.load(row)

@triton.jit
def nested(Z, X, n):
    tl.store(Z + tl.arange(0, 4), helper(X, n))

@triton.jit
def below(Z, X, n, N: tl.constexpr):
    at = tl.arange(0, N)
    mask = at < n
    tl.store(Z + at, tl.load(X + at, mask), mask)
'''


class Arguments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = module_of(KERNELS)

    def setUp(self):
        self.z, self.x = np.zeros(4, np.float32), np.array([1, 2, 3, 4], np.float32)

    def refusal(self, call, *parts):
        with self.assertRaises(heddle.InputError) as caught:
            call()
        for part in parts:
            self.assertIn(part, str(caught.exception))
        return caught.exception


class ByteOrder(Arguments):
    def test_refused(self):
        for dtype in ("f4", "f8", "i2", "u8"):
            z, x = np.zeros(4, dtype), np.array([1, 2, 3, 4], ">" + dtype)
            for _ in range(2):
                self.refusal(lambda: self.kernels.copy[(1,)](z, x, N=4), "argument X", "byte order", f">{dtype}", 'newbyteorder("=")')
                self.refusal(lambda: self.kernels.copy[(1,)](x, z, N=4), "argument Z", "byte order")
            self.kernels.copy[(1,)](z, x.astype(x.dtype.newbyteorder("=")), N=4)
            self.assertEqual(z.tolist(), [1, 2, 3, 4])

    def test_one_byte_and_this_machines_order(self):
        for dtype in (">i1", "<f4", "=f4"):
            z, x = np.zeros(4, dtype), np.array([1, 2, 3, 4], dtype)
            self.kernels.copy[(1,)](z, x, N=4)
            self.assertEqual(z.tolist(), [1, 2, 3, 4])


class ReadOnly(Arguments):
    def frozen(self, array):
        view = array[:]
        view.flags.writeable = False
        return view

    def test_only_stores_are_refused(self):
        """Also after launches with the same types that were allowed."""
        for dtype in (np.float32, np.int64):
            z, x = np.zeros(4, dtype), np.array([1, 2, 3, 4], dtype)
            for kernel in (self.kernels.copy, self.kernels.count):
                for _ in range(2):
                    z[:] = 0
                    kernel[(1,)](z, self.frozen(x), N=4)
                    self.assertEqual(z.tolist(), [1, 2, 3, 4])
                    self.refusal(lambda: kernel[(1,)](self.frozen(z), x, N=4), "argument Z", "read-only", kernel.__name__)
                    self.assertEqual(z.tolist(), [1, 2, 3, 4])

    def test_pointers_that_may_be_either(self):
        self.refusal(lambda: self.kernels.some[(1,)](self.z, self.frozen(self.x), 4, 2, N=4), "argument X", "read-only")

    def test_memory_maps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            self.x.tofile(path)
            mapped = np.memmap(path, np.float32, "r")
            self.kernels.copy[(1,)](self.z, mapped, N=4)
            self.assertEqual(self.z.tolist(), [1, 2, 3, 4])
            self.refusal(lambda: self.kernels.copy[(1,)](mapped, self.z, N=4), "read-only")
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
                given = np.frombuffer(pages, np.float32)
                self.refusal(lambda: self.kernels.total[(1,)](given, self.x, N=4), "argument Z", "read-only")
                del given
            del mapped

    def test_views_of_other_types(self):
        as_bits = triton.reinterpret(self.frozen(self.x), triton.language.int32)
        self.refusal(lambda: self.kernels.copy[(1,)](as_bits, self.z.view(np.int32), N=4), "argument Z", "read-only")

    def test_other_libraries(self):
        class Interface:
            """A library with __array_interface__."""

            def __init__(self, array):
                self.dtype, self.shape, self.array = array.dtype, array.shape, array

            @property
            def __array_interface__(self):
                return self.array.__array_interface__

        class Dlpack(Versioned):
            dtype, shape = np.dtype(np.float32), (4,)

        lent = heddle.tensor(self.z)
        for writable, frozen in ((Interface(self.z), Interface(self.frozen(self.z))), (Dlpack(lent), Dlpack(lent, read_only=True))):
            self.refusal(lambda: self.kernels.copy[(1,)](frozen, self.x, N=4), "argument Z", "read-only")
            self.kernels.copy[(1,)](writable, self.x, N=4)
            self.kernels.copy[(1,)](self.x, frozen, N=4)
        self.assertEqual((self.z.tolist(), lent.numpy().tolist()), ([1, 2, 3, 4], [1, 2, 3, 4]))

    def test_compiled_kernels_and_descriptors(self):
        kernel = self.kernels.copy.warmup(self.z, self.x, N=4, grid=(1,))
        self.refusal(lambda: kernel[(1,)](self.frozen(self.z), self.x), "argument Z", "read-only")
        kernel[(1,)](self.z, self.frozen(self.x))
        self.assertEqual(self.z.tolist(), [1, 2, 3, 4])


class Kinds(Arguments):
    def test_what_no_kernel_takes(self):
        for given, part in ((object(), "object"), (np.zeros(4, np.complex64), "complex64"), ({}, "dict"), (2**70, "64 bits"),
                            (np.zeros(4, "U3"), "str")):
            self.refusal(lambda: self.kernels.copy[(1,)](self.z, given, N=4), "argument X", part)
            with self.assertRaises(TypeError):
                self.kernels.copy[(1,)](self.z, given, N=4)

    def test_no_pointer(self):
        for given, part in ((3.5, "a number (f32)"), (7, "a number (i32)"), (1, "1 is given"), ("abc", "'abc'"), (None, "None"), ([1, 2], "tuple"),
                            (True, "a number (i1)")):
            with self.subTest(given=given):
                error = self.refusal(lambda: self.kernels.copy[(1,)](self.z, given, N=4), "argument X of copy()", part)
                self.assertIsInstance(error, triton.CompilationError)

    def test_no_pointer_in_a_function_that_is_called(self):
        self.refusal(lambda: self.kernels.nested[(1,)](self.z, 2.5, 3), "argument X", "of nested()", "a number (f32)", "as a pointer")
        self.kernels.nested[(1,)](self.z, self.x, 1)
        self.assertEqual(self.z.tolist(), [1, 2, 3, 4])

    def test_no_number(self):
        for given, part in ((self.x, "an array (*fp32)"), ("four", "'four'"), ((1, 2), "a tuple")):
            with self.subTest(part):
                self.refusal(lambda: self.kernels.below[(1,)](self.z, self.x, given, N=4), "argument n of below()", part, "as a number")

    def test_annotations(self):
        z = np.zeros(1, np.float64)
        for arguments in ((z, 2, 0.5, self.x), (z, np.int64(2), np.float32(0.5), self.x), (z, np.int8(2), 0.5, self.x)):
            self.kernels.declared[(1,)](*arguments)
            self.assertEqual(z[0], 3.5)
        for arguments, name in (((z, 2.5, 0.5, self.x), "n"), ((z, self.x, 0.5, self.x), "n"), ((z, np.float64(2), 0.5, self.x), "n"),
                                ((z, 2, self.x, self.x), "f"), ((z, 2, "half", self.x), "f"), ((z, 2, 0.5, 3), "X")):
            for _ in range(2):
                self.refusal(lambda: self.kernels.declared[(1,)](*arguments), f"argument {name}", "declares")


class Tensors(Arguments):
    """heddle.Tensor"""

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_float8(self):
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bfloat16"):
            with self.subTest(name):
                x = np.array([1, -2, 0.5, 4], np.float32).astype(getattr(ml_dtypes, name))
                for given in (x, heddle.tensor(x)):
                    z = np.zeros(4, np.float32)
                    self.kernels.copy[(1,)](z, given, N=4)
                    self.assertEqual(z.tolist(), [1, -2, 0.5, 4])
                    same = heddle.tensor(np.zeros_like(x))
                    self.kernels.copy[(1,)](same, given, N=4)
                    self.assertEqual(same.numpy().tobytes(), x.tobytes())
                out = np.zeros_like(x)
                self.kernels.copy[(1,)](out, heddle.tensor(x), N=4)
                self.assertEqual(out.tobytes(), x.tobytes())

    def test_other_types(self):
        for dtype in (np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8, np.bool_):
            x = np.array([1, 0, 1, 1], dtype)
            z = heddle.tensor(np.zeros(4, dtype))
            self.kernels.copy[(1,)](z, heddle.tensor(x), N=4)
            self.assertEqual(z.numpy().tolist(), x.tolist())

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_types_that_kernels_lack(self):
        for name in ("int4", "float8_e8m0fnu"):
            x = np.ones(4, getattr(ml_dtypes, name))
            for given in (x, heddle.tensor(x)):
                self.refusal(lambda: self.kernels.copy[(1,)](self.z, given, N=4), "argument X", "have no type in the language")


if __name__ == "__main__":
    unittest.main()
