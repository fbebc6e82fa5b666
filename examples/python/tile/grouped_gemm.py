"""Products of several sizes in one launch: programs that stay, go through all tiles of all products, and read addresses from memory.

usage: grouped_gemm.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def grouped_kernel(addresses, sizes, products, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    tile = tl.program_id(0)
    done = 0  # tiles of the products before this one
    for product in range(products):
        m = tl.load(sizes + 3 * product)
        n = tl.load(sizes + 3 * product + 1)
        k = tl.load(sizes + 3 * product + 2)
        across = tl.cdiv(n, N_TILE)
        count = tl.cdiv(m, M_TILE) * across
        while tile >= done and tile < done + count:
            a = tl.load(addresses + 3 * product).to(tl.pointer_type(tl.float32))
            b = tl.load(addresses + 3 * product + 1).to(tl.pointer_type(tl.float32))
            c = tl.load(addresses + 3 * product + 2).to(tl.pointer_type(tl.float32))
            rows = (tile - done) // across * M_TILE + tl.arange(0, M_TILE)
            columns = (tile - done) % across * N_TILE + tl.arange(0, N_TILE)
            sums = tl.zeros((M_TILE, N_TILE), tl.float32)
            for start in range(0, k, K_TILE):
                inner = start + tl.arange(0, K_TILE)
                a_tile = tl.load(a + rows[:, None] * k + inner[None, :], (rows[:, None] < m) & (inner[None, :] < k), other=0.0)
                b_tile = tl.load(b + inner[:, None] * n + columns[None, :], (inner[:, None] < k) & (columns[None, :] < n), other=0.0)
                sums = tl.dot(a_tile, b_tile, sums, input_precision="ieee")
            tl.store(c + rows[:, None] * n + columns[None, :], sums, (rows[:, None] < m) & (columns[None, :] < n))
            tile += tl.num_programs(0)
        done += count


def grouped(pairs, programs=4):
    results = [np.empty((a.shape[0], b.shape[1]), np.float32) for a, b in pairs]
    addresses = np.array([[one.ctypes.data for one in (a, b, c)] for (a, b), c in zip(pairs, results)], np.int64)
    sizes = np.array([[a.shape[0], b.shape[1], a.shape[1]] for a, b in pairs], np.int32)
    grouped_kernel[(programs,)](addresses, sizes, len(pairs), M_TILE=32, N_TILE=32, K_TILE=16)
    return results


def main():
    random = np.random.default_rng(0)
    shapes = ((70, 40, 33), (20, 100, 65), (33, 33, 20))
    pairs = [(random.standard_normal((m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)) for m, n, k in shapes]
    for (a, b), c in zip(pairs, grouped(pairs)):
        error = abs(c - a.astype(np.float64) @ b).max()
        assert error < 1e-4
        print(f"{a.shape[0]} x {a.shape[1]} by {b.shape[1]}: error {error:.1e}")


if __name__ == "__main__":
    main()
