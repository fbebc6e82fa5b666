"""Concrete numbers of symbolic ones, and layouts of tensors."""
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

import sympy
import torch
from torch.fx import Node

from heddle._hir import Unsupported

Environment = Dict[Any, int]  # by sympy symbol


def concrete(value: Any, symbols: Environment) -> Any:
    """The number that an int, a SymInt or another number is where the symbols have these values."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    expression = value.node.expr
    if expression.free_symbols:
        expression = expression.xreplace(symbols)
        if expression.free_symbols:
            raise Unsupported(f"an extent that depends on data ({expression})")
    if isinstance(value, torch.SymInt):
        return int(expression)
    return bool(expression) if isinstance(value, torch.SymBool) else float(expression)


def bytes_of(node: Node, symbols: Environment) -> int:
    """Of its tensors as dense ones. Those whose extents depend on data count as none."""
    tensors = [one for one in torch.utils._pytree.tree_leaves(node.meta.get("val"))
               if isinstance(one, torch.Tensor) and all(is_known(extent, symbols) for extent in one.shape)]
    return sum(math.prod(concrete(extent, symbols) for extent in one.shape) * one.element_size() for one in tensors)


def is_known(value: Any, symbols: Environment) -> bool:
    """Whether concrete() can tell the number."""
    return not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) or value.node.expr.free_symbols <= set(symbols)


class Bindings:
    """Where the arguments of a graph tell the values of its symbols."""

    def __init__(self, placeholders: Sequence[Node]):
        self._places: List[Tuple[Any, int, Optional[int]]] = []
        self.examples: Environment = {}  # the values that the symbols had when the graph was traced
        for position, node in enumerate(placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                candidates = [(None, value)]
            elif isinstance(value, torch.Tensor):
                candidates = [(d, extent) for d, extent in enumerate(value.shape) if isinstance(extent, torch.SymInt)]
            else:
                continue
            for dim, extent in candidates:
                symbol = extent.node.expr
                if symbol.is_Symbol and symbol not in self.examples:
                    self.examples[symbol] = sympy.Integer(extent.node.hint)
                    self._places.append((symbol, position, dim))

    def __len__(self) -> int:
        return len(self._places)

    def key(self, arguments: Sequence[Any]) -> Tuple[int, ...]:
        return tuple(int(arguments[at] if dim is None else arguments[at].shape[dim]) for _, at, dim in self._places)

    def symbols(self, key: Sequence[int]) -> Environment:
        return {symbol: sympy.Integer(value) for (symbol, _, _), value in zip(self._places, key)}


def memory_order(strides: Sequence[int], shape: Sequence[int]) -> List[int]:
    """The dimensions from the outermost to the innermost in memory; those of one element stay behind their predecessor."""
    order = list(range(len(shape)))
    moving = [d for d in order if shape[d] != 1]
    if all(strides[a] >= strides[b] for a, b in zip(moving, moving[1:])):
        return order
    return sorted(order, key=lambda d: -strides[d])


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> Tuple[int, ...]:
    """Of memory without gaps, with the dimensions in this order from the outermost to the innermost."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def is_dense(strides: Sequence[int], shape: Sequence[int]) -> bool:
    step = 1
    for d in reversed(memory_order(strides, shape)):
        if shape[d] != 1:
            if strides[d] != step:
                return False
            step *= shape[d]
    return True


def inverse(perm: Sequence[int]) -> List[int]:
    back = [0] * len(perm)
    for i, d in enumerate(perm):
        back[d] = i
    return back


def restrided(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The same values with these strides, of which those of repeated elements are 0."""
    shape = tensor.shape
    if all(have == want or extent == 1 for have, want, extent in zip(tensor.stride(), strides, shape)):
        return tensor
    once = tensor
    for d, stride in enumerate(strides):
        if stride == 0 and shape[d] > 1:
            once = once.narrow(d, 0, 1)
    made = torch.empty_strided(once.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(once).expand(shape)
