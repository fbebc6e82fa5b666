"""d = fast_gelu(a b + bias + residual): a product with what is done to its sums, in one kernel. As an operator it computes nodes of
models, too (docs/python/operators.md).

usage: fused_gemm.py
"""
import heddle.tile as tile
import heddle.tile.language as tl
import numpy as np


@tile.jit
def gemm_add_add_gelu(d, a, b, bias, residual, m, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    rows = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    columns = tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    inner = tl.arange(0, K_TILE)
    sums = tl.zeros((M_TILE, N_TILE), tl.float32)
    for start in range(0, k, K_TILE):
        at = start + inner
        a_tile = tl.load(a + rows[:, None] * k + at[None, :], (rows[:, None] < m) & (at[None, :] < k), 0.0)
        b_tile = tl.load(b + at[:, None] * n + columns[None, :], (at[:, None] < k) & (columns[None, :] < n), 0.0)
        sums = tl.dot(a_tile, b_tile, sums)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = rows[:, None] * n + columns[None, :]
    x = sums + tl.load(bias + columns, columns < n, 0.0)[None, :] + tl.load(residual + at, inside, 0.0)
    tl.store(d + at, fast_gelu(x), inside)


@tile.jit
def fast_gelu(x):
    return x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))


@tile.operator
def fused_gemm(a, b, bias, residual):
    (m, k), n = a.shape, b.shape[1]
    d = tile.empty((m, n), like=a)
    gemm_add_add_gelu[(tile.cdiv(m, 64), tile.cdiv(n, 64))](d, a, b, bias, residual, m, n, k, M_TILE=64, N_TILE=64, K_TILE=32)
    return d


def main():
    random = np.random.default_rng(0)
    m, n, k = 129, 200, 70
    a, b, bias, residual = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (n,), (m, n)))
    x = a.astype(np.float64) @ b + bias + residual
    expected = 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    error = np.abs(fused_gemm(a, b, bias, residual) - expected).max() / np.abs(expected).max()
    assert error < 2e-3, error
    print(f"{m} x {n} x {k}: off by {error:.1e} of the largest")


if __name__ == "__main__":
    main()
