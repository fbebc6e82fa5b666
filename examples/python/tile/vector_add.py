"""The sum of two vectors: programs, offsets, masks, and a bench.

usage: vector_add.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    # Each program takes BLOCK elements, which its number tells apart.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n  # the last program has elements behind the end
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def add(x, y):
    out = np.empty_like(x)
    add_kernel[lambda words: (triton.cdiv(x.size, words["BLOCK"]),)](x, y, out, x.size, BLOCK=1024)
    return out


def main():
    x, y = np.random.default_rng(0).random((2, 98432), dtype=np.float32)
    assert np.array_equal(add(x, y), x + y)
    milliseconds = triton.testing.do_bench(lambda: add(x, y), warmup=5, rep=20)
    print(f"sum of {x.size} elements: exact, {3 * x.nbytes / milliseconds / 1e6:.2f} GB/s")


if __name__ == "__main__":
    main()
