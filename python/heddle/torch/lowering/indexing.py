"""Reads and writes at positions that tensors hold."""
import math
from typing import Any, Optional, Sequence

import torch

from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, any_order, count, dim_of, is_float, lowers, wide
from heddle.torch.shapes import inverse

aten = torch.ops.aten


def _take(c: Context, x: Value, indices: Value, dim: int) -> Value:
    shape = [*x.shape[:dim], *indices.shape, *x.shape[dim + 1:]]
    return c.emit("gather", [x, indices], x.dtype, shape, dim=dim)


@lowers(aten.embedding.default)
def embedding(c: Context, table: Value, indices: Value, *_: Any) -> Value:
    return _take(c, table, indices, 0)


def _line(c: Context, x: Value) -> Value:
    """A scalar as a tensor of one element; others stay."""
    return x if x.shape else c.reshape(x, [1])


@lowers(aten.index_select.default)
def index_select(c: Context, x: Value, dim: int, indices: Value) -> Value:
    x, indices = _line(c, x), c.reshape(indices, [count(indices.shape)])
    return c.reshape(_take(c, x, indices, dim_of(dim, len(x.shape))), c.shape)


@lowers(aten.gather.default)
def gather(c: Context, x: Value, dim: int, indices: Value, **_: Any) -> Value:
    if count(indices.shape) == 0:
        return c.writer.constant(0, x.dtype, indices.shape)
    x, indices = _line(c, x), _line(c, indices)
    found = c.emit("gather_elements", [x, indices], x.dtype, indices.shape, dim=dim_of(dim, len(x.shape)))
    return c.reshape(found, c.shape)


def _joined(c: Context, indices: Sequence[Value]) -> Value:
    """[..., n] of n index tensors."""
    shape = tuple(torch.broadcast_shapes(*[one.shape for one in indices]))
    columns = [c.reshape(c.broadcast(c.cast(one, "i64"), shape), [*shape, 1]) for one in indices]
    return c.concat(columns, len(shape))


class _Indexed:
    """x[..., i, ..., j, ...]: the indexed dimensions are brought to the front, the others stay in order behind them."""

    def __init__(self, c: Context, x: Value, indices: Sequence[Optional[Value]]):
        self.dims = [d for d, one in enumerate(indices) if one is not None]
        taken = [one for one in indices if one is not None]
        if any(one.dtype in ("bool", "u8") for one in taken):
            raise Unsupported("an index by truth values, which decide the shape")
        self.positions = _joined(c, taken)
        rest = [d for d in range(len(x.shape)) if d not in self.dims]
        self.perm = [*self.dims, *rest]
        self.kept = [x.shape[d] for d in rest]
        # NumPy's rule: neighbouring indices keep their place, others make the first dimensions of the result.
        first = self.dims[0] if self.dims == list(range(self.dims[0], self.dims[-1] + 1)) else 0
        places = len(self.positions.shape) - 1
        self.order = [*range(places, places + first), *range(places), *range(places + first, places + len(rest))]


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(c: Context, x: Value, indices: Sequence[Optional[Value]]) -> Value:
    taken = [(d, one) for d, one in enumerate(indices) if one is not None]
    if len(taken) == 1 and taken[0][1].dtype not in ("bool", "u8"):
        return _take(c, x, taken[0][1], taken[0][0])
    at = _Indexed(c, x, indices)
    shape = [*at.positions.shape[:-1], *at.kept]
    found = c.emit("gather_nd", [c.transpose(x, at.perm), at.positions], x.dtype, shape, batch_dims=0)
    return c.transpose(found, at.order)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(c: Context, x: Value, indices: Sequence[Optional[Value]], values: Value, accumulate: bool = False) -> Value:
    values = c.cast(values, x.dtype)
    mask = indices[0]
    if mask is not None and mask.dtype == "bool" and len(indices) == 1 and count(values.shape) == 1:
        places = c.broadcast(mask, x.shape, range(len(mask.shape)))
        value = c.reshape(values, [])
        return c.select(places, c.binary("add", x, value) if accumulate else value, x)
    at = _Indexed(c, x, indices)
    updates = c.broadcast(values, [([*at.positions.shape[:-1], *at.kept])[d] for d in at.order])
    front, updates = c.transpose(x, at.perm), c.transpose(updates, inverse(at.order))
    made = _sum_of_slices(c, front, at.positions, updates) if accumulate else c.emit(
        "scatter_nd", [front, at.positions, updates], x.dtype, front.shape, reduction="none")
    return c.transpose(made, inverse(at.perm))


def _sum_of_slices(c: Context, x: Value, positions: Value, updates: Value) -> Value:
    """x with updates added at positions [..., n] of its first n dimensions, in f32 for types of 16 bits. The result has their type."""
    dtype = updates.dtype
    x, updates = c.cast(x, wide(dtype)), c.cast(updates, wide(dtype))
    made = c.emit("scatter_nd", [x, positions, updates], x.dtype, x.shape, reduction="add", **any_order())
    return c.cast(made, dtype)


def _scatter(c: Context, x: Value, dim: int, indices: Value, updates: Value, reduction: str) -> Value:
    if count(indices.shape) == 0:
        return x
    shape = x.shape
    x, indices, updates = _line(c, x), _line(c, indices), _line(c, updates)
    for d, extent in enumerate(indices.shape):  # PyTorch allows more updates than indices
        updates = c.slice(updates, d, 0, extent)
    dtype, order = x.dtype, any_order() if reduction == "add" else {}
    if reduction == "add":
        x, updates = c.cast(x, wide(dtype)), c.cast(updates, wide(dtype))
    made = c.emit("scatter_elements", [x, indices, updates], x.dtype, x.shape, dim=dim_of(dim, len(x.shape)), reduction=reduction, **order)
    return c.reshape(c.cast(made, dtype), shape)


@lowers(aten.scatter.src)
def scatter_src(c: Context, x: Value, dim: int, indices: Value, source: Value) -> Value:
    return _scatter(c, x, dim, indices, source, "none")


@lowers(aten.scatter.value)
def scatter_value(c: Context, x: Value, dim: int, indices: Value, value: Any) -> Value:
    return _scatter(c, x, dim, indices, c.writer.constant(value, x.dtype, indices.shape), "none")


@lowers(aten.scatter_add.default)
def scatter_add(c: Context, x: Value, dim: int, indices: Value, source: Value) -> Value:
    return _scatter(c, x, dim, indices, source, "add")


@lowers(aten.scatter_reduce.two)
def scatter_reduce(c: Context, x: Value, dim: int, indices: Value, source: Value, reduce: str, *, include_self: bool = True) -> Value:
    kinds = {"sum": ("add", 0), "mean": ("add", 0), "prod": ("mul", 1), "amax": ("max", -math.inf), "amin": ("min", math.inf)}
    kind, identity = kinds[reduce]
    if not is_float(x) and (reduce == "mean" or (math.isinf(identity) and not include_self)):
        raise Unsupported(f"a scatter of integers that takes the {reduce}")
    start = x
    if not include_self:
        start = _scatter(c, x, dim, indices, c.writer.constant(identity, x.dtype, indices.shape), "none")
    made = _scatter(c, start, dim, indices, source, kind)
    if reduce != "mean":
        return made
    ones = c.writer.constant(1, x.dtype, indices.shape)
    counts = _scatter(c, c.writer.constant(1 if include_self else 0, x.dtype, x.shape), dim, indices, ones, "add")
    return c.binary("div", made, c.binary("max", counts, 1))


def _ranks(c: Context, mask: Value) -> Value:
    """For each place of a mask, as a line, how many hold before it."""
    line = c.cast(c.reshape(mask, [count(mask.shape)]), "i64")
    return c.emit("scan", [line], "i64", line.shape, kind="sum", dim=0, exclusive=1, reverse=0)


@lowers(aten.masked_scatter.default)
def masked_scatter(c: Context, x: Value, mask: Value, source: Value) -> Value:
    x, mask = c.broadcast(x, c.shape), c.broadcast(mask, c.shape)
    if count(source.shape) == 0 or count(c.shape) == 0:
        return x
    taken = _take(c, c.reshape(source, [count(source.shape)]), c.binary("min", _ranks(c, mask), count(source.shape) - 1), 0)
    return c.select(mask, c.reshape(taken, c.shape), x)


@lowers(aten.masked_scatter_backward.default)
def masked_scatter_backward(c: Context, gradient: Value, mask: Value, _sizes: Sequence[int]) -> Value:
    if count(c.shape) == 0 or count(gradient.shape) == 0:
        return c.writer.constant(0, c.dtype, c.shape)
    length = count(c.shape)
    mask = c.broadcast(mask, gradient.shape)
    kept = c.select(mask, gradient, c.writer.constant(0, gradient.dtype, gradient.shape))
    line = c.reshape(kept, [count(kept.shape)])
    zeros = c.writer.constant(0, c.dtype, [length])
    return c.reshape(_scatter(c, zeros, 0, c.binary("min", _ranks(c, mask), length - 1), line, "add"), c.shape)


@lowers(aten.embedding_dense_backward.default)
def embedding_dense_backward(c: Context, gradient: Value, indices: Value, rows: int, padding: int, by_frequency: bool) -> Value:
    if by_frequency:
        raise Unsupported("gradients divided by the frequency of their rows")
    width = gradient.shape[-1]
    flat = c.reshape(indices, [count(indices.shape), 1])
    updates = c.reshape(gradient, [flat.shape[0], width])
    if padding >= 0:
        is_kept = c.broadcast(c.compare("ne", flat, padding), updates.shape)
        updates = c.select(is_kept, updates, c.writer.constant(0, updates.dtype, updates.shape))
    return _sum_of_slices(c, c.writer.constant(0, wide(gradient.dtype), [rows, width]), flat, updates)
