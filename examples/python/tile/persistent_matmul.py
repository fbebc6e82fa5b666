"""A matrix product by programs that stay: as many as the device runs at once, each goes from tile to tile, through windows of views that
need no masks.

usage: persistent_matmul.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def persistent_kernel(a, b, c, m, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr, GROUP: tl.constexpr):
    a_view = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M_TILE, K_TILE])
    b_view = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K_TILE, N_TILE])
    c_view = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M_TILE, N_TILE])
    down, across = tl.cdiv(m, M_TILE), tl.cdiv(n, N_TILE)
    # A program that ends its tile begins the next at once: no wave of programs waits for the last one of the wave before.
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        row, column = tl.swizzle2d(tile // across, tile % across, down, across, GROUP)
        sums = tl.zeros((M_TILE, N_TILE), tl.float32)
        for start in range(0, k, K_TILE):
            a_tile = a_view.load([row * M_TILE, start])  # zeros outside of the matrix
            b_tile = b_view.load([start, column * N_TILE])
            sums = tl.dot(a_tile, b_tile, sums)
        c_view.store([row * M_TILE, column * N_TILE], sums.to(tl.float16))


def matmul(a, b, programs=4):
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), np.float16)
    persistent_kernel[(programs,)](a, b, c, m, n, k, M_TILE=32, N_TILE=64, K_TILE=32, GROUP=4)
    return c


def main():
    random = np.random.default_rng(0)
    for m, n, k in (150, 136, 104), (33, 72, 40):
        a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
        error = abs(matmul(a, b) - a.astype(np.float64) @ b).max()
        assert error < 0.05
        print(f"{m} x {k} by {n}: error {error:.1e}")


if __name__ == "__main__":
    main()
