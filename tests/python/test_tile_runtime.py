"""Launches of the tile language: what is compiled apart, grids, options, tuning, and the text that a kernel becomes."""
import collections
import contextlib
import io
import unittest

import numpy as np

import heddle.tile as triton

from tile_kernels import module_of

KERNELS = '''
FACTOR = tl.constexpr(3)

@triton.jit
def scale(Z, X, n, stride, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Z + at, tl.load(X + at * stride, at < n) * factor, at < n)

@triton.jit(do_not_specialize=["n", "stride"])
def general(Z, n, stride):
    tl.store(Z, n + stride)

@triton.jit
def where(Z, COUNT: tl.constexpr):
    at = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(Z + at, at + COUNT)

@triton.jit
def optional(Z, bias, pair, word: tl.constexpr):
    value = pair[0] + pair[1]
    if bias is not None:
        value += tl.load(bias)
    if word == "twice":
        value *= 2
    tl.store(Z, value)

@triton.jit
def of_global(Z):
    tl.store(Z, FACTOR)

@triton.jit
def promised(Z, n, stride):
    row = Z
    for i in range(n):
        tl.multiple_of(row, 16)
        tl.store(row, i)
        row += stride

@triton.jit
def wide(Z, a: tl.int64, b: "fp64"):
    tl.store(Z, a + b)

@triton.jit
def constant(X: tl.const):
    tl.store(X, 1)

@triton.jit
def tells(X, N: tl.constexpr):
    tl.device_print("x", tl.load(X + tl.arange(0, N)))
    tl.device_print("row:", tl.program_id(0))
    tl.device_print("two = ", tl.program_id(0), N, hex=True)
    print("done")

@triton.jit
def reads_again(X, N: tl.constexpr):
    tl.load(X, cache_modifier=".cv")
    tl.load(X + tl.arange(0, N), volatile=True)
    tl.load(X + 1)
    tl.load(tl.make_block_ptr(X, (N,), (1,), (0,), (N,), (0,)), volatile=True, boundary_check=(0,))

@triton.jit
def checked(Z, n):
    tl.device_assert(n < 3, "n is small")
    tl.store(Z, n)

@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32}, num_warps=8)], key=["n"], reset_to_zero=["Z"])
@triton.heuristics({"EVEN": lambda values: values["n"] % values["BLOCK"] == 0})
@triton.jit
def tuned(Z, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.atomic_add(Z + at, BLOCK)
    else:
        tl.atomic_add(Z + at, BLOCK, at < n)
'''


class Launches(unittest.TestCase):
    def setUp(self):
        self.kernels = module_of(KERNELS)

    def test_values_and_grids(self):
        x, z = np.arange(100, dtype=np.float32), np.full(50, 77, np.float32)
        kernel = self.kernels.scale[lambda words: (triton.cdiv(50, words["BLOCK"]),)](z, x, 50, 2, 1.5, BLOCK=12)
        np.testing.assert_array_equal(z, x[::2] * np.float32(1.5))
        self.assertEqual(kernel.metadata.num_warps, 4)
        z = np.full(2 * 3 * 4, 77, np.int32)
        self.kernels.where[2, 3, 4](z, COUNT=1)
        self.assertEqual(z.tolist(), list(range(1, 25)))
        self.kernels.where[(0,)](z, COUNT=5)
        self.assertEqual(z[0], 1)
        with self.assertRaisesRegex(ValueError, "one to three extents"):
            self.kernels.where[(1, 1, 1, 1)](z, COUNT=1)

    def test_what_is_compiled_apart(self):
        x, z = np.zeros(200, np.float32), np.zeros(200, np.float32)
        scale = self.kernels.scale
        scale[(1,)](z, x, 50, 3, 2.0, BLOCK=16)
        scale[(1,)](z, x, 51, 5, 2.5, BLOCK=16)
        self.assertEqual(len(scale.instances), 1)
        for arguments, words in (((z, x, 48, 3, 2.0), {"BLOCK": 16}), ((z, x, 50, 1, 2.0), {"BLOCK": 16}), ((z, x[1:], 50, 3, 2.0), {"BLOCK": 16}),
                                 ((z, x, 50, 3, 2.0), {"BLOCK": 32}), ((z, x, 2**40, 3, 2.0), {"BLOCK": 16}),
                                 ((z, x.astype(np.float64), 50, 3, 2.0), {"BLOCK": 16}), ((z, x, 50, 3, 2.0), {"BLOCK": 16, "num_warps": 8})):
            before = len(scale.instances)
            scale.warmup(*arguments, grid=(1,), **words)
            self.assertEqual(len(scale.instances), before + 1, arguments[2:])
        general = self.kernels.general
        for n, stride in ((1, 1), (16, 5), (7, 32)):
            result = np.zeros(1, np.int32)
            general[(1,)](result, n, stride)
            self.assertEqual(result[0], n + stride)
        self.assertEqual(len(general.instances), 1)

    def test_text(self):
        x = np.zeros(64, np.float32)
        text = self.kernels.scale.warmup(x, x[1:], 32, 1, 2.0, BLOCK=16, grid=(1,)).ir
        self.assertIn("kernel @scale(%Z: ptr<f32> {divisible = 16}, %X: ptr<f32>, %n: i32 {divisible = 16}, %factor: f32)", text)
        self.assertIn(f'file 0 "{self.kernels.__file__}"', text)
        self.assertRegex(text, r"store %\d+, %\d+, %\d+  @0:9:5")

    def test_prints(self):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            self.kernels.tells[(1,)](np.array([1.5, -2], np.float32), N=2)
        self.assertEqual(told.getvalue().splitlines(), [
            "pid (0, 0, 0) idx (0) x: 1.500000", "pid (0, 0, 0) idx (1) x: -2.000000", "pid (0, 0, 0) idx () row: 0",
            "pid (0, 0, 0) idx () two =: (operand 0) 0x00000000", "pid (0, 0, 0) idx () two =: (operand 1) 0x00000002",
            "pid (0, 0, 0) done"])

    def test_volatile_loads_stay(self):
        text = self.kernels.reads_again.warmup(np.zeros(16, np.float32), N=16, grid=(1,)).ir
        self.assertEqual(text.count("{cache = cv}"), 2)
        self.assertRegex(text, r"load_view .*cache = cv")
        self.assertEqual(text.count("load"), 3)

    def test_promises_without_a_result(self):
        z = np.full(12, -1, np.float32)
        text = self.kernels.promised.warmup(z, 3, 4, grid=(1,)).ir
        self.assertRegex(text, r"(?s)(%\d+) = hint %\d+ \{multiple_of = \[16\]\}.*store \1,")
        self.kernels.promised[(1,)](z, 3, 4)
        self.assertEqual(z[::4].tolist(), [0, 1, 2])

    def test_kinds_of_arguments(self):
        Pair = collections.namedtuple("Pair", ["a", "b"])
        z, bias = np.zeros(1, np.float32), np.full(1, 10, np.float32)
        for arguments, expected in (((None, (1, 2.5), "once"), 3.5), ((bias, (1, 2.5), "once"), 13.5), ((bias, Pair(2, 3), "twice"), 30.0)):
            self.kernels.optional[(1,)](z, *arguments)
            self.assertEqual(z[0], expected)
        result = np.zeros(1, np.float64)
        self.kernels.wide[(1,)](result, 1, 2.1)
        self.assertEqual(result[0], 3.1)

    def test_refused(self):
        z = np.zeros(4, np.float32)
        with self.assertRaisesRegex(KeyError, "num_wraps.*Did you mean num_warps"):
            self.kernels.where[(1,)](z, COUNT=1, num_wraps=4)
        with self.assertRaisesRegex(TypeError, "missing .* argument.*COUNT.*no parameter CUONT. Did you mean COUNT"):
            self.kernels.where[(1,)](z, CUONT=1)
        with self.assertRaisesRegex(TypeError, "missing .* argument.*COUNT"):
            self.kernels.where[(1,)](z)
        with self.assertRaisesRegex(TypeError, "is nothing that a kernel takes"):
            self.kernels.general[(1,)](object(), 1, 2)
        with self.assertRaisesRegex(triton.CompilationError, "Cannot store to a constant pointer"):
            self.kernels.constant[(1,)](z)
        with self.assertRaisesRegex(TypeError, "have no type in the language"):
            self.kernels.where[(1,)](np.zeros(4, np.complex64), COUNT=1)

    def test_globals(self):
        z = np.zeros(1, np.int32)
        self.kernels.of_global[(1,)](z)
        self.assertEqual(z[0], 3)
        self.kernels.FACTOR = triton.language.constexpr(4)
        with self.assertRaisesRegex(RuntimeError, "FACTOR has changed"):
            self.kernels.of_global[(1,)](z)

    def test_assertions(self):
        z = np.zeros(1, np.int32)
        self.kernels.checked[(1,)](z, 5)
        self.assertEqual(z[0], 5)
        with self.assertRaisesRegex(Exception, "n is small"):
            self.kernels.checked[(1,)](z, 6, debug=True)

    def test_tuning(self):
        z = np.zeros(64, np.int32)
        for n in (64, 40, 64):
            z[:] = 0
            self.kernels.tuned[lambda words: (triton.cdiv(n, words["BLOCK"]),)](z, n)
            block = self.kernels.tuned.best_config.kwargs["BLOCK"]
            np.testing.assert_array_equal(z, np.where(np.arange(64) < n, block, 0))
        self.assertEqual(len(self.kernels.tuned.cache), 2)
        self.assertEqual(len(self.kernels.tuned.configs_timings), 2)

    def test_host_functions(self):
        self.assertEqual([triton.cdiv(7, 2), triton.next_power_of_2(1000), triton.next_power_of_2(1)], [4, 1024, 1])
        self.assertEqual(len(triton.testing.do_bench(lambda: None, warmup=1, rep=1, quantiles=(0.2, 0.8))), 2)


if __name__ == "__main__":
    unittest.main()
