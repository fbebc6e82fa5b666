"""The tile language: types and values of expressions against NumPy in float64, control flow, tiles of any size."""
import os
import unittest

import numpy as np

from tile_kernels import apply, module_of

import heddle.tile as triton

random = np.random.default_rng(0)
FLOATS = (np.float16, np.float32, np.float64)
INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
N = 24  # no power of two


def numbers(dtype, low=-40, high=40):
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(N).astype(dtype)
    made = random.integers(max(low, 0 if np.dtype(dtype).kind == "u" else low), high, N).astype(dtype)
    made[made == 0] = 3
    return made


def type_of(expression, *types):
    """The type of an expression of arrays of these types, in the language's words."""
    text = "@triton.jit\ndef kernel(X, Y):\n    x = tl.load(X)\n    y = tl.load(Y)\n    " + f"tl.static_assert(False, str(({expression}).dtype))\n"
    signature = {"X": f"*{types[0]}", "Y": f"*{types[-1]}"}
    try:
        triton.compile(triton.compiler.ASTSource(module_of(text).kernel, signature))
    except triton.CompileTimeAssertionFailure as error:
        return error.error_message


class Types(unittest.TestCase):
    def test_two_tensors(self):
        cases = {
            ("fp64", "fp16"): ("fp64", "fp64"), ("fp32", "int64"): ("fp32", "fp32"), ("fp16", "bf16"): ("fp16", "fp32"),
            ("fp16", "int32"): ("fp16", "fp32"), ("bf16", "bf16"): ("bf16", "fp32"), ("bf16", "int8"): ("fp32", "fp32"),
            ("int8", "int64"): ("int64", "fp32"), ("uint8", "uint32"): ("uint32", "fp32"),
        }
        for (a, b), (sum_type, quotient) in cases.items():
            for left, right in ((a, b), (b, a)):
                with self.subTest(left=left, right=right):
                    self.assertEqual(type_of("x + y", left, right), sum_type)
                    self.assertEqual(type_of("x / y", left, right), quotient)

    def test_mixed_signs(self):
        for a, b, result in (("int32", "uint32", "uint32"), ("int64", "uint32", "int64"), ("int8", "uint16", "uint16")):
            self.assertEqual(type_of("x * y", a, b), result)
        for op in ("/", "//", "%"):
            with self.assertRaisesRegex(triton.CompilationError, "different signedness"):
                type_of(f"x {op} y", "int32", "uint32")

    def test_numbers_are_weak_in_operators(self):
        for type, expression, result in (
                ("fp16", "x + 1.5", "fp16"), ("bf16", "2 * x", "bf16"), ("int8", "x + 1", "int8"), ("int8", "x + 1.0", "fp32"),
                ("fp16", "x / 2", "fp32"), ("uint64", "x >> 3", "uint64"), ("fp16", "tl.where(x > 0, x, 0)", "fp16")):
            self.assertEqual(type_of(expression, type), result)

    def test_numbers_are_strong_elsewhere(self):
        self.assertEqual(type_of("tl.maximum(x, 0.0)", "fp16"), "fp32")
        self.assertEqual(type_of("tl.maximum(x, y)", "bf16", "bf16"), "fp32")
        self.assertEqual(type_of("tl.to_tensor(4294967295)", "fp16"), "uint32")
        self.assertEqual(type_of("tl.to_tensor(1e-300)", "fp16"), "fp64")

    def test_refused(self):
        for type, expression, words in (
                ("uint8", "x + -1", "unsigned tensor and a negative scalar"), ("int8", "x + 300", "out of range for type int8"),
                ("fp16", "tl.exp(x)", "Expected dtype .* but got fp16"), ("fp32", "x & 1", "invalid operands"),
                ("fp32", "~x", "unary invert"), ("fp32", "x // y", "unexpected type"), ("fp8e4nv", "x + tl.load(Y).to(tl.int32)", "unexpected type")):
            with self.subTest(expression=expression), self.assertRaisesRegex(triton.CompilationError, words):
                type_of(expression, type)

    def test_sums(self):
        for source, result in (("int8", "int32"), ("uint16", "uint32"), ("fp16", "fp16"), ("int64", "int64")):
            self.assertEqual(type_of("tl.sum(x + tl.zeros((4,), x.dtype))", source), result)
        for source, result in (("int8", "int32"), ("bf16", "fp32"), ("fp16", "fp32"), ("fp64", "fp64")):
            self.assertEqual(type_of("tl.max(x + tl.zeros((4,), x.dtype))", source), result)


class Values(unittest.TestCase):
    def test_arithmetic(self):
        for dtype in (*FLOATS, np.int8, np.int32, np.uint16, np.int64):
            x, y = numbers(dtype), numbers(dtype)
            wide = (x.astype(np.float64), y.astype(np.float64)) if np.dtype(dtype).kind == "f" else (x, y)
            for op in ("+", "-", "*"):
                with np.errstate(over="ignore"):
                    expected = eval(f"a {op} b", {"a": wide[0], "b": wide[1]}).astype(dtype)
                np.testing.assert_allclose(apply(f"x {op} y", x, y, out=dtype), expected, rtol=2e-3 if dtype == np.float16 else 1e-6)

    def test_integer_division_truncates(self):
        for dtype in (np.int8, np.int32, np.int64):
            x, y = numbers(dtype), numbers(dtype)
            quotient = np.trunc(x.astype(np.float64) / y).astype(dtype)
            np.testing.assert_array_equal(apply("x // y", x, y, out=dtype), quotient)
            np.testing.assert_array_equal(apply("x % y", x, y, out=dtype), x - quotient * y)

    def test_known_numbers_divide_as_in_python(self):
        self.assertEqual(apply("x + (-7 // 2) * 10 + (-7 % 4)", np.zeros(N, np.int32), out=np.int32)[0], -39)

    def test_float_remainder_is_that_of_c(self):
        x, y = numbers(np.float32), numbers(np.float32)
        np.testing.assert_allclose(apply("x % y", x, y), np.fmod(x, y), rtol=1e-5, atol=1e-6)

    def test_shifts(self):
        x = numbers(np.int32, -1000, 1000)
        np.testing.assert_array_equal(apply("x >> 2", x, out=np.int32), x >> 2)
        np.testing.assert_array_equal(apply("x.to(tl.uint32, bitcast=True) >> 2", x, out=np.uint32), x.view(np.uint32) >> 2)
        np.testing.assert_array_equal(apply("x << 3", x, out=np.int32), x << 3)

    def test_comparisons(self):
        x, y = numbers(np.float32), numbers(np.float32)
        x[3] = y[4] = np.nan
        for op in ("<", "<=", ">", ">=", "==", "!="):
            np.testing.assert_array_equal(apply(f"x {op} y", x, y, out=np.int8), eval(f"x {op} y").astype(np.int8))
        np.testing.assert_array_equal(apply("(x > 0) & (y > 0) | ~(x < 1)", x, y, out=np.int8), (x > 0) & (y > 0) | ~(x < 1))
        np.testing.assert_array_equal(apply("-0.5 < x < 0.5", x, out=np.int8), (-0.5 < x) & (x < 0.5))

    def test_nan_in_extremes(self):
        x, y = numbers(np.float32), numbers(np.float32)
        x[2] = np.nan
        np.testing.assert_array_equal(apply("tl.maximum(x, y)", x, y), np.fmax(x, y))
        np.testing.assert_array_equal(apply("tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)", x, y), np.minimum(x, y))
        np.testing.assert_array_equal(apply("tl.clamp(y, -0.5, 0.5)", x, y), np.clip(y, -0.5, 0.5))

    def test_functions(self):
        x = numbers(np.float32)
        positive = abs(x) + 0.1
        for name, reference in (("exp", np.exp), ("exp2", np.exp2), ("sin", np.sin), ("cos", np.cos), ("floor", np.floor), ("ceil", np.ceil)):
            np.testing.assert_allclose(apply(f"tl.{name}(x)", x), reference(x.astype(np.float64)), rtol=1e-5, atol=1e-6)
        for name, reference in (("log", np.log), ("log2", np.log2), ("sqrt", np.sqrt), ("rsqrt", lambda v: 1 / np.sqrt(v))):
            np.testing.assert_allclose(apply(f"tl.{name}(x)", positive), reference(positive.astype(np.float64)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(apply("tl.sigmoid(x)", x), 1 / (1 + np.exp(-x.astype(np.float64))), rtol=1e-5)
        np.testing.assert_allclose(apply("tl.fma(x, x, 2.0)", x), x.astype(np.float64) ** 2 + 2, rtol=1e-6)
        np.testing.assert_allclose(apply("tl.extra.libdevice.tanh(x)", x), np.tanh(x.astype(np.float64)), rtol=1e-5, atol=1e-6)

    def test_casts(self):
        x = numbers(np.float32) * 100
        np.testing.assert_array_equal(apply("x.to(tl.int32)", x, out=np.int32), x.astype(np.int32))
        np.testing.assert_array_equal(apply("x.to(tl.float16)", x, out=np.float16), x.astype(np.float16))
        np.testing.assert_array_equal(apply("x.to(tl.int32, bitcast=True)", x, out=np.int32), x.view(np.int32))
        np.testing.assert_array_equal(apply("(x * 0).to(tl.int1)", x, out=np.int8), 0)
        down = apply("x.to(tl.float16, fp_downcast_rounding='rtz')", x, out=np.float16).astype(np.float64)
        self.assertTrue((abs(down) <= abs(x.astype(np.float64))).all())
        np.testing.assert_array_equal(apply("x.to(tl.float32, fp_downcast_rounding='rtne')", x), x)

    def test_scalars_broadcast(self):
        np.testing.assert_array_equal(apply("x[None, :] .reshape(N) + tl.load(X)", np.arange(N, dtype=np.float32)), np.arange(N))


def run(text, *arrays, grid=(1,), **words):
    module_of(text).kernel[grid](*arrays, **words)


class Shapes(unittest.TestCase):
    def check(self, body, expected, *arrays, dtype=np.float32):
        """A kernel with x, a 6 x 10 tile, whose body makes z."""
        z = np.full(expected.shape, 77, dtype)
        names = ["x", "y"][: len(arrays)]
        loads = ""
        for name, array in zip(names, arrays):
            at = " + ".join(f"tl.arange(0, {extent}){'[' + ', '.join(':' if j == i else 'None' for j in range(array.ndim)) + ']'} * {array.strides[i] // array.itemsize}"
                            for i, extent in enumerate(array.shape))
            loads += f"    {name} = tl.load({name.upper()} + {at})\n"
        at = " + ".join(f"tl.arange(0, {extent}){'[' + ', '.join(':' if j == i else 'None' for j in range(z.ndim)) + ']'} * {z.strides[i] // z.itemsize}"
                        for i, extent in enumerate(z.shape))
        store = f"    tl.store(Z + {at}, z)\n" if z.ndim else "    tl.store(Z, z)\n"
        run(f"@triton.jit\ndef combine(a, b):\n    return a + b\n\n@triton.jit\ndef kernel(Z, {', '.join(name.upper() for name in names)}):\n{loads}    {body}\n{store}",
            z, *arrays)
        np.testing.assert_allclose(z, expected, rtol=1e-5, atol=1e-5)

    def setUp(self):
        self.x = random.standard_normal((6, 10)).astype(np.float32)

    def test_reductions(self):
        x = self.x
        self.check("z = tl.sum(x, axis=1)", x.sum(1), x)
        self.check("z = tl.sum(x, axis=0, keep_dims=True)", x.sum(0, keepdims=True), x)
        self.check("z = tl.sum(x)", x.sum(), x)
        self.check("z = tl.max(x, 1)", x.max(1), x)
        self.check("z = tl.reduce(x, 0, combine)", x.sum(0), x)
        self.check("z = tl.argmin(x, 1)", x.argmin(1), x, dtype=np.int32)
        self.check("z = x.max(0, return_indices=True)[1]", x.argmax(0), x, dtype=np.int32)
        self.check("z = tl.softmax(x, 1)", np.exp(x) / np.exp(x).sum(1, keepdims=True), x)

    def test_ties_take_the_lower_index(self):
        x = np.zeros((6, 10), np.float32)
        self.check("z = tl.argmax(x, 1)", np.zeros(6), x, dtype=np.int32)

    def test_scans(self):
        x = self.x
        self.check("z = tl.cumsum(x, 1)", x.cumsum(1), x)
        self.check("z = tl.cumsum(x, 1, reverse=True)", x[:, ::-1].cumsum(1)[:, ::-1], x)
        self.check("z = tl.cumprod(x, 0)", x.cumprod(0), x)
        self.check("z = tl.associative_scan(x, 0, combine)", x.cumsum(0), x)

    def test_shapes(self):
        x = self.x
        self.check("z = tl.trans(x)", x.T, x)
        self.check("z = x.T.reshape(5, 12)", x.T.reshape(5, 12), x)
        self.check("z = x[:, None, :] + x[:, :, None]", x[:, None, :] + x[:, :, None], x)
        self.check("z = tl.flip(x, 0)", x[::-1], x)
        self.check("z = tl.sort(x)", np.sort(x), x)
        self.check("z = tl.topk(x, 3)", np.sort(x)[:, :-4:-1], x)
        self.check("z = tl.join(x, x * 2)", np.stack([x, x * 2], -1), x)
        self.check("a, b = tl.split(x.reshape(6, 5, 2))\n    z = a - b", x[:, ::2] - x[:, 1::2], x)
        self.check("z = tl.cat(x, x + 1, dim=0)", np.concatenate([x, x + 1]), x)
        self.check("z = tl.interleave(x, -x)", np.stack([x, -x], -1).reshape(6, 20), x)
        self.check("z = tl.permute(x.reshape(2, 3, 10), (2, 0, 1))", x.reshape(2, 3, 10).transpose(2, 0, 1), x)

    def test_parts(self):
        x = self.x
        self.check("z = x[:, 1:3]", x[:, 1:3], x)
        self.check("z = x[2:5, -4:]", x[2:5, -4:], x)
        self.check("z = x[3]", x[3], x)
        self.check("z = x[3, 4]", x[3, 4], x)

    def test_products(self):
        x, y = self.x, random.standard_normal((10, 7)).astype(np.float32)
        self.check("z = tl.dot(x, y, input_precision='ieee')", x.astype(np.float64) @ y, x, y)
        self.check("z = tl.dot(x, y, acc=tl.full((6, 7), 2.0, tl.float32), input_precision='ieee')", x.astype(np.float64) @ y + 2, x, y)


PROGRAMS = '''
import collections
Pair = collections.namedtuple("Pair", ["first", "second"])
LIMIT = tl.constexpr(5)

@triton.jit
def clipped(x, low: tl.constexpr = 0):
    if x < low:
        return low + 0
    elif x > 100:
        return 100
    x = x + 0
    if x > 50:
        return 50
    return x

@triton.jit
def early(Z, n):
    tl.store(Z, 1)
    if n > 3:
        return
    tl.store(Z + 1, 2)
    if n > 1:
        tl.store(Z + 2, 3)
        return
    else:
        tl.store(Z + 3, 4)
    tl.store(Z + 4, 5)

@triton.jit
def clip_all(Z, X, N: tl.constexpr):
    for i in tl.static_range(N):
        tl.store(Z + i, clipped(tl.load(X + i)))

@triton.jit
def fibonacci(Z, n):
    a, b = 0, 1
    i = 0
    while i < n and b < 1000:
        a, b = b, a + b
        i += 1
    tl.store(Z, a)

@triton.jit
def backwards(Z, n):
    at = 0
    for i in range(n, 0, -2):
        tl.store(Z + at, i)
        at += 1

@triton.jit
def unchanged(Z, n):
    step: tl.constexpr = 2
    pair = Pair(1, 2.5)
    total = 0.0
    for i in range(n):
        if i % step == 0:
            total += pair.second
        else:
            total -= pair.first
    tl.store(Z, total if n > 2 else -1.0)
    tl.store(Z + 1, pair[0])
    if (twice := n * 2) > LIMIT:
        tl.store(Z + 2, twice)

@triton.jit
def summed(first, *rest):
    total = first
    for i in tl.static_range(len(rest)):
        total += rest[i]
    return total

@triton.jit
def variadic(Z, *values):
    tl.static_assert(len(values) == 3, f"{len(values)} values")
    tl.store(Z, summed(*values))
    tl.store(Z + 1, sum_of((values[0], (values[1], 4))))

@triton.jit
def sum_of(nested):
    a, (b, c) = nested
    return a + b + c

@triton.aggregate
class Span:
    start: tl.tensor
    size: tl.constexpr

    @triton.jit
    def end(self):
        return self.start + self.size

@triton.jit
def spans(Z, n):
    span = Span(n, 4)
    for _ in range(3):
        span = Span(span.end(), 4)
    tl.store(Z, span.start)
'''


class Control(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = module_of(PROGRAMS)

    def run_program(self, name, *arguments, dtype=np.int32, size=8, **words):
        z = np.full(size, -7, dtype)
        getattr(self.programs, name)[(1,)](z, *arguments, **words)
        return z.tolist()

    def test_early_return(self):
        self.assertEqual(self.run_program("early", 5)[:5], [1, -7, -7, -7, -7])
        self.assertEqual(self.run_program("early", 2)[:5], [1, 2, 3, -7, -7])
        self.assertEqual(self.run_program("early", 0)[:5], [1, 2, -7, 4, 5])

    def test_returns_of_functions(self):
        self.assertEqual(self.run_program("clip_all", np.array([-3, 7, 60, 200], np.int32), N=4)[:4], [0, 7, 50, 100])

    def test_while(self):
        self.assertEqual(self.run_program("fibonacci", 10)[0], 55)
        self.assertEqual(self.run_program("fibonacci", 1000)[0], 987)

    def test_a_range_that_goes_down(self):
        self.assertEqual(self.run_program("backwards", 7)[:5], [7, 5, 3, 1, -7])

    def test_values_of_loops(self):
        self.assertEqual(self.run_program("unchanged", 5, dtype=np.float32)[:3], [5.5, 1, 10])
        self.assertEqual(self.run_program("unchanged", 2, dtype=np.float32)[:3], [-1, 1, -7])

    def test_variadic(self):
        self.assertEqual(self.run_program("variadic", 10, 20, 30)[:2], [60, 34])

    def test_aggregates(self):
        self.assertEqual(self.run_program("spans", 3)[0], 15)


MEMORY = '''
@triton.jit
def masked(Z, X, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(Z + at, tl.load(X + at, mask=at < n, other=5), mask=at != 2)

@triton.jit
def blocks(Z, X, rows, columns, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_block_ptr(X, (rows, columns), (columns, 1), (tl.program_id(0) * R, 0), (R, C), (1, 0))
    target = tl.make_block_ptr(Z, (rows, columns), (columns, 1), (tl.program_id(0) * R, 0), (R, C), (1, 0))
    for _ in range(0, tl.cdiv(columns, C)):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tile * 2, boundary_check=(0, 1))
        source = tl.advance(source, (0, C))
        target = target.advance((0, C))

@triton.jit
def described(Z, X, rows, columns, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(X, (rows, columns), (columns, 1), (R, C))
    target = tl.make_tensor_descriptor(Z, (rows, columns), (columns, 1), (R, C))
    at = tl.program_id(0) * R
    for i in range(0, columns, C):
        target.store([at, i], source.load([at, i]) * 2)

@triton.jit
def host_described(Z, X, R: tl.constexpr, C: tl.constexpr):
    for i in range(0, 32, C):
        Z.store([tl.program_id(0) * R, i], X.load([tl.program_id(0) * R, i]) * 2)

@triton.jit
def counted(Z, X, N: tl.constexpr):
    x = tl.load(X + tl.program_id(0) * N + tl.arange(0, N))
    old = tl.atomic_add(Z, tl.sum(x))
    tl.atomic_max(Z + 1, tl.max(x))
    tl.atomic_min(Z + 2 + tl.arange(0, N) * 0, x, mask=x > 3)
    tl.atomic_cas(Z + 3, 0, 9)
    tl.atomic_xchg(Z + 4, 4)
    tl.atomic_or(Z + 5 + tl.arange(0, N) * 0, x)

@triton.jit
def binned(Z, X, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(X + tl.arange(0, N))
    tl.store(Z + tl.arange(0, BINS), tl.histogram(x, BINS))

@triton.jit
def drawn(Z, seed, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(Z + at, tl.rand(seed, at))
    tl.store(Z + N + at, tl.randn(seed, at))
'''


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = module_of(MEMORY)

    def test_masks(self):
        x = np.arange(10, dtype=np.float32)
        z = np.full(10, -7, np.float32)
        self.programs.masked[(1,)](z, x, 4, N=10)
        self.assertEqual(z.tolist(), [0, 1, -7, 3, 5, 5, 5, 5, 5, 5])

    def test_windows(self):
        x = random.standard_normal((13, 32)).astype(np.float32)
        for name in ("blocks", "described"):
            z = np.full(x.shape, 77, np.float32)
            getattr(self.programs, name)[(3,)](z, x, 13, 32, R=6, C=12)
            np.testing.assert_array_equal(z, x * 2)

    def test_descriptors_of_the_host(self):
        from heddle.tile.tools.tensor_descriptor import TensorDescriptor

        x, z = random.standard_normal((13, 32)).astype(np.float32), np.full((13, 32), 77, np.float32)
        self.programs.host_described[(3,)](TensorDescriptor.from_tensor(z, [6, 12]), TensorDescriptor.from_tensor(x, [6, 12]), R=6, C=12)
        np.testing.assert_array_equal(z, x * 2)

    def test_atomics(self):
        x = random.integers(1, 50, 24).astype(np.int32)
        z = np.zeros(6, np.int32)
        z[2] = 1000
        self.programs.counted[(4,)](z, x, N=6)
        self.assertEqual(z.tolist(), [x.sum(), x.max(), x[x > 3].min(), 9, 4, np.bitwise_or.reduce(x)])

    def test_histogram(self):
        x = random.integers(0, 5, 40).astype(np.int32)
        z = np.full(5, 77, np.int32)
        self.programs.binned[(1,)](z, x, N=40, BINS=5)
        self.assertEqual(z.tolist(), np.bincount(x, minlength=5).tolist())

    def test_random_numbers(self):
        z = np.full(4000, 77, np.float32)
        self.programs.drawn[(1,)](z, 5, N=2000)
        uniform, normal = z[:2000].astype(np.float64), z[2000:].astype(np.float64)
        self.assertTrue(0 <= uniform.min() and uniform.max() < 1)
        self.assertAlmostEqual(uniform.mean(), 0.5, delta=0.03)
        self.assertAlmostEqual(normal.std(), 1, delta=0.06)
        # The words of Philox 4x32-10 for the key 5 and the counter 0 and 1.
        words = [philox(i, 5)[0] for i in (0, 1)]
        expected = [(w if w < 2**31 else 2**32 - 1 - w) * 4.6566127342e-10 for w in words]
        np.testing.assert_allclose(uniform[:2], expected, rtol=1e-6)


LONG = """
@triton.jit
def chain(X, N: tl.constexpr):
    v = tl.load(X + tl.arange(0, 8))
    for i in tl.static_range(N):
        v = v * 0.5 + 0.5
    tl.store(X + tl.arange(0, 8), v)

@triton.jit
def annotated(X, n):
    first: tl.constexpr = tl.program_id(0) + n
    kind: tl.constexpr = tl.core.get_int_dtype(bitwidth=32, signed=True)
    tl.store(X + tl.arange(0, 8), (tl.arange(0, 8) + first).to(kind).to(tl.float32))

@triton.jit
def terms(X):
    a = tl.load(X)
    for i in range(2):
        a = """ + " + ".join(["a"] * 600) + """
    tl.store(X, a)

@triton.jit
def threads(X):
    tl.store(X, tl.extra.cuda.num_threads() + tl.extra.cuda.num_warps())
"""


class Long(unittest.TestCase):
    def setUp(self):
        self.kernels = module_of(LONG)

    def test_an_unrolled_loop(self):
        for steps in (300, 2000):
            x = numbers(np.float32)[:8].copy()
            want = x.astype(np.float64)
            for _ in range(steps):
                want = want * 0.5 + 0.5
            self.kernels.chain[(1,)](x, N=steps)
            np.testing.assert_allclose(x, want, rtol=1e-6)

    def test_unrolling_ends_at_a_limit(self):
        with self.assertRaisesRegex(triton.CompilationError, "more than 65536 operations: unroll less"):
            self.kernels.chain.warmup(np.dtype("float32"), N=10**9, grid=(1,))

    def test_a_sum_of_many_terms(self):
        x = np.array([2.0], np.float32)
        self.kernels.terms[(1,)](x)
        self.assertEqual(x[0], 2 * 600 * 600)

    def test_a_constexpr_of_a_value_of_the_run(self):
        for n in (7, 2**20):
            x = np.zeros(8, np.float32)
            self.kernels.annotated[(1,)](x, n)
            np.testing.assert_array_equal(x, np.arange(8) + n)

    def test_threads_of_a_program(self):
        for warps in (2, 8):
            x = np.zeros(1, np.float32)
            self.kernels.threads[(1,)](x, num_warps=warps)
            self.assertEqual(x[0], 33 * warps)


class Names(unittest.TestCase):
    """What programs for Triton import beside the language."""

    def test_modules(self):
        import importlib

        for name, members in (("runtime.errors", ("OutOfResources", "PTXASError", "InterpreterError", "AutotunerError")),
                              ("backends.compiler", ("GPUTarget", "AttrsDescriptor")), ("knobs", ("runtime", "autotuning", "cache", "nvidia")),
                              ("errors", ("TritonError",)), ("language.extra.cuda.libdevice", ("tanh",)),
                              ("language.extra.hip.libdevice", ("tanh",)), ("testing", ("do_bench_cudagraph",))):
            module = importlib.import_module(f"heddle.tile.{name}")
            for member in members:
                self.assertTrue(hasattr(module, member), f"{name}.{member}")

    def test_targets_and_facts(self):
        from heddle.tile.backends.compiler import AttrsDescriptor, GPUTarget

        self.assertEqual(GPUTarget("cuda", 90, 32).compiler_name, "cuda-sm_90a")
        self.assertEqual(GPUTarget("cuda", 80, 32).compiler_name, "cuda-sm_80")
        facts = AttrsDescriptor.from_dict({"arg_properties": {"tt.divisibility": (0, 1), "tt.equal_to": ()}, "cls": "AttrsDescriptor"})
        self.assertEqual(facts.divisible_by_16, (0, 1))

    def test_knobs_of_ours_are_in_the_environment(self):
        from heddle.tile import knobs

        with knobs.autotuning.scope():
            knobs.autotuning.print = True
            self.assertEqual(os.environ["HEDDLE_TILE_PRINT_AUTOTUNING"], "1")
            self.assertTrue(knobs.autotuning.print)
        with self.assertWarnsRegex(UserWarning, "does not call the hook launch_enter_hook"):
            knobs.runtime.launch_enter_hook.add(print)
        knobs.runtime.launch_enter_hook.remove(print)


def philox(counter, key):
    c, k = [counter, 0, 0, 0], [key, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


if __name__ == "__main__":
    unittest.main()
