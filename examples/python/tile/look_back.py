"""Programs that wait for earlier ones: a scan that reads its input once, and a radix sort made of it (decoupled look-back).

usage: look_back.py

Each program publishes what its tile adds, then looks back over the tiles before it: it adds up what they published until one
of them already knows the sum of everything up to itself. Programs begin in the order of their numbers, so one may wait for
those before it.
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np

NOTHING, OF_TILE, OF_ALL = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # what a word says of a tile


@triton.jit
def pack(state, total):
    # State and sum in one word: whoever reads it sees both or neither.
    return (total * 0 + state).to(tl.int64) << 32 | total.to(tl.int64) & 0xFFFFFFFF


@triton.jit
def scan_kernel(x, out, words, n, ticket, BLOCK: tl.constexpr):
    # A ticket counts programs as they begin, where their numbers may say nothing about that.
    tile = tl.program_id(0) if ticket is None else tl.atomic_add(ticket, 1, sem="relaxed")
    at = tile * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, at < n, other=0)
    total, before, look = tl.sum(values, 0), 0, tile - 1
    tl.store(words + tile, pack(OF_TILE, total))
    while look >= 0:
        word = tl.load(words + look, volatile=True)
        state = word >> 32
        before += tl.where(state == NOTHING, 0, word.to(tl.int32))
        look = tl.where(state == OF_ALL, -1, tl.where(state == OF_TILE, look - 1, look))
    tl.store(words + tile, pack(OF_ALL, before + total))
    tl.store(out + at, before + tl.cumsum(values, 0), at < n)


@triton.jit
def count_kernel(keys, counts, n, BLOCK: tl.constexpr, BITS: tl.constexpr, PASSES: tl.constexpr):
    # How many keys have each digit, for all passes at once.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key, digits = tl.load(keys + at, at < n, other=0), tl.arange(0, 1 << BITS)
    for number in tl.static_range(PASSES):
        digit = (key >> number * BITS & (1 << BITS) - 1).to(tl.int32)
        tl.atomic_add(counts + (number << BITS) + digits, tl.histogram(digit, 1 << BITS, at < n), sem="relaxed")


@triton.jit
def start_kernel(counts, DIGITS: tl.constexpr):
    # Where the keys of each digit begin.
    at = tl.program_id(0) * DIGITS + tl.arange(0, DIGITS)
    count = tl.load(counts + at)
    tl.store(counts + at, tl.cumsum(count, 0) - count)


@triton.jit(do_not_specialize=["number"])
def pass_kernel(keys, out, starts, words, n, number, BLOCK: tl.constexpr, BITS: tl.constexpr):
    DIGITS: tl.constexpr = 1 << BITS
    tile, digits = tl.program_id(0), tl.arange(0, DIGITS)
    at = tile * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + at, at < n, other=0)
    has = ((key >> number * BITS & DIGITS - 1).to(tl.int32)[:, None] == digits[None, :]) & (at < n)[:, None]
    total = tl.sum(has.to(tl.int32), 0)
    tl.store(words + tile * DIGITS + digits, pack(OF_TILE, total))
    before, look = tl.zeros_like(total), tl.zeros_like(total) + tile - 1
    while tl.max(look, 0) >= 0:  # each digit looks back for itself
        word = tl.load(words + look * DIGITS + digits, look >= 0, other=0, volatile=True)
        state = word >> 32
        before += tl.where(state == NOTHING, 0, word.to(tl.int32))
        look = tl.where(state == OF_ALL, -1, tl.where(state == OF_TILE, look - 1, look))
    tl.store(words + tile * DIGITS + digits, pack(OF_ALL, before + total))
    first = tl.load(starts + number * DIGITS + digits) + before - 1
    to = tl.sum(tl.where(has, first[None, :] + tl.cumsum(has.to(tl.int32), 0), 0), 1)
    tl.store(out + to, key, at < n)


def scan(x, block=4096, tickets=False, put=np.asarray):
    """The sums of an array of int32 up to each element. `put` brings arrays to where kernels run."""
    tiles = triton.cdiv(x.size, block)
    out, words = put(np.empty_like(x)), put(np.zeros(tiles, np.int64))
    scan_kernel[(tiles,)](put(x), out, words, x.size, put(np.zeros(1, np.int32)) if tickets else None, BLOCK=block)
    return out


def sort(keys, block=512, bits=4, put=np.asarray):
    """An array of uint32 in order. A pass for each digit reads and writes the keys once."""
    tiles, passes, digits = triton.cdiv(keys.size, block), 32 // bits, 1 << bits
    old, new, counts = put(keys.copy()), put(np.empty_like(keys)), put(np.zeros(passes * digits, np.int32))
    count_kernel[(tiles,)](old, counts, keys.size, BLOCK=block, BITS=bits, PASSES=passes)
    start_kernel[(passes,)](counts, DIGITS=digits)
    for number in range(passes):
        words = put(np.zeros(tiles * digits, np.int64))
        pass_kernel[(tiles,)](old, new, counts, words, keys.size, number, BLOCK=block, BITS=bits)
        old, new = new, old
    return old


def main():
    random = np.random.default_rng(0)
    x = random.integers(-1000, 1000, 64 * 4096 - 5, np.int32)
    assert (scan(x) == np.cumsum(x, dtype=np.int32)).all()
    print(f"sums of {x.size} numbers in one pass over them: right")
    keys = random.integers(0, 1 << 32, 40000, np.uint32)
    assert (sort(keys) == np.sort(keys)).all()
    print(f"{keys.size} keys sorted: right")


if __name__ == "__main__":
    main()
