"""Max pooling that keeps for its gradient where in each window the maximum is: a byte, where PyTorch keeps its position of 8 bytes.

Nor does the gradient read the operand, of which PyTorch's wants the shape.
"""
import math
import operator
from typing import Any, List, Sequence, Tuple

import torch
from torch.fx import Graph

from heddle.torch.partition import is_item
from heddle.torch.rewriting import emit, replace

aten = torch.ops.aten
MOST_PLACES = 64  # of a window whose maximum is found place by place
MOST_WINDOWS = 25  # over an element; beyond it gradients are scattered

_library = torch.library.Library("heddle", "FRAGMENT")
_WINDOW = "int[] kernel, int[] stride, int[] padding, int[] dilation"
_library.define(f"max_pool(Tensor x, {_WINDOW}, bool ceil_mode) -> (Tensor, Tensor)")
_library.define(f"max_pool_backward(Tensor gradient, Tensor places, int[] extents, {_WINDOW}) -> Tensor")
MAX_POOL, MAX_POOL_BACKWARD = torch.ops.heddle.max_pool.default, torch.ops.heddle.max_pool_backward.default
_GRADIENT = aten.max_pool2d_with_indices_backward.default


def _positions(like: torch.Tensor, extents: Sequence[int], shape: Sequence[int], *window: Sequence[int]) -> torch.Tensor:
    """[places, *shape]: where the places of windows are in a plane of `extents`. Those in the padding have no meaning."""
    rows, columns = (
        (torch.arange(k, device=like.device) * d)[:, None] + torch.arange(n, device=like.device) * s - p
        for n, k, s, p, d in zip(shape, *window))
    return (rows[:, None, :, None] * extents[1] + columns[None, :, None, :]).flatten(0, 1)


def _max_pool(x: torch.Tensor, *window: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    values, positions = aten.max_pool2d_with_indices(x, *window)
    known = _positions(x, x.shape[-2:], values.shape[-2:], *window[:4])
    return values, (positions.unsqueeze(-3) == known).to(torch.uint8).argmax(-3).to(torch.uint8)


def _max_pool_backward(gradient: torch.Tensor, places: torch.Tensor, extents: Sequence[int], *window: Any) -> torch.Tensor:
    known = _positions(gradient, extents, gradient.shape[-2:], *window)
    at = known.expand(*places.shape[:-2], *known.shape).gather(-3, places.long().unsqueeze(-3)).squeeze(-3)
    flat = gradient.new_zeros(*gradient.shape[:-2], math.prod(extents))
    return flat.scatter_add(-1, at.flatten(-2), gradient.flatten(-2)).unflatten(-1, extents)


def _fake(x: torch.Tensor, *window: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    values, positions = aten.max_pool2d_with_indices(x, *window)
    return values, torch.empty_like(positions, dtype=torch.uint8)


for _name, _function in (("max_pool", _max_pool), ("max_pool_backward", _max_pool_backward)):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
torch.library.register_fake("heddle::max_pool", _fake, lib=_library)
torch.library.register_fake("heddle::max_pool_backward", lambda gradient, _places, extents, *_: gradient.new_empty(
    *gradient.shape[:-2], *extents), lib=_library)


def keep_places(graph: Graph) -> None:
    """Replaces pools of planes whose positions nothing reads but their gradient."""
    for node in list(graph.nodes):
        if node.target is not aten.max_pool2d_with_indices.default:
            continue
        x, window = node.args[0], _window(*node.args[1:])
        positions = [user for user in node.users if is_item(user) and user.args[1] == 1]
        readers = [user for one in positions for user in one.users]
        extents = list(x.meta["val"].shape[-2:])
        if not readers or not all(one.target is _GRADIENT and one.args[-1] in positions for one in readers):
            continue
        if math.prod(window[0]) > MOST_PLACES or math.prod(windows_over_an_element(window[0], window[1], window[3])) > MOST_WINDOWS:
            continue
        if not all(isinstance(extent, int) for extent in extents):
            continue
        pool = emit(node, MAX_POOL, (x, *window), {})
        values, places = (emit(node, operator.getitem, (pool, i), {}) for i in range(2))
        for one in readers:
            replace(one, emit(one, MAX_POOL_BACKWARD, (one.args[0], places, extents, *window[:4]), {}))
        replace(node, (values, places))
        places.meta["val"] = pool.meta["val"][1]


def _window(kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,),
            ceil_mode: bool = False) -> Tuple[Any, ...]:
    """Each of two numbers."""
    pairs = [[*one] * 2 if len(one) == 1 else [*one] for one in (kernel, stride or kernel, padding, dilation)]
    return (*pairs, ceil_mode)


def windows_over_an_element(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> List[int]:
    """The largest number of them along each dimension."""
    return [-(-((k - 1) * d + 1) // s) for k, s, d in zip(kernel, stride, dilation)]
