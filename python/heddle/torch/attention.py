"""Attention as one operator in graphs without gradients.

PyTorch takes scaled_dot_product_attention apart where its own kernels refuse the mask, and then computes in f32. The kernels
of Heddle take every mask, so such a graph keeps the operator, with operands and result of one type.
"""
from typing import Any, Optional, Sequence

import torch
from torch.fx import Graph, GraphModule, Node
from torch.nn import functional as F

_library = torch.library.Library("heddle", "FRAGMENT")
_library.define("attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
                "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
ATTENTION = torch.ops.heddle.attention.default
# Calls within a graph that change modes. The operator does not depend on the mode, so such graphs do not get it.
_MODES = (torch.amp.autocast_mode._enter_autocast, torch._C._set_grad_enabled)


def _attention(query: torch.Tensor, *arguments: Any, **words: Any) -> torch.Tensor:
    result = F.scaled_dot_product_attention(query, *arguments, **words)
    return result.transpose(-3, -2).contiguous().transpose(-3, -2) if query.dim() <= 4 else result.contiguous()


def _fake(query: torch.Tensor, _key: torch.Tensor, value: torch.Tensor, *_: Any, **_words: Any) -> torch.Tensor:
    *batch, heads, length, _depth = query.shape
    if len(batch) > 1:
        return query.new_empty(*batch, heads, length, value.shape[-1])
    return query.new_empty(*batch, length, heads, value.shape[-1]).transpose(-3, -2)


_library.impl("attention", _attention, "CompositeExplicitAutograd")
torch.library.register_fake("heddle::attention", _fake, lib=_library)


def trains(inputs: Sequence[Any]) -> bool:
    """Whether a graph of Dynamo's has gradients."""
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)


def keep_attention_whole(module: GraphModule, inputs: Sequence[Any]) -> None:
    """Puts the operator into a graph of Dynamo's. A graph that has gradients, casts, or changes modes stays as it is."""
    graph: Graph = module.graph
    casts = any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda"))
    if trains(inputs) or casts or any(node.target in _MODES for node in graph.nodes):
        return
    for node in graph.nodes:
        if node.op == "call_function" and node.target is F.scaled_dot_product_attention and _is_plain(node):
            node.target = ATTENTION
    module.recompile()


def _is_plain(node: Node) -> bool:
    """Whether it has no dropout, heads, one type, and one batch."""
    values = dict(zip(("query", "key", "value", "attn_mask", "dropout_p"), node.args), **node.kwargs)
    if values.get("dropout_p", 0.0) != 0.0:
        return False
    q, k, v = (_example(values[name]) for name in ("query", "key", "value"))
    if q is None or k is None or v is None or not q.dim() == k.dim() == v.dim() >= 3:
        return False
    if k.shape[-3] != v.shape[-3] or (k.shape[-3] != q.shape[-3] and not values.get("enable_gqa")):
        return False
    return bool(q.dtype == k.dtype == v.dtype and q.shape[:-3] == k.shape[:-3] == v.shape[:-3])


def _example(argument: Any) -> Optional[torch.Tensor]:
    return argument.meta.get("example_value") if isinstance(argument, Node) else None
