"""A product of microscaled matrices (OCP MX v1.0): elements of 8 bits, and a power of two for each 32 of them along K.

usage: scaled_matmul.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np

BLOCK = 32  # elements with a scale in common


@triton.jit
def quantise_kernel(x, values, scales, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + rows[:, None] * k + at[None, :])
    largest = tl.max(tl.abs(v), 1)
    # The scale's exponent makes the largest element one of e4m3, whose own largest exponent is 8.
    exponent = tl.floor(tl.log2(tl.maximum(largest, 1e-30))) - 8
    tl.store(values + rows[:, None] * k + at[None, :], (v * tl.exp2(-exponent)[:, None]).to(tl.float8e4nv).to(tl.uint8, bitcast=True))
    tl.store(scales + rows * (k // BLOCK) + tl.program_id(1), (exponent + 127).to(tl.uint8))


@triton.jit
def scaled_kernel(a, a_scales, b, b_scales, c, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    columns = tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    sums = tl.zeros((M_TILE, N_TILE), tl.float32)
    for start in range(0, k, K_TILE):
        inner, blocks = start + tl.arange(0, K_TILE), start // BLOCK + tl.arange(0, K_TILE // BLOCK)
        a_tile = tl.load(a + rows[:, None] * k + inner[None, :])
        b_tile = tl.load(b + columns[None, :] * k + inner[:, None])  # B lies by columns, so that its scales do, too
        a_scale = tl.load(a_scales + rows[:, None] * (k // BLOCK) + blocks[None, :])
        b_scale = tl.load(b_scales + columns[:, None] * (k // BLOCK) + blocks[None, :])
        sums = tl.dot_scaled(a_tile, a_scale, "e4m3", b_tile, b_scale, "e4m3", sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


def quantised(x):
    values, scales = np.empty(x.shape, np.uint8), np.empty((x.shape[0], x.shape[1] // BLOCK), np.uint8)
    quantise_kernel[(x.shape[0] // 16, x.shape[1] // BLOCK)](x, values, scales, x.shape[1], ROWS=16, BLOCK=BLOCK)
    return values, scales


def matmul(a, b_transposed):
    m, n, k = a.shape[0], b_transposed.shape[0], a.shape[1]
    c = np.empty((m, n), np.float32)
    scaled_kernel[(m // 32, n // 32)](*quantised(a), *quantised(b_transposed), c, n, k, M_TILE=32, N_TILE=32, K_TILE=64, BLOCK=BLOCK)
    return c


def main():
    random = np.random.default_rng(0)
    # Rows whose sizes differ by thousands, which 8 bits alone would not hold.
    a = (random.standard_normal((64, 128)) * np.exp2(random.integers(-10, 10, (64, 1)))).astype(np.float32)
    b = (random.standard_normal((96, 128)) * np.exp2(random.integers(-10, 10, (96, 1)))).astype(np.float32)
    expected = a.astype(np.float64) @ b.T
    sizes = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None, :]
    error = (abs(matmul(a, b) - expected) / sizes).max()
    assert error < 0.02
    print(f"64 x 128 by 96 in e4m3 with scales: error {error:.1e} of the rows' lengths")


if __name__ == "__main__":
    main()
