"""Launches that are like earlier ones, which core.Launcher does alone: that they are what Python would do, and what they cost the driver.

$HEDDLE_CUDA_DRIVER is the one whose functions do nothing.
"""
import ctypes
import gc
import itertools
import os
import random
import threading
import unittest
import weakref

import numpy as np

import heddle
import heddle.tile as triton
from heddle.tile.runtime.recording import Recorder, recording

from tile_kernels import module_of

KERNELS = '''
FACTOR = tl.constexpr(3)

@triton.jit
def tell(Z, X, n, s, f, flag, bias=None, SHIFT: tl.constexpr = 0, WORD: tl.constexpr = "plain"):
    value = tl.load(X) + n * s + f + SHIFT
    if bias is not None:
        value += bias
    if WORD == "double":
        value *= 2
    tl.store(Z + tl.program_id(0), value + flag)

@triton.jit
def of_global(Z):
    tl.store(Z, FACTOR)

@triton.jit
def helper(value):
    return value + 1

@triton.jit
def calls(Z, value):
    tl.store(Z, helper(value))
'''
DRIVER = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER"])
TELL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)


def driver_calls():
    found = {}
    DRIVER.heddle_stub_counts(TELL(lambda name, calls: found.__setitem__(name.decode(), calls)))
    return found


def told(x, n, s, f, flag, bias=None, SHIFT=0, WORD="plain"):
    value = float(x[0]) + n * s + f + SHIFT + (bias or 0)
    return (2 * value if WORD == "double" else value) + flag


class Counting:
    """A kernel, and how many of its launches came to Python."""

    def __init__(self, kernel):
        self.kernel, self.calls, run = kernel, 0, kernel.run

        def counted(*arguments, **words):
            self.calls += 1
            return run(*arguments, **words)

        kernel.run = counted


class Launches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = module_of(KERNELS)

    def test_any_order_of_arguments(self):
        kernel = self.kernels.tell
        counting = Counting(kernel)
        memory = np.arange(1, 30, dtype=np.float32)
        choices = [[memory[4:], memory[5:]], [1, 3, 32], [2.5], [True, False]]
        generator = random.Random(7)
        seen = set()
        for x, n, f, flag in itertools.chain(itertools.product(*choices), (tuple(map(generator.choice, choices)) for _ in range(60))):
            words = generator.choice([{}, {"SHIFT": 2, "WORD": "".join(["dou", "ble"])}])
            z = np.full(3, np.nan, np.float32)
            before = counting.calls
            grid = generator.choice([2, (2,), (2, 1), [2], lambda names: (names["n"] - names["n"] + 2, names["num_stages"] - 2)])
            found = kernel[grid](z, x, n, s=7, f=f, flag=flag, **words)
            np.testing.assert_array_equal(z, [told(x, n, 7, f, flag, **words)] * 2 + [np.nan])
            key = (x is choices[0][0], n == 1, n % 16, flag, bool(words), z.ctypes.data % 16)
            self.assertEqual(counting.calls - before, key not in seen, key)
            seen.add(key)
            if generator.random() < 0.2:
                self.assertIs(found, kernel.warmup(z, x, n, 7, f, flag, grid=grid, **words))

    def test_what_python_refuses_is_refused_again(self):
        kernel, z = self.kernels.calls, np.zeros(1, np.int32)
        for _ in range(2):
            kernel[(1,)](z, 4)
            self.assertEqual(z[0], 5)
            for arguments, words, error in (((z,), {}, "missing"), ((z, 1, 2), {}, "positional"), ((z, 1), {"value": 2}, "multiple values"),
                                            ((z, 1), {"num_wraps": 2}, "num_wraps"), ((z, object()), {}, "nothing that a kernel takes"),
                                            ((z, 1), {"grid": (1,)}, "in brackets"), ((z, 1 << 70), {}, "64 bits")):
                with self.assertRaisesRegex((TypeError, KeyError, OverflowError), error):
                    kernel[(1,)](*arguments, **words)
            for grid in ((1, 1, 1, 1), (-1,), ()):
                with self.assertRaises(ValueError):
                    kernel[grid](z, 4)
        kernel[(0,)](z, 10)
        self.assertEqual(z[0], 5)

    def test_hooks_recorders_globals_and_new_texts(self):
        kernels = module_of(KERNELS)
        z, heard = np.zeros(1, np.int32), []
        hook = lambda *arguments, **words: heard.append(words)  # noqa: E731
        kernels.calls[(1,)](z, 4)
        kernels.calls.add_pre_run_hook(hook)
        kernels.calls[(1,)](z, value=6)
        kernels.calls.pre_run_hooks.remove(hook)
        kernels.calls[(1,)](z, value=8)
        self.assertEqual((heard, z[0]), ([{"value": 6}], 9))
        with recording(Recorder()):
            kernels.calls[(1,)](z, 20)
        self.assertEqual(z[0], 9)
        kernels.helper._unsafe_update_src(kernels.helper.src.replace("1", "2"))
        kernels.calls[(1,)](z, 4)
        self.assertEqual(z[0], 6)
        for _ in range(2):
            kernels.of_global[(1,)](z)
        kernels.FACTOR = triton.language.constexpr(4)
        with self.assertRaisesRegex(RuntimeError, "FACTOR has changed"):
            kernels.of_global[(1,)](z)

    def test_a_kernel_ends_with_its_last_user(self):
        kernels = module_of(KERNELS)
        kernels.calls[(1,)](np.zeros(1, np.int32), 4)
        ends = weakref.ref(kernels.calls)
        del kernels
        gc.collect()
        self.assertIsNone(ends())

    def test_from_threads(self):
        kernel, wrong = self.kernels.calls, []

        def work(number):
            z = np.zeros(4, np.int32)
            for i in range(300):
                kernel[(1,)](z, 1000 * number + 2 * i)
                if z[0] != 1000 * number + 2 * i + 1:
                    wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_driver_calls(self):
        z = heddle.tensor(np.zeros(4, np.int32), device="cuda")
        for _ in range(2):
            self.kernels.calls[(1,)](z, 4)
        before = driver_calls()
        for value in range(2, 12, 2):
            self.kernels.calls[lambda names: (names["value"],)](z, value)
        after = driver_calls()
        found = {name: calls - before.get(name, 0) for name, calls in after.items() if calls != before.get(name, 0)}
        self.assertEqual(found, {"cuCtxSetCurrent": 5, "cuLaunchKernelEx": 5})

    def test_winners_are_kept(self):
        text = f'''
@triton.autotune(configs=[triton.Config({{"BLOCK": block}}) for block in (16, 32, 48)], key=["n"])
@triton.jit
def tuned(Z, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK != 48, "48 is too much")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Z + at, at + {random.SystemRandom().randrange(2**20)}, at < n)
'''
        z, found = np.zeros(100, np.int32), []
        for fresh in (True, False):  # another process would find the same
            tuned = module_of(text).tuned
            tuned[lambda names: (triton.cdiv(100, names["BLOCK"]),)](z, 100)
            found.append(tuned.best_config)
            self.assertEqual(z[99] - z[0], 99)
            self.assertEqual([config.kwargs["BLOCK"] for config in tuned.failures], [48])
            self.assertRegex(str(next(iter(tuned.failures.values()))), "48 is too much")
            self.assertEqual(len(tuned.configs_timings), 3 if fresh else 0)
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0].kwargs["BLOCK"], 48)
        best = {}
        for n in (100, 7, 100, 7, 7, 100):
            z[:] = -1
            tuned[lambda names: (triton.cdiv(names["n"], names["BLOCK"]),)](z, n)
            self.assertEqual(tuned.best_config, best.setdefault(n, tuned.best_config))
            np.testing.assert_array_equal(z, np.where(np.arange(100) < n, z[0] + np.arange(100), -1))
            if len(best) == 2:
                tuned._launched = None  # now Python is not asked any more


if __name__ == "__main__":
    unittest.main()
