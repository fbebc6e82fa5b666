"""Cross-entropies of linear layers in graphs of Dynamo's, as heddle.torch.linear_cross_entropy where the logits are large."""
import operator
from typing import Any, Callable, List, Optional, Tuple

import torch
from torch.fx import GraphModule, Node
from torch.nn import functional as F
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

import heddle.torch

LARGE = 64 << 20  # bytes of logits
_CHUNKS, _LEAST = 4, 128 << 20  # into which they are divided; bytes that are no fewer than these
_MODES = {torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast, torch._C._set_grad_enabled}
_CASTS = ("float", "contiguous", "to")
_RESHAPES = ("view", "reshape", "flatten")
_PARAMETERS = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")


def divide_large_logits(module: GraphModule) -> None:
    """Replaces cross_entropy(linear(x, weight, bias)...) if nothing else reads the logits."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is F.cross_entropy:
            _replace(node)
    module.recompile()


def _replace(node: Node) -> None:
    words = dict(zip(_PARAMETERS, node.args), **node.kwargs)
    logits, target, result = (_example(one) for one in (words["input"], words["target"], node))
    if logits is None or target is None or result is None or any(words.get(name) is not None for name in ("weight", "size_average", "reduce")):
        return
    if logits.dim() != 2 or target.dim() != 1 or target.is_floating_point():
        return
    source, steps = _source(words["input"])
    made = _example(source) if source is not None else None
    if source is None or made is None or not _is_large(made) or _changes_mode(source, node):
        return
    names = dict(zip(("input", "weight", "bias"), source.args), **source.kwargs)
    if any(is_traceable_wrapper_subclass(_example(one)) for one in names.values()):  # a DTensor, say
        return
    graph = node.graph
    with graph.inserting_before(node):
        rows = names["input"]
        for step in steps:
            rows = step(graph, rows)
        loss = graph.call_function(heddle.torch.linear_cross_entropy, (rows, names["weight"], words["target"], names.get("bias")), {
            **{name: words[name] for name in ("ignore_index", "reduction", "label_smoothing") if name in words},
            "memory_budget": max(made.numel() * made.element_size() // _CHUNKS, _LEAST)})
        loss = graph.call_method("to", (loss, result.dtype))
    for one in (rows, loss):
        one.meta.setdefault("stack_trace", node.meta.get("stack_trace"))
    loss.meta.update(node.meta)
    node.replace_all_uses_with(loss)
    graph.erase_node(node)
    _erase(words["input"], source)


def _example(node: Any) -> Optional[torch.Tensor]:
    value = node.meta.get("example_value") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _is_large(logits: torch.Tensor) -> bool:
    return all(isinstance(extent, int) for extent in logits.shape) and logits.numel() * logits.element_size() >= LARGE


def _source(node: Node) -> Tuple[Optional[Node], List[Callable[..., Node]]]:
    """The linear layer whose result is this but for its type and its rows, and what makes such rows of the layer's input."""
    steps: List[Callable[..., Node]] = []
    while True:
        made = _example(node)
        if made is None or len(node.users) != 1:
            return None, []
        if node.op == "call_function" and node.target is F.linear:
            return node, steps[::-1]
        before = node.args[0] if node.args else None
        operand = _example(before)
        if operand is None or operand.dim() == 0 or made.shape[-1] != operand.shape[-1]:
            return None, []
        if node.op == "call_method" and node.target in _RESHAPES:
            steps.append(_reshaped(list(made.shape[:-1])))
        elif node.op == "call_function" and node.target is operator.getitem and _keeps_columns(node.args[1], operand.dim()):
            steps.append(_selected(node.args[1]))
        elif not (node.op == "call_method" and node.target in _CASTS and made.shape == operand.shape and made.dtype == torch.float32
                  or node.target == "contiguous"):
            return None, []
        node = before  # type: ignore[assignment]


def _reshaped(rows: List[int]) -> Callable[..., Node]:
    return lambda graph, x: graph.call_method("reshape", (x, [*rows, -1]))


def _selected(index: Any) -> Callable[..., Node]:
    return lambda graph, x: graph.call_function(operator.getitem, (x, index))


def _keeps_columns(index: Any, rank: int) -> bool:
    listed = index if isinstance(index, tuple) else (index,)
    if not all(one is Ellipsis or isinstance(one, slice) for one in listed):
        return False
    return listed[-1] == slice(None) or (Ellipsis not in listed and len(listed) < rank)


def _changes_mode(first: Node, last: Node) -> bool:
    node = first
    while node is not last:
        if node.target in _MODES:
            return True
        node = node.next
    return False


def _erase(node: Node, source: Node) -> None:
    while not node.users:
        before = node.args[0]
        node.graph.erase_node(node)
        if node is source:
            return
        node = before  # type: ignore[assignment]
