"""Pools and their gradients."""
import itertools
import math
from typing import Any, Callable, List, Optional, Sequence

import torch

from heddle._hir import Value
from heddle.torch.lowering.context import Context, Unsupported, any_order, count, is_float, lowers, overload_of, wide
from heddle.torch.lowering.views import constant_pad, with_zeros
from heddle.torch.pools import MAX_POOL, MAX_POOL_BACKWARD, MOST_PLACES, MOST_WINDOWS, windows_over_an_element
from heddle.torch.shapes import inverse

aten = torch.ops.aten
_OUTSIDE = 255  # the place of padding, which is none of a window


def _windows(kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], x: Value,
             shape: Sequence[int]) -> dict:
    """Attributes of window_reduce. What a rounded up extent needs more of padding is behind."""
    rank = len(x.shape)
    lead = rank - len(kernel)

    def spatial(values: Sequence[int], default: int) -> List[int]:
        listed = list(values) * len(kernel) if len(values) == 1 else list(values)
        return [default] * lead + listed
    window, strides = spatial(kernel, 1), spatial(stride or kernel, 1)
    low, dilations = spatial(padding, 0), spatial(dilation, 1)
    high = [max(0, (shape[d] - 1) * strides[d] + (window[d] - 1) * dilations[d] + 1 - x.shape[d] - low[d]) for d in range(rank)]
    return {"window": window, "strides": strides, "low": low, "high": high, "dilations": dilations}


def _kernel(c: Context, kernel: Sequence[int]) -> List[int]:
    rank = len(kernel) if len(kernel) > 1 else (3 if len(c.shape) == 5 else 2)
    return list(kernel) * rank if len(kernel) == 1 else list(kernel)


@lowers(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(c: Context, x: Value, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
             dilation: Sequence[int] = (1,), ceil_mode: bool = False) -> List[Optional[Value]]:
    windows = _windows(_kernel(c, kernel), stride, padding, dilation, x, c.shape)
    if 1 not in c.used:
        return [c.emit("window_reduce", [x], x.dtype, c.shape, kind="max", **windows), None]
    if math.prod(windows["window"]) > MOST_PLACES:
        raise Unsupported(f"the positions of maxima in windows of more than {MOST_PLACES} places")
    return _max_and_positions(c, x, windows, len(_kernel(c, kernel)))


def _max_and_positions(c: Context, x: Value, windows: dict, rank: int, as_places: bool = False) -> List[Optional[Value]]:
    """Compares the places of a window one by one: x shifted and with strides, beside its positions in a plane, or beside the
    number of the place in its window."""
    dtype, outside = ("u8", _OUTSIDE) if as_places else ("i64", -1)
    flat = c.writer.constant(0, dtype, x.shape) if as_places else _flat_positions(c, x.shape, rank)
    if any(windows["low"]) or any(windows["high"]):
        if not is_float(x):
            raise Unsupported("the positions of maxima of integers in padded windows")
        shape = [low + n + high for low, n, high in zip(windows["low"], x.shape, windows["high"])]
        amounts = {"mode": "constant", "low": windows["low"], "high": windows["high"]}
        x = c.emit("pad", [x, c.writer.constant(-math.inf, x.dtype)], x.dtype, shape, **amounts)
        flat = c.emit("pad", [flat, c.writer.constant(outside, dtype)], dtype, shape, **amounts)
    best = where = None
    for number, offsets in enumerate(itertools.product(*[range(extent) for extent in windows["window"]])):
        value, position = x, flat
        for d, offset in enumerate(offsets):
            start = offset * windows["dilations"][d]
            limit = start + (c.shape[d] - 1) * windows["strides"][d] + 1
            value = c.slice(value, d, start, limit, windows["strides"][d])
            position = c.slice(position, d, start, limit, windows["strides"][d])
        if as_places:
            position = c.binary("max", position, number)
        if best is None or where is None:
            best, where = value, position
            continue
        # The last NaN wins, else the first of the largest. Padding gives way to everything.
        is_more = c.binary("or", c.compare("gt", value, best), c.compare("ne", value, value))
        gives_way = c.binary("and", c.compare("eq", where, outside), c.compare("ne", position, outside))
        is_more = c.binary("or", is_more, gives_way)
        best, where = c.select(is_more, value, best), c.select(is_more, position, where)
    return [best, where]


@lowers(MAX_POOL)
def max_pool_with_places(c: Context, x: Value, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                         dilation: Sequence[int], _ceil_mode: bool) -> List[Optional[Value]]:
    windows = _windows(kernel, stride, padding, dilation, x, c.shape)
    return _max_and_positions(c, x, windows, len(kernel), as_places=True)


@lowers(MAX_POOL_BACKWARD)
def max_pool_backward_by_places(c: Context, gradient: Value, places: Value, _extents: Sequence[int], kernel: Sequence[int],
                                stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Value:
    x = Value("", gradient.dtype, c.shape)
    windows = _windows(kernel, stride, padding, dilation, x, gradient.shape)
    around = windows_over_an_element(windows["window"], windows["strides"], windows["dilations"])
    return _gathered_gradient(c, gradient, windows, around, places, lambda steps: _place_in_window(c, windows, around, steps), _OUTSIDE)


def _place_in_window(c: Context, windows: dict, around: Sequence[int], steps: Sequence[int]) -> Value:
    """The place of each element in that window over it which `steps` tell; of those that it is not in, none."""
    total = c.writer.constant(0, "u8", c.shape)
    for d, extent in enumerate(c.shape):
        if windows["window"][d] == 1 and windows["strides"][d] == 1:
            continue
        inner = math.prod(windows["window"][d + 1:])
        numbers = []
        for i in range(extent):
            behind = (i + windows["low"][d]) % windows["strides"][d] + (around[d] - 1 - steps[d]) * windows["strides"][d]
            place, rest = divmod(behind, windows["dilations"][d])
            numbers.append(place * inner if rest == 0 and place < windows["window"][d] else MOST_PLACES)
        total = c.binary("add", total, c.broadcast(c.writer.numbers(numbers, "u8", [extent]), c.shape, [d]))
    return total


@lowers(aten.max_pool2d_with_indices_backward.default, overload_of(aten, "max_pool3d_with_indices_backward"))
def max_pool_backward(c: Context, gradient: Value, x: Value, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                      dilation: Sequence[int], ceil_mode: bool, positions: Value) -> Value:
    kernel = _kernel(c, kernel)
    windows = _windows(kernel, stride, padding, dilation, x, gradient.shape)
    around = windows_over_an_element(windows["window"], windows["strides"], windows["dilations"])
    if math.prod(around) <= MOST_WINDOWS:
        own = _flat_positions(c, x.shape, len(kernel))
        return _gathered_gradient(c, gradient, windows, around, positions, lambda _: own, -1)
    lead = list(x.shape[:-len(kernel)])
    plane, taken = math.prod(x.shape[-len(kernel):]), math.prod(gradient.shape[-len(kernel):])
    zeros = c.writer.constant(0, wide(x.dtype), [*lead, plane])
    at, updates = c.reshape(positions, [*lead, taken]), c.reshape(c.cast(gradient, zeros.dtype), [*lead, taken])
    made = c.emit("scatter_elements", [zeros, at, updates], zeros.dtype, zeros.shape, dim=len(lead), reduction="add", **any_order())
    return c.reshape(c.cast(made, x.dtype), x.shape)


def _flat_positions(c: Context, shape: Sequence[int], rank: int) -> Value:
    flat, step = c.writer.constant(0, "i64", shape), 1
    for d in reversed(range(len(shape) - rank, len(shape))):
        flat = c.binary("add", flat, c.binary("mul", c.iota("i64", shape, d), step))
        step *= shape[d]
    return flat


def _gathered_gradient(c: Context, gradient: Value, windows: dict, around: Sequence[int], marks: Value,
                       own_of: Callable[[Sequence[int]], Value], outside: int) -> Value:
    """Each element sums the gradients of those windows over it whose mark is its own in that window. This needs no scatter."""
    total = c.writer.constant(0, wide(c.dtype), c.shape)
    values = _repeated(c, c.cast(gradient, wide(c.dtype)), windows, around, c.shape, 0)
    taken = _repeated(c, marks, windows, around, c.shape, outside)
    for steps in itertools.product(*[range(number) for number in around]):
        value, mark = values, taken
        for d, step in enumerate(steps):
            first = windows["low"][d] + step * windows["strides"][d]
            value = c.slice(value, d, first, first + c.shape[d])
            mark = c.slice(mark, d, first, first + c.shape[d])
        is_own = c.compare("eq", mark, own_of(steps))
        total = c.binary("add", total, c.select(is_own, value, c.writer.constant(0, value.dtype, c.shape)))
    return c.cast(total, c.dtype)


def _repeated(c: Context, x: Value, windows: dict, around: Sequence[int], extents: Sequence[int], outside: int) -> Value:
    """The value of each window, repeated `stride` times along each dimension and padded to all windows over an element."""
    low = [number - 1 for number in around]
    last = [(extent - 1 + padding) // stride for extent, padding, stride in zip(extents, windows["low"], windows["strides"])]
    high = [max(0, at + 1 - extent) for at, extent in zip(last, x.shape)]
    padded = [sum(parts) for parts in zip(low, x.shape, high)]
    if padded != list(x.shape):
        x = c.emit("pad", [x, c.writer.constant(outside, x.dtype)], x.dtype, padded, mode="constant", low=low, high=high)
    apart = [extent for pair in zip(padded, windows["strides"]) for extent in pair]
    x = c.broadcast(c.reshape(x, [n for extent in padded for n in (extent, 1)]), apart)
    return c.reshape(x, [extent * stride for extent, stride in zip(padded, windows["strides"])])


def _shares(c: Context, x: Value, kernel: Sequence[int], windows: dict, shape: Sequence[int], with_padding: bool,
            divisor: Optional[int], dtype: str) -> Value:
    """1 / the number of elements of each window, over the spatial extents of the result."""
    if divisor:
        return c.writer.constant(1 / divisor, dtype)
    counts = _counts(x, kernel, windows, shape, with_padding)
    if len(set(counts)) == 1:
        return c.writer.constant(1 / counts[0], dtype)
    return c.writer.numbers([1 / number for number in counts], dtype, shape[len(shape) - len(kernel):])


@lowers(aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(c: Context, x: Value, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
             ceil_mode: bool = False, count_include_pad: bool = True, divisor: Optional[int] = None) -> Value:
    kernel, dtype = _kernel(c, kernel), wide(x.dtype)
    windows = _windows(kernel, stride, padding, [1], x, c.shape)
    total = c.emit("window_reduce", [c.cast(x, dtype)], dtype, c.shape, kind="sum", **windows)
    return c.cast(c.binary("mul", total, _shares(c, x, kernel, windows, c.shape, count_include_pad, divisor, dtype)), c.dtype)


@lowers(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(c: Context, gradient: Value, x: Value, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                      ceil_mode: bool, count_include_pad: bool, divisor: Optional[int]) -> Value:
    kernel, dtype = _kernel(c, kernel), wide(x.dtype)
    windows, rank = _windows(kernel, stride, padding, [1], x, gradient.shape), len(kernel)
    shares = _shares(c, x, kernel, windows, gradient.shape, count_include_pad, divisor, dtype)
    y = c.binary("mul", c.cast(gradient, dtype), shares)
    # Each element goes to its whole window: a sum over windows of the gradient with zeros between its elements.
    lead = len(x.shape) - rank
    for d in range(lead, len(x.shape)):
        y = with_zeros(c, y, d, windows["strides"][d])
    pads: List[int] = []
    for d in reversed(range(lead, len(x.shape))):
        places = kernel[d - lead]
        low = places - 1 - windows["low"][d]
        pads += [low, x.shape[d] + places - 1 - y.shape[d] - low]
    padded = [extent if d < lead else extent + kernel[d - lead] - 1 for d, extent in enumerate(x.shape)]
    y = constant_pad(Context(c.writer, [(dtype, tuple(padded))]), y, pads)
    ones = [1] * len(x.shape)
    zeros = [0] * len(x.shape)
    total = c.emit("window_reduce", [y], dtype, x.shape, kind="sum", window=[*[1] * lead, *kernel], strides=ones, low=zeros,
                   high=zeros, dilations=ones)
    return c.cast(total, c.dtype)


def _counts(x: Value, kernel: Sequence[int], windows: dict, shape: Sequence[int], with_padding: bool) -> List[int]:
    """Elements of each window, row by row."""
    rank = len(kernel)
    extents = []
    for d in range(len(shape) - rank, len(shape)):
        low, n = windows["low"][d], x.shape[d]
        spans = [(i * windows["strides"][d] - low, i * windows["strides"][d] - low + windows["window"][d]) for i in range(shape[d])]
        first, last = (-low, n + low) if with_padding else (0, n)
        extents.append([min(end, last) - max(start, first) for start, end in spans])
    counts = [1]
    for extent in extents:
        counts = [a * b for a in counts for b in extent]
    return counts


def _averages(n: int, size: int) -> List[float]:
    """[size, n]: what each of `size` means of n elements takes of them."""
    rows: List[float] = []
    for i in range(size):
        first, last = i * n // size, -(-(i + 1) * n // size)
        rows += [1 / (last - first) if first <= k < last else 0 for k in range(n)]
    return rows


def _averaged(c: Context, x: Value, dim: int, size: int, back: bool) -> Value:
    """Means of neighbours along a dimension, size of them; `back`: the gradient of such means of `size` elements."""
    n = x.shape[dim]
    if size % n == 0 and back:
        split = [*x.shape[:dim + 1], size // n, *x.shape[dim + 1:]]
        spread = c.broadcast(c.reshape(x, [*x.shape[:dim + 1], 1, *x.shape[dim + 1:]]), split)
        return c.binary("mul", c.reshape(spread, [size if d == dim else e for d, e in enumerate(x.shape)]), n / size)
    if n % size == 0 and not back:
        total = c.reduce("sum", c.reshape(x, [*x.shape[:dim], size, n // size, *x.shape[dim + 1:]]), [dim + 1])
        return c.binary("mul", total, size / n)
    shape = [n, size] if back else [size, n]
    weights = c.writer.numbers(_averages(size if back else n, n if back else size), x.dtype, shape)
    last = len(x.shape) - 1
    perm = [*[d for d in range(last + 1) if d != dim], dim]
    rows = c.reshape(c.transpose(x, perm), [count(x.shape) // n, n])
    made = c.dot(rows, weights if back else c.transpose(weights, [1, 0]))
    return c.transpose(c.reshape(made, [*[x.shape[d] for d in perm[:-1]], size]), inverse(perm))


@lowers(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default, aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool(c: Context, x: Value, size: Sequence[int]) -> Value:
    y = c.cast(x, wide(x.dtype))
    for i, extent in enumerate(size):
        y = _averaged(c, y, len(x.shape) - len(size) + i, extent, False)
    return c.cast(y, c.dtype)


@lowers(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool_backward(c: Context, gradient: Value, x: Value) -> Value:
    y = c.cast(gradient, wide(gradient.dtype))
    for d, extent in enumerate(x.shape):
        if y.shape[d] != extent:
            y = _averaged(c, y, d, extent, True)
    return c.cast(y, c.dtype)
