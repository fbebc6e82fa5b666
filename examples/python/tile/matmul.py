"""A matrix product with an activation behind it: pointers to tiles, groups of programs that share rows, tuned tile sizes.

usage: matmul.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np

CONFIGS = [triton.Config({"M_TILE": m, "N_TILE": n, "K_TILE": k, "GROUP": 8}) for m, n, k in ((64, 64, 32), (32, 64, 64))]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"])
@triton.jit
def matmul_kernel(a, b, c, m, n, k, a_stride, b_stride, c_stride, ACTIVATION: tl.constexpr, M_TILE: tl.constexpr,
                  N_TILE: tl.constexpr, K_TILE: tl.constexpr, GROUP: tl.constexpr):
    # Programs that run at the same time take tiles near each other, so that they find rows and columns in the cache.
    row, column = tl.swizzle2d(tl.program_id(0) // tl.cdiv(n, N_TILE), tl.program_id(0) % tl.cdiv(n, N_TILE), tl.cdiv(m, M_TILE),
                               tl.cdiv(n, N_TILE), GROUP)
    rows = (row * M_TILE + tl.arange(0, M_TILE)) % m
    columns = (column * N_TILE + tl.arange(0, N_TILE)) % n
    inner = tl.arange(0, K_TILE)
    a_at = a + rows[:, None] * a_stride + inner[None, :]
    b_at = b + inner[:, None] * b_stride + columns[None, :]
    sums = tl.zeros((M_TILE, N_TILE), tl.float32)
    for step in range(0, tl.cdiv(k, K_TILE)):
        left = k - step * K_TILE
        a_tile = tl.load(a_at, mask=inner[None, :] < left, other=0.0)
        b_tile = tl.load(b_at, mask=inner[:, None] < left, other=0.0)
        sums = tl.dot(a_tile, b_tile, sums, input_precision="ieee")
        a_at += K_TILE
        b_at += K_TILE * b_stride
    if ACTIVATION == "leaky_relu":
        sums = leaky_relu(sums)
    rows = row * M_TILE + tl.arange(0, M_TILE)
    columns = column * N_TILE + tl.arange(0, N_TILE)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * c_stride + columns[None, :], sums, inside)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation=""):
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), a.dtype)
    strides = [array.strides[0] // array.itemsize for array in (a, b, c)]
    matmul_kernel[lambda words: (triton.cdiv(m, words["M_TILE"]) * triton.cdiv(n, words["N_TILE"]),)](
        a, b, c, m, n, k, *strides, ACTIVATION=activation)
    return c


def main():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((150, 100)).astype(np.float16), random.standard_normal((100, 130)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for activation in ("", "leaky_relu"):
        error = abs(matmul(a, b, activation) - (np.where(expected >= 0, expected, expected / 100) if activation else expected)).max()
        assert error < 0.05
        print(f"product {activation or 'alone'}: error {error:.1e}, tiles {matmul_kernel.best_config}")


if __name__ == "__main__":
    main()
