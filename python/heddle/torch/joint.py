"""Divides the joint graph of a training step into its forward and its backward graph: what is saved, and what is computed again."""
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils.checkpoint import CheckpointPolicy

from heddle._options import refuse
from heddle.torch.graph import device_of, division_of
from heddle.torch.memory import estimated_peak
from heddle.torch.partition import is_view
from heddle.torch.pools import keep_places
from heddle.torch.random import NORMAL, UNIFORM, seed_random_operators
from heddle.torch.shapes import Bindings

_SHARES = 16  # steps between computing everything again and nothing but what is cheap
_CASTS = (torch.ops.aten._to_copy.default, torch.ops.prims.convert_element_type.default)
_COPIES = (*_CASTS, torch.ops.aten.clone.default, torch.ops.aten._unsafe_view.default)
_SAME = (torch.ops.aten.alias.default, torch.ops.aten.detach.default)


def partitioned(joint: torch.fx.GraphModule, *arguments: Any, budget: Optional[int] = None, **words: Any) -> Any:
    """The forward and the backward graph of a joint one. `budget`: bytes that neither may need beside parameters and inputs.

    Elementwise operands of products are computed again: the gradients of those operators read the same saved values.
    """
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    seed_random_operators(joint.graph)
    _remove_aliases(joint.graph)
    keep_places(joint.graph)
    _recompute_random_numbers(joint.graph)
    joint.recompile()

    def divided(share: float) -> Any:
        """`share`: of what can be saved instead of being computed again."""
        # The partitioner puts another graph into the module.
        parameters = words.get("static_lifetime_input_indices") or ()
        _mark([*_casts_of_parameters(joint.graph, parameters), *_operands_of_attention(joint.graph)], share == 1)
        with torch._functorch.config.patch(activation_memory_budget=share, recompute_views=True, ban_recompute_materialized_backward=False):
            return min_cut_rematerialization_partition(joint, *arguments, **words)
    return divided(1.0) if budget is None else _within(budget, divided)


def _within(budget: int, divided: Callable[[float], Any]) -> Any:
    """The graphs that compute the least again."""
    found: Dict[int, Any] = {}

    def fits(share: int) -> bool:
        graphs = divided(share / _SHARES)
        found[share] = _peak(graphs), graphs
        return found[share][0] <= budget
    low, high = 0, _SHARES
    if fits(high):
        return found[high][1]
    if not fits(low):
        for share in (_SHARES // 4, _SHARES // 2):  # where everything is computed again much exists at a time
            if fits(share):
                low = share
                break
        else:
            least = min(peak for peak, _ in found.values())
            refuse("torch.compile: options: memory_budget", f"a training step needs {least} bytes beside parameters and inputs, the budget is {budget}",
                   f"Give at least {least}, or a smaller batch")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return found[low][1]


def _peak(graphs: Any) -> int:
    peaks = []
    for kind, module in zip(("forward", "backward"), graphs):
        graph: Graph = module.graph
        symbols = Bindings([node for node in graph.nodes if node.op == "placeholder"]).examples
        peaks.append(estimated_peak(graph, kind, division_of(graph, kind, symbols, device_of(graph)), symbols))
    return max(peaks)


def _remove_aliases(graph: Graph) -> None:
    """Of values that both an operator of the backward graph and others read: each would be saved beside its source."""
    for node in list(graph.nodes):
        if node.target in _SAME and node.args[0].op != "placeholder":
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)


def _mark(nodes: Sequence[Node], are_saved: bool) -> None:
    for node in nodes:
        if are_saved:
            node.meta.setdefault("recompute", CheckpointPolicy.MUST_SAVE)
        elif node.meta.get("recompute") == CheckpointPolicy.MUST_SAVE:
            del node.meta["recompute"]


def _casts_of_parameters(graph: Graph, parameters: Sequence[int]) -> List[Node]:
    """Saved where a budget allows it: a backward graph reads the parameter, which is wider, for nothing but its cast."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    return [user for i in parameters for user in placeholders[i].users if user.target in _CASTS]


def _operands_of_attention(graph: Graph) -> List[Node]:
    """Queries, keys and values. The operator needs them in memory anyway, and its gradient reads nothing else that they are computed
    from. Operands that repeat fewer elements are computed again."""
    found = []
    for node in graph.nodes:
        name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else ""
        if name.startswith("aten::_scaled_dot_product") and "backward" not in name:
            found += [_value_of(one) for one in node.args[:3] if not _repeats(one)]
    return [node for node in found if node.op == "call_function"]


def _value_of(node: Node) -> Node:
    while node.op == "call_function" and is_view(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _repeats(node: Node) -> bool:
    count = node.meta["val"].numel()
    while node.op == "call_function" and (is_view(node) or node.target in _COPIES):
        node = node.args[0]  # type: ignore[assignment]
        if statically_known_true(node.meta["val"].numel() < count):  # without a guard on extents
            return True
    return False


def _recompute_random_numbers(graph: Graph) -> None:
    """The seeds of a graph are some bytes, the masks of its dropouts are as many as its activations."""
    for node in graph.nodes:
        if node.target in (UNIFORM, NORMAL):
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
