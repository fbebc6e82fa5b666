"""Softmax of rows that stay on chip: a row a step, reductions, a tile as long as the row.

usage: fused_softmax.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def softmax_kernel(out, x, x_stride, out_stride, rows, COLUMNS: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.arange(0, COLUMNS)
        # Any extent is good for a tile, so that the row needs neither padding nor a mask.
        values = tl.load(x + row * x_stride + at)
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + at, powers / tl.sum(powers, axis=0))


def softmax(x, programs=8):
    out = np.empty_like(x)
    strides = [array.strides[0] // array.itemsize for array in (x, out)]
    softmax_kernel[(min(programs, len(x)),)](out, x, *strides, len(x), COLUMNS=x.shape[1])
    return out


def main():
    x = np.random.default_rng(0).standard_normal((37, 781), dtype=np.float32)
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    error = abs(softmax(x) - wide / wide.sum(1, keepdims=True)).max()
    assert error < 1e-6
    print(f"softmax of {x.shape[0]} rows of {x.shape[1]}: error {error:.1e}")


if __name__ == "__main__":
    main()
