"""Dropout whose mask is a seed: random numbers are a function of the seed and the place, so that nothing is kept.

usage: dropout.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, value / (1 - p), 0.0), at < n)


def dropout(x, p, seed):
    out = np.empty_like(x)
    dropout_kernel[(triton.cdiv(x.size, 1024),)](x, out, x.size, p, seed, BLOCK=1024)
    return out


def main():
    x = np.ones(10000, np.float32)
    first, again, other = dropout(x, 0.3, 123), dropout(x, 0.3, 123), dropout(x, 0.3, 512)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    share = (first == 0).mean()
    assert abs(share - 0.3) < 0.02 and np.allclose(first[first > 0], 1 / 0.7)
    print(f"dropped {share:.3f} of {x.size}, the same ones for the same seed")


if __name__ == "__main__":
    main()
