"""Reductions and scans."""
import math
from typing import Any, List, Optional, Sequence

import torch

from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, count, dim_of, dims_of, is_float, lowers, wide

aten = torch.ops.aten


@lowers(aten.sum.default, aten.sum.dim_IntList)
def sum_(c: Context, x: Value, dims: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return c.reduce("sum", c.cast(x, c.dtype), dims_of(dims, len(x.shape)), keepdim)


@lowers(aten.mean.default, aten.mean.dim)
def mean(c: Context, x: Value, dims: Any = None, keepdim: bool = False, **_: Any) -> Value:
    dims = dims_of(dims, len(x.shape))
    total = c.reduce("sum", c.cast(x, wide(c.dtype)), dims, keepdim)
    elements = math.prod(x.shape[d] for d in dims)
    return c.cast(c.binary("mul", total, 1 / elements if elements else math.nan), c.dtype)


@lowers(aten.prod.default, aten.prod.dim_int)
def prod(c: Context, x: Value, dims: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return c.reduce("prod", c.cast(x, c.dtype), dims_of(dims, len(x.shape)), keepdim)


def _extreme(c: Context, kind: str, x: Value, dims: Sequence[int], keepdim: bool) -> Value:
    if any(x.shape[d] == 0 for d in dims):
        raise Unsupported("a maximum or minimum of no elements")
    if x.dtype == "bool":
        return c.reduce("any" if kind == "max" else "all", x, dims, keepdim)
    return c.reduce(kind, x, dims, keepdim)


@lowers(aten.amax.default, aten.max.default)
def amax(c: Context, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
    return _extreme(c, "max", x, dims_of(dims, len(x.shape)), keepdim)


@lowers(aten.amin.default, aten.min.default)
def amin(c: Context, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
    return _extreme(c, "min", x, dims_of(dims, len(x.shape)), keepdim)


def _logic(c: Context, kind: str, x: Value, dims: Any, keepdim: bool) -> Value:
    return c.cast(c.reduce(kind, c.cast(x, "bool"), dims_of(dims, len(x.shape)), keepdim), c.dtype)


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any_(c: Context, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
    return _logic(c, "any", x, dims, keepdim)


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all_(c: Context, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
    return _logic(c, "all", x, dims, keepdim)


def _arg(c: Context, kind: str, x: Value, dim: Optional[int], keepdim: bool) -> Value:
    x = c.cast(x, "u8") if x.dtype == "bool" else x
    flat = x if dim is not None and x.shape else c.reshape(x, [count(x.shape)])
    dim = dim_of(dim, len(x.shape)) if dim is not None and x.shape else 0
    if flat.shape[dim] == 0:
        raise Unsupported("the position of a maximum of no elements")
    kept = [extent for d, extent in enumerate(flat.shape) if d != dim]
    return c.reshape(c.emit("arg_reduce", [flat], "i64", kept, kind=kind, dim=dim, last=0), c.shape)


@lowers(aten.argmax.default)
def argmax(c: Context, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
    return _arg(c, "max", x, dim, keepdim)


@lowers(aten.argmin.default)
def argmin(c: Context, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
    return _arg(c, "min", x, dim, keepdim)


def _extreme_and_position(c: Context, kind: str, x: Value, dim: int, keepdim: bool) -> List[Value]:
    where = Context(c.writer, c.results[1:])
    dims = [dim_of(dim, len(x.shape))] if x.shape else []
    return [_extreme(c, kind, x, dims, keepdim), _arg(where, kind, x, dim, keepdim)]


@lowers(aten.max.dim)
def max_dim(c: Context, x: Value, dim: int, keepdim: bool = False) -> List[Value]:
    return _extreme_and_position(c, "max", x, dim, keepdim)


@lowers(aten.min.dim)
def min_dim(c: Context, x: Value, dim: int, keepdim: bool = False) -> List[Value]:
    return _extreme_and_position(c, "min", x, dim, keepdim)


def _variance(c: Context, x: Value, dims: Any, correction: Any, keepdim: bool) -> List[Value]:
    dims = dims_of(dims, len(x.shape))
    x = c.cast(x, wide(x.dtype))
    elements = math.prod(x.shape[d] for d in dims)
    left = elements - (1 if correction is None else correction)
    centre = c.binary("mul", c.reduce("sum", x, dims, True), 1 / elements if elements else math.nan)
    apart = c.binary("sub", x, centre)
    squares = c.reduce("sum", c.binary("mul", apart, apart), dims, keepdim)
    variance = c.binary("div", squares, max(0, left))
    middle = centre if keepdim else c.reshape(centre, variance.shape)
    return [c.cast(variance, c.dtype), c.cast(middle, c.dtype)]


@lowers(aten.var.correction)
def var(c: Context, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> Value:
    return _variance(c, x, dims, correction, keepdim)[0]


@lowers(aten.var_mean.correction)
def var_mean(c: Context, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> List[Value]:
    return _variance(c, x, dims, correction, keepdim)


def _scan(c: Context, kind: str, x: Value, dim: int) -> Value:
    x = c.cast(x, c.dtype)
    if not x.shape:
        return x
    return c.emit("scan", [x], x.dtype, x.shape, kind=kind, dim=dim_of(dim, len(x.shape)), exclusive=0, reverse=0)


@lowers(aten.cumsum.default)
def cumsum(c: Context, x: Value, dim: int, **_: Any) -> Value:
    return _scan(c, "sum", x, dim)


@lowers(aten.cumprod.default)
def cumprod(c: Context, x: Value, dim: int, **_: Any) -> Value:
    return _scan(c, "prod", x, dim)


@lowers(aten.logsumexp.default)
def logsumexp(c: Context, x: Value, dims: Any, keepdim: bool = False) -> Value:
    dims = dims_of(dims, len(x.shape))
    x = c.cast(x, c.dtype)
    largest = c.reduce("max", x, dims, True)
    is_finite = c.compare("lt", c.unary("abs", largest), math.inf)
    largest = c.select(is_finite, largest, c.writer.constant(0, x.dtype, largest.shape))
    total = c.reduce("sum", c.unary("exp", c.binary("sub", x, largest)), dims, True)
    return c.reshape(c.binary("add", c.unary("log", total), largest), c.shape)


def _softmax_parts(c: Context, x: Value, dim: int) -> List[Value]:
    x = c.cast(x, wide(x.dtype))
    dims = [dim_of(dim, len(x.shape))] if x.shape else []
    apart = c.binary("sub", x, c.reduce("max", x, dims, True))
    powers = c.unary("exp", apart)
    return [apart, powers, c.reduce("sum", powers, dims, True)]


@lowers(aten._softmax.default)
def softmax(c: Context, x: Value, dim: int, _half_to_float: bool) -> Value:
    if not is_float(x):
        raise Unsupported("a softmax of integers")
    _, powers, total = _softmax_parts(c, x, dim)
    return c.cast(c.binary("div", powers, total), c.dtype)


@lowers(aten._log_softmax.default)
def log_softmax(c: Context, x: Value, dim: int, _half_to_float: bool) -> Value:
    apart, _, total = _softmax_parts(c, x, dim)
    return c.cast(c.binary("sub", apart, c.unary("log", total)), c.dtype)


def _sorted(c: Context, x: Value, k: int, dim: int, largest: bool) -> List[Value]:
    if not x.shape:
        return [x, c.writer.constant(0, "i64")]
    if x.dtype == "bool":
        raise Unsupported("an order of truth values")
    dim = dim_of(dim, len(x.shape))
    shape = tuple(k if d == dim else extent for d, extent in enumerate(x.shape))
    return c.writer.emit_all("topk", [x], [(x.dtype, shape), ("i64", shape)], k=k, dim=dim, largest=largest, sorted=1)


@lowers(aten.topk.default)
def topk(c: Context, x: Value, k: int, dim: int = -1, largest: bool = True, _sort: bool = True) -> List[Value]:
    return _sorted(c, x, k, dim, largest)


@lowers(aten.sort.default)
def sort(c: Context, x: Value, dim: int = -1, descending: bool = False) -> List[Value]:
    return _sorted(c, x, x.shape[dim] if x.shape else 1, dim, descending)


@lowers(aten.sort.stable)
def sort_stable(c: Context, x: Value, *, stable: Optional[bool] = None, dim: int = -1, descending: bool = False) -> List[Value]:
    return sort(c, x, dim, descending)
