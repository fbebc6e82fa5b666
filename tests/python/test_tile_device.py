"""Kernels of the tile language on arrays of a GPU, emulated or real."""
import os
import pathlib
import sys
import unittest

import numpy as np

import heddle
import heddle.tile as triton
import heddle.tile.language as tl

if not os.environ.get("HEDDLE_CUDA_DRIVER"):
    sys.exit("skipped: there is no GPU or emulator")

sys.path.insert(0, str(pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "tile"))
import attention  # noqa: E402
import fused_softmax  # noqa: E402
import matmul  # noqa: E402
import persistent_matmul  # noqa: E402
import scaled_matmul  # noqa: E402
import vector_add  # noqa: E402

random = np.random.default_rng(0)


def on_device(array):
    return heddle.tensor(array, device="cuda:0")


@triton.jit
def one_of_two(a, b):
    return a


@triton.jit
def one_of_each(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(y + at, v * 0 + tl.expand_dims(tl.reduce(v, AXIS, one_of_two), AXIS))


@triton.jit
def too_large(a, b, c):
    at = tl.arange(0, 512)[:, None] * 512 + tl.arange(0, 512)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)).to(tl.float16))


@triton.jit
def assembly(x):
    at = x + tl.arange(0, 64)
    tl.store(at, tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,r", [tl.load(at)], dtype=tl.int32, is_pure=True, pack=1))


class Device(unittest.TestCase):
    def test_vector_add(self):
        x, y = random.standard_normal((2, 1000)).astype(np.float32)
        out = on_device(np.full(1000, 77, np.float32))
        kernel = vector_add.add_kernel[(4,)](on_device(x), on_device(y), out, 1000, BLOCK=256)
        np.testing.assert_array_equal(out.numpy(), x + y)
        self.assertTrue(kernel.target.startswith("cuda"))
        self.assertIn("__global__", kernel.text)

    def test_softmax(self):
        x = random.standard_normal((5, 100)).astype(np.float32)
        out = on_device(np.full((5, 100), 77, np.float32))
        fused_softmax.softmax_kernel[(2,)](out, on_device(x), 100, 100, 5, COLUMNS=100)
        wide = np.exp(x.astype(np.float64))
        np.testing.assert_allclose(out.numpy(), wide / wide.sum(1, keepdims=True), rtol=1e-5)

    def test_matmul(self):
        a, b = random.standard_normal((40, 50)).astype(np.float16), random.standard_normal((50, 70)).astype(np.float16)
        out = on_device(np.full((40, 70), 77, np.float16))
        matmul.matmul_kernel.fn[(4,)](on_device(a), on_device(b), out, 40, 70, 50, 50, 70, 70, ACTIVATION="leaky_relu", M_TILE=32, N_TILE=64,
                                      K_TILE=32, GROUP=8)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(out.numpy(), np.where(expected >= 0, expected, 0.01 * expected), rtol=2e-2, atol=2e-2)

    def test_persistent_matmul(self):
        a, b = random.standard_normal((70, 48)).astype(np.float16), random.standard_normal((48, 72)).astype(np.float16)
        out = on_device(np.full((70, 72), 77, np.float16))
        persistent_matmul.persistent_kernel[(2,)](on_device(a), on_device(b), out, 70, 72, 48, M_TILE=32, N_TILE=64, K_TILE=32, GROUP=4)
        np.testing.assert_allclose(out.numpy(), a.astype(np.float64) @ b.astype(np.float64), rtol=2e-2, atol=2e-2)

    def test_scaled_matmul(self):
        a, b = random.integers(0, 120, (2, 32, 64)).astype(np.uint8)  # finite numbers of e4m3
        scales = random.integers(120, 130, (2, 32, 2)).astype(np.uint8)
        results = []
        for place in (np.array, on_device):
            out = place(np.full((32, 32), 77, np.float32))
            scaled_matmul.scaled_kernel[(1, 1)](place(a), place(scales[0]), place(b), place(scales[1]), out, 32, 64, M_TILE=32, N_TILE=32,
                                                K_TILE=64, BLOCK=32)
            results.append(out if place is np.array else out.numpy())
        np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-4 * abs(results[0]).max())

    def test_reduction_that_does_not_commute(self):
        """Lanes combine in any order; all of them have to go on with the same result."""
        both = bool(os.environ.get("HEDDLE_ALL_INSTANCES"))
        for m, n, warps, longer in (1, 1024, 4, 1), (64, 16, 4, 0), (16, 64, 8, 1), (8, 8, 1, 0), (5, 24, 4, 1):
            x = random.standard_normal((m, n)).astype(np.float32)
            for axis in (0, 1) if both else (longer,):
                with self.subTest(m=m, n=n, warps=warps, axis=axis):
                    out = on_device(np.full((m, n), 77, np.float32))
                    one_of_each[(1,)](on_device(x), out, M=m, N=n, AXIS=axis, num_warps=warps)
                    result, elements = (np.moveaxis(each, axis, 0) for each in (out.numpy(), x))
                    np.testing.assert_array_equal(result, np.broadcast_to(result[0], result.shape))
                    self.assertTrue((elements == result[0]).any(0).all())

    def test_attention(self):
        q, k, v = random.standard_normal((3, 1, 40, 32)).astype(np.float16)
        out = on_device(np.full((1, 40, 32), 77, np.float16))
        attention.attention_kernel[(2, 1)](*map(on_device, (q, k, v)), out, 32**-0.5, 40, 40, CAUSAL=True, HEAD=32, M=32, N=32)
        scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 32**0.5
        scores[:, np.triu(np.ones((40, 40), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        np.testing.assert_allclose(out.numpy(), weights / weights.sum(2, keepdims=True) @ v.astype(np.float64), rtol=2e-2, atol=5e-3)

    def test_tiles_that_do_not_fit_are_out_of_resources(self):
        from heddle.tile.runtime.errors import OutOfResources

        a, b, c = (on_device(np.zeros((512, 512), np.float16)) for _ in range(3))
        with self.assertRaises(OutOfResources) as caught:
            too_large[(1,)](a, b, c)
        self.assertGreater(caught.exception.required, caught.exception.limit)
        self.assertEqual(caught.exception.code, 404)
        self.assertIn("shared memory", str(caught.exception))
        self.assertIn("too_large", caught.exception.where)

    def test_inline_assembly_is_refused_where_there_is_none(self):
        if "emulator" not in os.environ["HEDDLE_CUDA_DRIVER"]:
            self.skipTest("a GPU has assembly")
        with self.assertRaises(heddle.UnsupportedError) as caught:
            assembly[(1,)](on_device(np.zeros(64, np.int32)))
        self.assertEqual(caught.exception.code, 301)


if __name__ == "__main__":
    unittest.main()
