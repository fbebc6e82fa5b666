"""Reductions and scans by functions of one's own: mean and variance in one pass, a linear recurrence.

usage: reductions.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def merge(mean1, squares1, count1, mean2, squares2, count2):
    # Two sets by their means, their squared distances from these, and their sizes (Welford, Chan).
    count = count1 + count2
    away = mean2 - mean1
    share = tl.where(count == 0, 0.0, count2 / tl.maximum(count, 1.0))
    return mean1 + away * share, squares1 + squares2 + away * away * count1 * share, count


@triton.jit
def moments_kernel(x, mean, variance, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=0.0)
    center, squares, count = tl.reduce((values, tl.zeros_like(values), inside.to(tl.float32)), 0, merge)
    tl.store(mean + row, center)
    tl.store(variance + row, squares / count)


@triton.jit
def follow(a1, b1, a2, b2):
    # x -> a1 x + b1, then x -> a2 x + b2
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence_kernel(a, b, out, N: tl.constexpr):
    at = tl.arange(0, N)
    _, states = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, follow)
    tl.store(out + at, states)


def main():
    random = np.random.default_rng(0)
    x = random.standard_normal((5, 200)).astype(np.float32) + 3
    mean, variance = np.empty((2, 5), np.float32)
    moments_kernel[(5,)](x, mean, variance, 200, BLOCK=256)
    errors = abs(mean - x.mean(1, dtype=np.float64)).max(), abs(variance - x.astype(np.float64).var(1)).max()
    assert max(errors) < 1e-5
    print(f"mean and variance of rows: errors {errors[0]:.1e}, {errors[1]:.1e}")

    a, b = random.random((2, 100), dtype=np.float32)
    out, state, expected = np.empty_like(a), 0.0, []
    recurrence_kernel[(1,)](a, b, out, N=100)
    for factor, term in zip(a, b):
        state = factor * state + term
        expected.append(state)
    error = abs(out - np.array(expected)).max()
    assert error < 1e-5
    print(f"states of a recurrence: error {error:.1e}")


if __name__ == "__main__":
    main()
