"""Products, convolutions and their gradients, attention."""
import math
from typing import Any, List, Optional, Sequence

import torch

from heddle.torch.attention import ATTENTION
from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, is_float, lowers

aten = torch.ops.aten


@lowers(aten.mm.default)
def mm(c: Context, x: Value, y: Value) -> Value:
    return _dot(c, x, y, 0)


@lowers(aten.bmm.default)
def bmm(c: Context, x: Value, y: Value) -> Value:
    return _dot(c, x, y, 1)


@lowers(aten.mv.default)
def mv(c: Context, x: Value, y: Value) -> Value:
    return c.reshape(_dot(c, x, c.reshape(y, [*y.shape, 1]), 0), c.shape)


@lowers(aten.dot.default)
def dot(c: Context, x: Value, y: Value) -> Value:
    return c.reshape(_dot(c, c.reshape(x, [1, *x.shape]), c.reshape(y, [*y.shape, 1]), 0), c.shape)


def _dot(c: Context, x: Value, y: Value, batch: int) -> Value:
    if not is_float(x):
        raise Unsupported(f"products of {x.dtype}")
    return c.dot(x, y, batch)


def _scaled_sum(c: Context, x: Value, product: Value, beta: Any, alpha: Any) -> Value:
    if alpha != 1:
        product = c.binary("mul", product, alpha)
    if beta == 0:  # x counts for nothing, even where it is NaN
        return product
    return c.binary("add", product, x if beta == 1 else c.binary("mul", x, beta))


@lowers(aten.addmm.default)
def addmm(c: Context, x: Value, left: Value, right: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    return _scaled_sum(c, x, _dot(c, left, right, 0), beta, alpha)


@lowers(aten.baddbmm.default)
def baddbmm(c: Context, x: Value, left: Value, right: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    return _scaled_sum(c, x, _dot(c, left, right, 1), beta, alpha)


def _spatial(values: Sequence[int], rank: int) -> List[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _conv(c: Context, x: Value, w: Value, shape: Sequence[int], groups: int, **windows: Sequence[int]) -> Value:
    return c.emit("conv", [x, w], x.dtype, shape, groups=groups, layout="nchw", **windows)


def _flipped(c: Context, w: Value, groups: int) -> Value:
    """[I, O/groups, k...] as the filter [O, I/groups, k...] of the convolution that spreads, with its places reversed."""
    rank, places = len(w.shape) - 2, w.shape[2:]
    split = c.reshape(w, [groups, w.shape[0] // groups, w.shape[1], *places])
    swapped = c.transpose(split, [0, 2, 1, *range(3, 3 + rank)])
    joined = c.reshape(swapped, [groups * w.shape[1], w.shape[0] // groups, *places])
    return c.emit("reverse", [joined], joined.dtype, joined.shape, dims=range(2, 2 + rank)) if rank else joined


def _spread(c: Context, x: Value, w: Value, places: Sequence[int], stride: Sequence[int], padding: Sequence[int],
            dilation: Sequence[int], groups: int) -> Value:
    """The transposed convolution with results of these spatial extents; w: [I, O/groups, k...]."""
    rank = len(places)
    low = [d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding)]
    high = [extent - ((n - 1) * s + 1) - lo + d * (k - 1)
            for extent, n, s, lo, d, k in zip(places, x.shape[2:], stride, low, dilation, w.shape[2:])]
    return _conv(c, x, _flipped(c, w, groups), [x.shape[0], w.shape[1] * groups, *places], groups, strides=[1] * rank, low=low,
                 high=high, dilations=dilation, lhs_dilations=stride)


def _gather_conv(c: Context, x: Value, w: Value, places: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], groups: int) -> Value:
    return _conv(c, x, w, [x.shape[0], w.shape[0], *places], groups, strides=stride, low=padding, high=padding,
                 dilations=dilation, lhs_dilations=[1] * len(places))


@lowers(aten.convolution.default)
def convolution(c: Context, x: Value, w: Value, bias: Optional[Value], stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, _output_padding: Sequence[int], groups: int) -> Value:
    rank = len(w.shape) - 2
    if rank > 3 or not is_float(x) or len(x.shape) != len(w.shape):
        raise Unsupported("a convolution of this rank or type")
    stride, padding, dilation = (_spatial(values, rank) for values in (stride, padding, dilation))
    make = _spread if transposed else _gather_conv
    y = make(c, x, w, c.shape[2:], stride, padding, dilation, groups)
    if bias is None:
        return y
    return c.binary("add", y, c.broadcast(bias, y.shape, [1]))


def _filter_gradient(c: Context, x: Value, gradient: Value, w: Value, stride: Sequence[int], padding: Sequence[int],
                     dilation: Sequence[int], groups: int) -> Value:
    """Of the filter w [O, C/groups, k...]: batch and channels change places, and the gradient is a filter over x."""
    rank, n, channels = len(w.shape) - 2, x.shape[0], w.shape[1]
    axes = list(range(3, 3 + rank))
    parts = c.transpose(c.reshape(x, [n, groups, channels, *x.shape[2:]]), [2, 1, 0, *axes])
    image = c.reshape(parts, [channels, groups * n, *x.shape[2:]])
    window = c.transpose(gradient, [1, 0, *range(2, 2 + rank)])
    high = [(k - 1) * d + (g - 1) * s + 1 - extent - p
            for k, d, g, s, extent, p in zip(w.shape[2:], dilation, gradient.shape[2:], stride, x.shape[2:], padding)]
    y = _conv(c, image, window, [channels, w.shape[0], *w.shape[2:]], groups, strides=dilation, low=padding, high=high,
              dilations=stride, lhs_dilations=[1] * rank)
    return c.transpose(y, [1, 0, *range(2, 2 + rank)])


@lowers(aten.convolution_backward.default)
def convolution_backward(c: Context, gradient: Value, x: Value, w: Value, _bias_sizes: Any, stride: Sequence[int],
                         padding: Sequence[int], dilation: Sequence[int], transposed: bool, _output_padding: Sequence[int],
                         groups: int, mask: Sequence[bool]) -> List[Optional[Value]]:
    rank = len(w.shape) - 2
    if rank > 3 or not is_float(x):
        raise Unsupported("a convolution of this rank or type")
    stride, padding, dilation = (_spatial(values, rank) for values in (stride, padding, dilation))
    of_x = of_w = of_bias = None
    if mask[0]:
        make = _gather_conv if transposed else _spread
        of_x = make(c, gradient, w, x.shape[2:], stride, padding, dilation, groups)
    if mask[1]:
        image, window = (gradient, x) if transposed else (x, gradient)
        of_w = _filter_gradient(c, image, window, w, stride, padding, dilation, groups)
    if mask[2]:
        of_bias = c.reduce("sum", gradient, [0, *range(2, 2 + rank)])
    return [of_x, of_w, of_bias]


def _scores(c: Context, q: Value, k: Value, mask: Optional[Value], causal: bool, scale: Optional[float]) -> Value:
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    product = c.dot(q, c.transpose(k, [0, 1, 3, 2]), 2, out="f32" if q.dtype in ("f16", "bf16") else None)
    scores = c.binary("mul", product, scale)
    if mask is not None:
        lowest = c.writer.constant(-math.inf, scores.dtype)
        scores = c.select(mask, scores, lowest) if mask.dtype == "bool" else c.binary("add", scores, c.cast(mask, scores.dtype))
    if causal:
        plane = scores.shape[-2:]
        keeps = c.compare("le", c.iota("i64", plane, 1), c.iota("i64", plane, 0))
        scores = c.select(keeps, scores, c.writer.constant(-math.inf, scores.dtype))
    return scores


def _attention(c: Context, q: Value, k: Value, v: Value, mask: Optional[Value], causal: bool, scale: Optional[float]) -> List[Value]:
    """The result, and log(sum(exp(scores))) of each row."""
    if len(q.shape) != 4:
        raise Unsupported(f"attention of rank {len(q.shape)}")
    k, v = (_for_each_head(c, one, q) for one in (k, v))
    scores = _scores(c, q, k, mask, causal, scale)
    largest = c.reduce("max", scores, [3], True)
    powers = c.unary("exp", c.binary("sub", scores, largest))
    total = c.reduce("sum", powers, [3], True)
    weights = c.cast(_of_seen_rows(c, scores, c.binary("div", powers, total), mask), v.dtype)
    logarithm = c.reshape(c.binary("add", c.unary("log", total), largest), scores.shape[:3])
    return [c.dot(weights, v, 2), logarithm]


def _of_seen_rows(c: Context, scores: Value, weights: Value, mask: Optional[Value]) -> Value:
    """Zero in rows of which the mask leaves nothing, where the exponentials are not numbers."""
    if mask is None:
        return weights
    seen = c.reduce("any", c.unary("not", c.compare("eq", scores, -math.inf)), [3], True)
    return c.select(c.unary("not", seen), c.writer.constant(0.0, weights.dtype), weights)


@lowers(ATTENTION)
def attention(c: Context, q: Value, k: Value, v: Value, mask: Optional[Value] = None, _dropout: float = 0, causal: bool = False, *,
              scale: Optional[float] = None, enable_gqa: bool = False) -> Value:
    del enable_gqa  # the numbers of heads say it
    if mask is not None and len(q.shape) != 4:
        mask = _as_one_batch(c, c.broadcast(mask, [*q.shape[:-3], *([1] * 3 + list(mask.shape))[-3:]]))
    batches = [_as_one_batch(c, one) for one in (q, k, v)]
    return c.reshape(_attention(c, *batches, mask, causal, scale)[0], c.shape)


def _as_one_batch(c: Context, x: Value) -> Value:
    """All dimensions in front of the heads as one."""
    return c.reshape(x, [math.prod(x.shape[:-3]), *x.shape[-3:]])


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention_on_cpu(c: Context, q: Value, k: Value, v: Value, dropout: float = 0, causal: bool = False, *,
                     attn_mask: Optional[Value] = None, scale: Optional[float] = None) -> List[Value]:
    if dropout:
        raise Unsupported("dropout in attention")
    return _attention(c, q, k, v, attn_mask, causal, scale)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def attention_on_cpu_backward(c: Context, gradient: Value, q: Value, k: Value, v: Value, out: Value, logsumexp: Value,
                              dropout: float, causal: bool, *, attn_mask: Optional[Value] = None,
                              scale: Optional[float] = None) -> List[Value]:
    if dropout:
        raise Unsupported("dropout in attention")
    shared_k, shared_v = k, v
    k, v = (_for_each_head(c, one, q) for one in (k, v))
    scores = _scores(c, q, k, attn_mask, causal, scale)
    wide = scores.dtype
    weights = c.unary("exp", c.binary("sub", scores, c.reshape(c.cast(logsumexp, wide), [*logsumexp.shape, 1])))
    weights = _of_seen_rows(c, scores, weights, attn_mask)
    narrow = c.cast(weights, v.dtype)
    of_v = c.dot(c.transpose(narrow, [0, 1, 3, 2]), gradient, 2)
    of_weights = c.cast(c.dot(gradient, c.transpose(v, [0, 1, 3, 2]), 2), wide)
    rest = c.reduce("sum", c.binary("mul", c.cast(gradient, wide), c.cast(out, wide)), [3], True)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    of_scores = c.binary("mul", c.binary("mul", weights, c.binary("sub", of_weights, rest)), factor)
    of_scores = c.cast(of_scores, q.dtype)
    of_k = c.dot(c.transpose(of_scores, [0, 1, 3, 2]), q, 2)
    return [c.dot(of_scores, k, 2), _summed_to(c, of_k, shared_k), _summed_to(c, of_v, shared_v)]


def _for_each_head(c: Context, x: Value, q: Value) -> Value:
    """Keys or values again for each of the heads of `q` that share them."""
    batch, heads, *rest = x.shape
    if heads == q.shape[1]:
        return x
    repeated = c.broadcast(x, [batch, heads, q.shape[1] // heads, *rest], [0, 1, 3, 4])
    return c.reshape(repeated, [batch, q.shape[1], *rest])


def _summed_to(c: Context, x: Value, shared: Value) -> Value:
    """Gradients of what heads share are sums over these heads."""
    batch, heads, *rest = shared.shape
    if heads == x.shape[1]:
        return x
    return c.reduce("sum", c.reshape(x, [batch, heads, x.shape[1] // heads, *rest]), [2])


def _on_gpu(c: Context, q: Value, k: Value, v: Value, mask: Optional[Value], causal: bool, dropout: float,
            scale: Optional[float]) -> List[Optional[Value]]:
    if dropout:
        raise Unsupported("dropout in attention")
    if c.used - {0}:
        raise Unsupported("attention that keeps something for its gradient")
    return [_attention(c, q, k, v, mask, causal, scale)[0], *[None] * (len(c.results) - 1)]


@lowers(aten._scaled_dot_product_flash_attention.default)
def flash_attention(c: Context, q: Value, k: Value, v: Value, dropout: float = 0, causal: bool = False, _mask: bool = False, *,
                    scale: Optional[float] = None) -> List[Optional[Value]]:
    return _on_gpu(c, q, k, v, None, causal, dropout, scale)


@lowers(aten._scaled_dot_product_efficient_attention.default, aten._scaled_dot_product_cudnn_attention.default)
def efficient_attention(c: Context, q: Value, k: Value, v: Value, bias: Optional[Value], _logsumexp: bool, dropout: float = 0,
                        causal: bool = False, *_: Any, scale: Optional[float] = None) -> List[Optional[Value]]:
    return _on_gpu(c, q, k, v, bias, causal, dropout, scale)
