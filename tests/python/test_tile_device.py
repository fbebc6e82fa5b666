"""Kernels of the tile language on arrays of a GPU, emulated or real."""
import os
import pathlib
import sys
import unittest

import numpy as np

import heddle

if not os.environ.get("HEDDLE_CUDA_DRIVER"):
    sys.exit("skipped: there is no GPU or emulator")

sys.path.insert(0, str(pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "tile"))
import attention  # noqa: E402
import fused_softmax  # noqa: E402
import matmul  # noqa: E402
import vector_add  # noqa: E402

random = np.random.default_rng(0)


def on_device(array):
    return heddle.tensor(array, device="cuda:0")


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

    def test_attention(self):
        q, k, v = random.standard_normal((3, 1, 40, 32)).astype(np.float16)
        out = on_device(np.full((1, 40, 32), 77, np.float16))
        attention.attention_kernel[(2, 1)](*map(on_device, (q, k, v)), out, 32**-0.5, 40, 40, CAUSAL=True, HEAD=32, M=32, N=32)
        scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 32**0.5
        scores[:, np.triu(np.ones((40, 40), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        np.testing.assert_allclose(out.numpy(), weights / weights.sum(2, keepdims=True) @ v.astype(np.float64), rtol=2e-2, atol=5e-3)


if __name__ == "__main__":
    unittest.main()
