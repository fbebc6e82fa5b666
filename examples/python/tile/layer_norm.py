"""Layer normalisation and its gradients: two reductions of a row, and sums over rows by locks between programs.

usage: layer_norm.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def forward_kernel(x, y, weight, bias, mean, rstd, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, at < columns, other=0.0)
    center = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        away = tl.where(at < columns, tl.load(x + at, at < columns, other=0.0) - center, 0.0)
        squares += away * away
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean + row, center)
    tl.store(rstd + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        normal = (tl.load(x + at, inside) - center) * scale
        tl.store(y + at, normal * tl.load(weight + at, inside) + tl.load(bias + at, inside), inside)


@triton.jit
def backward_rows_kernel(dx, dy, dweight, dbias, x, weight, mean, rstd, locks, stride, columns, GROUPS: tl.constexpr,
                         BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    scale = tl.load(rstd + row)
    normal = tl.where(inside, (tl.load(x + row * stride + at, inside) - tl.load(mean + row)) * scale, 0.0)
    gradient = tl.load(dy + row * stride + at, inside, other=0.0)
    weighted = tl.load(weight + at, inside, other=0.0) * gradient
    along = tl.sum(normal * weighted, axis=0) / columns
    level = tl.sum(weighted, axis=0) / columns
    tl.store(dx + row * stride + at, (weighted - (normal * along + level)) * scale, inside)
    # Rows of a group add to one partial sum, one program at a time.
    group = row % GROUPS
    lock, count = locks + group, locks + GROUPS + group
    dweight += group * columns + at
    dbias += group * columns + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    partial_weight, partial_bias = gradient * normal, gradient
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial_weight += tl.load(dweight, inside)
        partial_bias += tl.load(dbias, inside)
    tl.store(dweight, partial_weight, inside)
    tl.store(dbias, partial_bias, inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def backward_sums_kernel(dweight, dbias, weight_sum, bias_sum, groups, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    weights = tl.zeros((ROWS, COLUMNS), tl.float32)
    biases = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, groups, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = (rows[:, None] < groups) & (at[None, :] < columns)
        place = rows[:, None] * columns + at[None, :]
        weights += tl.load(dweight + place, inside, other=0.0)
        biases += tl.load(dbias + place, inside, other=0.0)
    tl.store(weight_sum + at, tl.sum(weights, axis=0), at < columns)
    tl.store(bias_sum + at, tl.sum(biases, axis=0), at < columns)


def forward(x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    y, mean, rstd = np.empty_like(x), np.empty(rows, np.float32), np.empty(rows, np.float32)
    forward_kernel[(rows,)](x, y, weight, bias, mean, rstd, columns, columns, eps, BLOCK=64)
    return y, mean, rstd


def backward(dy, x, weight, mean, rstd, groups=4):
    (rows, columns), dx = x.shape, np.empty_like(x)
    partial = np.empty((2, groups, columns), np.float32)
    locks = np.zeros(2 * groups, np.int32)
    backward_rows_kernel[(rows,)](dx, dy, partial[0], partial[1], x, weight, mean, rstd, locks, columns, columns, GROUPS=groups,
                                  BLOCK=triton.next_power_of_2(columns))
    dweight, dbias = np.empty_like(weight), np.empty_like(weight)
    backward_sums_kernel[(triton.cdiv(columns, 32),)](partial[0], partial[1], dweight, dbias, min(groups, rows), columns, ROWS=4,
                                                      COLUMNS=32)
    return dx, dweight, dbias


def main():
    random = np.random.default_rng(0)
    x, dy = random.standard_normal((2, 19, 150)).astype(np.float32)
    weight, bias = random.standard_normal((2, 150)).astype(np.float32)
    y, mean, rstd = forward(x, weight, bias)
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    normal = (wide - wide.mean(1, keepdims=True)) * scale
    weighted = dy * weight
    slope = (weighted - normal * (weighted * normal).mean(1, keepdims=True) - weighted.mean(1, keepdims=True)) * scale
    dx, dweight, dbias = backward(dy, x, weight, mean, rstd)
    expected = {"y": (y, normal * weight + bias), "dx": (dx, slope), "dweight": (dweight, (dy * normal).sum(0)),
                "dbias": (dbias, dy.sum(0))}
    for name, (found, wanted) in expected.items():
        error = abs(found - wanted).max()
        assert error < 1e-4, name
        print(f"{name}: error {error:.1e}")


if __name__ == "__main__":
    main()
