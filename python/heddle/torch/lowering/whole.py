"""Normalisations and activations that graphs without gradients keep whole (decompositions.py)."""
import math
from typing import Any, List, Optional, Sequence

import torch

from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, lowers, rounded_once, wide
from heddle.torch.lowering.elementwise import sigmoid
from heddle.torch.lowering.reductions import var_mean

aten = torch.ops.aten


def _normalised(c: Context, x: Value, mean: Value, variance: Value, weight: Optional[Value], bias: Optional[Value],
                eps: float) -> List[Optional[Value]]:
    """Of the type of `mean`; the other results are those of training."""
    if c.used - {0}:
        raise Unsupported("the statistics of a normalisation")
    dtype = mean.dtype
    y = c.binary("mul", c.binary("sub", c.cast(x, dtype), mean), c.unary("rsqrt", c.binary("add", variance, eps)))
    if weight is not None:
        y = c.binary("mul", y, c.cast(weight, dtype))
    if bias is not None:
        y = c.binary("add", y, c.cast(bias, dtype))
    return [c.cast(y, c.dtype), *[None] * (len(c.results) - 1)]


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm(c: Context, x: Value, weight: Optional[Value], bias: Optional[Value], mean: Value, variance: Value,
               _momentum: float, eps: float) -> List[Optional[Value]]:
    def by_channel(one: Optional[Value]) -> Optional[Value]:
        return None if one is None else c.reshape(c.cast(one, wide(x.dtype)), [one.shape[0], *[1] * (len(x.shape) - 2)])
    return _normalised(c, x, by_channel(mean), by_channel(variance), by_channel(weight), by_channel(bias), eps)  # type: ignore[arg-type]


@lowers(aten.native_layer_norm.default)
def layer_norm(c: Context, x: Value, shape: Sequence[int], weight: Optional[Value], bias: Optional[Value],
               eps: float) -> List[Optional[Value]]:
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    dtype = wide(x.dtype)
    statistics = Context(c.writer, [(dtype, x.shape), (dtype, x.shape)])
    variance, mean = var_mean(statistics, x, dims, correction=0, keepdim=True)
    return _normalised(c, x, mean, variance, weight, bias, eps)


@lowers(aten.gelu.default)
@rounded_once
def gelu(c: Context, x: Value, *, approximate: str = "none") -> Value:
    half = c.binary("mul", x, 0.5)
    if approximate == "none":
        inner = c.unary("erf", c.binary("mul", x, math.sqrt(0.5)))
    else:
        cube = c.binary("mul", c.binary("mul", x, x), x)
        inner = c.binary("mul", c.binary("add", x, c.binary("mul", cube, 0.044715)), math.sqrt(2 / math.pi))
        inner = c.unary("tanh", inner)
    return c.binary("mul", half, c.binary("add", inner, 1))


@lowers(aten.silu.default)
@rounded_once
def silu(c: Context, x: Value) -> Value:
    return c.binary("mul", x, sigmoid(c, x))


@lowers(aten.hardswish.default)
@rounded_once
def hardswish(c: Context, x: Value) -> Value:
    gate: Any = c.binary("max", c.binary("add", x, 3), 0)
    return c.binary("div", c.binary("mul", x, c.binary("min", gate, 6)), 6)
