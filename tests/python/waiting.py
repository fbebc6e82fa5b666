"""The least program that waits: each spins on a flag that the one before it stores."""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def flags_kernel(x, out, sums, flags, n, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    at = tile * BLOCK + tl.arange(0, BLOCK)
    values, before = tl.load(x + at, at < n, other=0), 0
    if tile > 0:
        while tl.load(flags + tile - 1, volatile=True) == 0:
            pass
        before = tl.load(sums + tile - 1)
    tl.store(sums + tile, before + tl.sum(values, 0))
    tl.debug_barrier()
    tl.store(flags + tile, 1)
    tl.store(out + at, before + tl.cumsum(values, 0), at < n)


def sums_by_flags(x, block, put):
    tiles = triton.cdiv(x.size, block)
    out, sums = put(np.empty_like(x)), put(np.empty(tiles, np.int32))
    flags_kernel[(tiles,)](put(x), out, sums, put(np.zeros(tiles, np.int32)), x.size, BLOCK=block)
    return out
