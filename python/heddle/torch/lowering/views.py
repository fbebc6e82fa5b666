"""Operators that move elements: views, joins, slices, padding."""
from typing import Any, List, Optional, Sequence

import torch

from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, count, dim_of, dims_of, lowers

aten, prims = torch.ops.aten, torch.ops.prims


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default,
        aten.squeeze.dim, aten.squeeze.dims, aten.flatten.using_ints)
def reshape(c: Context, x: Value, *_: Any) -> Value:
    return c.reshape(x, c.shape)


@lowers(aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default, aten.contiguous.default,
        aten.copy.default, prims.device_put.default)
def same(c: Context, x: Value, *rest: Any, **_: Any) -> Value:
    # copy(x, y) is y in the type and shape of x.
    taken = rest[0] if rest and isinstance(rest[0], Value) else x
    return c.broadcast(c.cast(taken, c.dtype), c.shape)


@lowers(aten.permute.default)
def permute(c: Context, x: Value, dims: Sequence[int]) -> Value:
    return c.transpose(x, [dim_of(d, len(x.shape)) for d in dims])


@lowers(aten.t.default)
def t(c: Context, x: Value) -> Value:
    return c.transpose(x, list(reversed(range(len(x.shape)))))


@lowers(aten.transpose.int)
def transpose(c: Context, x: Value, first: int, second: int) -> Value:
    perm = list(range(len(x.shape)))
    if perm:
        first, second = dim_of(first, len(perm)), dim_of(second, len(perm))
        perm[first], perm[second] = perm[second], perm[first]
    return c.transpose(x, perm)


@lowers(aten.expand.default)
def expand(c: Context, x: Value, *_: Any, **__: Any) -> Value:
    return c.broadcast(x, c.shape)


def _span(extent: int, start: Optional[int], end: Optional[int]) -> List[int]:
    def clamped(index: int) -> int:
        return min(max(index + extent if index < 0 else index, 0), extent)
    first = clamped(0 if start is None else start)
    return [first, max(first, clamped(extent if end is None else end))]


@lowers(aten.slice.Tensor)
def slice_tensor(c: Context, x: Value, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None, step: int = 1) -> Value:
    dim = dim_of(dim, len(x.shape))
    return c.slice(x, dim, *_span(x.shape[dim], start, end), step)


@lowers(aten.select.int)
def select_int(c: Context, x: Value, dim: int, index: int) -> Value:
    dim = dim_of(dim, len(x.shape))
    index += x.shape[dim] if index < 0 else 0
    return c.reshape(c.slice(x, dim, index, index + 1), c.shape)


def _split(c: Context, x: Value, sizes: Sequence[int], dim: int) -> List[Value]:
    dim, start, parts = dim_of(dim, len(x.shape)), 0, []
    for size in sizes:
        parts.append(c.slice(x, dim, start, start + size))
        start += size
    return parts


@lowers(aten.split_with_sizes.default)
def split_with_sizes(c: Context, x: Value, sizes: Sequence[int], dim: int = 0) -> List[Value]:
    return _split(c, x, sizes, dim)


@lowers(aten.split.Tensor)
def split(c: Context, x: Value, size: int, dim: int = 0) -> List[Value]:
    extent = x.shape[dim_of(dim, len(x.shape))]
    return _split(c, x, [min(size, extent - start) for start in range(0, extent, size)] or [0], dim)


@lowers(aten.unbind.int)
def unbind(c: Context, x: Value, dim: int = 0) -> List[Value]:
    dim = dim_of(dim, len(x.shape))
    shape = [extent for d, extent in enumerate(x.shape) if d != dim]
    return [c.reshape(c.slice(x, dim, i, i + 1), shape) for i in range(x.shape[dim])]


@lowers(aten.cat.default)
def cat(c: Context, parts: Sequence[Value], dim: int = 0) -> Value:
    # An empty tensor of rank 1 goes with tensors of any rank.
    parts = [c.cast(part, c.dtype) for part in parts if len(part.shape) == len(c.shape)]
    return c.concat(parts, dim_of(dim, len(c.shape)))


@lowers(aten.stack.default)
def stack(c: Context, parts: Sequence[Value], dim: int = 0) -> Value:
    dim = dim_of(dim, len(c.shape))
    one = [1 if d == dim else extent for d, extent in enumerate(c.shape)]
    return c.concat([c.reshape(c.cast(part, c.dtype), one) for part in parts], dim)


@lowers(aten.constant_pad_nd.default)
def constant_pad(c: Context, x: Value, pad: Sequence[int], value: Any = 0) -> Value:
    rank = len(x.shape)
    low, high = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    for d in range(rank):  # a negative amount crops
        x = c.slice(x, d, max(0, -low[d]), x.shape[d] - max(0, -high[d]))
    low, high = [max(0, amount) for amount in low], [max(0, amount) for amount in high]
    if not any(low + high):
        return x
    return c.emit("pad", [x, c.writer.constant(value, x.dtype)], x.dtype, c.shape, mode="constant", low=low, high=high)


@lowers(aten.repeat.default)
def repeat(c: Context, x: Value, repeats: Sequence[int]) -> Value:
    ones = len(repeats) - len(x.shape)
    extents = [1] * ones + list(x.shape)
    # [r0, e0, r1, e1, ...], of which x is every second.
    wide = [n for pair in zip(repeats, extents) for n in pair]
    return c.reshape(c.broadcast(c.reshape(x, extents), wide, range(1, len(wide), 2)), c.shape)


@lowers(aten.flip.default)
def flip(c: Context, x: Value, dims: Sequence[int]) -> Value:
    dims = dims_of(dims, len(x.shape)) if dims else []
    return c.emit("reverse", [x], x.dtype, x.shape, dims=dims) if dims else x


@lowers(aten.roll.default)
def roll(c: Context, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    flat = x if dims else c.reshape(x, [count(x.shape)])
    for shift, dim in zip(shifts, dims or [0]):
        dim = dim_of(dim, len(flat.shape))
        extent = flat.shape[dim]
        cut = extent - shift % extent if extent else 0
        if 0 < cut < extent:
            flat = c.concat([c.slice(flat, dim, cut, extent), c.slice(flat, dim, 0, cut)], dim)
    return c.reshape(flat, x.shape)


def _replaced(c: Context, x: Value, part: Value, dim: int, start: int, limit: int) -> Value:
    before, after = c.slice(x, dim, 0, start), c.slice(x, dim, limit, x.shape[dim])
    return c.concat([before, c.cast(part, x.dtype), after], dim)


def with_zeros(c: Context, x: Value, dim: int, stride: int) -> Value:
    """stride - 1 zeros behind each element along a dimension."""
    if stride == 1:
        return x
    split = [*x.shape[:dim + 1], 1, *x.shape[dim + 1:]]
    high = [stride - 1 if d == dim + 1 else 0 for d in range(len(split))]
    wide = [stride if d == dim + 1 else extent for d, extent in enumerate(split)]
    padded = c.emit("pad", [c.reshape(x, split), c.writer.constant(0, x.dtype)], x.dtype, wide, mode="constant", low=[0] * len(split),
                    high=high)
    return c.reshape(padded, [extent * stride if d == dim else extent for d, extent in enumerate(x.shape)])


@lowers(aten.slice_scatter.default)
def slice_scatter(c: Context, x: Value, part: Value, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None,
                  step: int = 1) -> Value:
    dim = dim_of(dim, len(x.shape))
    first, limit = _span(x.shape[dim], start, end)
    places = max(0, -(-(limit - first) // step))
    part = c.broadcast(c.cast(part, x.dtype), [places if d == dim else extent for d, extent in enumerate(x.shape)])
    if step == 1:
        return _replaced(c, x, part, dim, first, limit)
    if places == 0:
        return x
    spread = c.slice(with_zeros(c, part, dim, step), dim, 0, min(places * step, x.shape[dim] - first))
    low = [first if d == dim else 0 for d in range(len(x.shape))]
    high = [x.shape[dim] - first - spread.shape[dim] if d == dim else 0 for d in range(len(x.shape))]
    wide = c.emit("pad", [spread, c.writer.constant(0, x.dtype)], x.dtype, x.shape, mode="constant", low=low, high=high)
    behind = c.binary("sub", c.iota("i64", x.shape, dim), first)
    is_place = c.binary("and", c.compare("eq", c.binary("mod", behind, step), 0), c.compare("ge", behind, 0))
    is_place = c.binary("and", is_place, c.compare("lt", behind, limit - first))
    return c.select(is_place, wide, x)


@lowers(aten.select_scatter.default)
def select_scatter(c: Context, x: Value, part: Value, dim: int, index: int) -> Value:
    dim = dim_of(dim, len(x.shape))
    index += x.shape[dim] if index < 0 else 0
    one = c.reshape(part, [1 if d == dim else extent for d, extent in enumerate(x.shape)])
    return _replaced(c, x, one, dim, index, index + 1)


@lowers(aten.as_strided.default)
def as_strided(c: Context, x: Value, size: Sequence[int], stride: Sequence[int], offset: Optional[int] = None) -> Value:
    # Of a dense tensor in row-major order, which is what parts hold inside.
    dense, step = [], 1
    for extent in reversed(size):
        dense.insert(0, step)
        step *= extent
    if offset or count(x.shape) != step or any(s != d for s, d, e in zip(stride, dense, size) if e != 1):
        raise Unsupported("strides that are not those of a dense tensor")
    return c.reshape(x, size)


@lowers(aten.tril.default)
def tril(c: Context, x: Value, diagonal: int = 0) -> Value:
    return _triangle(c, x, diagonal, "le")


@lowers(aten.triu.default)
def triu(c: Context, x: Value, diagonal: int = 0) -> Value:
    return _triangle(c, x, diagonal, "ge")


def _triangle(c: Context, x: Value, diagonal: int, op: str) -> Value:
    plane = x.shape[-2:]
    rows, columns = c.iota("i64", plane, 0), c.iota("i64", plane, 1)
    keeps = c.compare(op, columns, c.binary("add", rows, diagonal))
    return c.select(keeps, x, c.writer.constant(0, x.dtype, x.shape))


@lowers(aten.diagonal.default)
def diagonal(c: Context, x: Value, offset: int = 0, first: int = 0, second: int = 1) -> Value:
    rank = len(x.shape)
    first, second = dim_of(first, rank), dim_of(second, rank)
    rest = [d for d in range(rank) if d not in (first, second)]
    rows, columns, length = x.shape[first], x.shape[second], c.shape[-1]
    if length == 0:
        return c.writer.constant(0, x.dtype, c.shape)
    plane = c.reshape(c.transpose(x, [*rest, first, second]), [*[x.shape[d] for d in rest], rows * columns])
    start = offset if offset >= 0 else -offset * columns
    return c.slice(plane, len(rest), start, start + (length - 1) * (columns + 1) + 1, columns + 1)
