"""Divides a graph of ATen operators into parts that are compiled, and operators between them that PyTorch runs.

The work is linear in the nodes. A node belongs to the earliest part that comes behind everything it reads, so there are as
many parts as operators of PyTorch follow each other, plus one. A tensor that is computed from almost no
data, such as the mask of dropout, belongs to the first part that reads it, so that it takes no memory before.
"""
import operator
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

import torch
from torch.fx import Graph, Node

from heddle.torch.random import SEEDS


_OWN = ("heddle::linear_cross_entropy", "heddle::lstm", "heddle::gru")
_LITTLE = 16  # elements of a result for each element that is read


class Part(NamedTuple):
    """Nodes that become one compiled model. `inputs` come from elsewhere, `outputs` are read elsewhere."""

    nodes: List[Node]
    inputs: List[Node]
    outputs: List[Node]


class Fallback(NamedTuple):
    """A node that PyTorch runs, and the reason. The reason is "" for views, items and seeds, which compute nothing of the graph's, and for
    operators that launch kernels of Heddle."""

    node: Node
    reason: str


class Division(NamedTuple):
    steps: List[Any]  # Part or Fallback, in the order in which they run
    views: List[Node]  # of inputs, that are outputs of the graph: made by PyTorch at the end
    writes: List[Node]  # copies into inputs of the graph, which come last
    fallbacks: List[Fallback]


def is_tensor(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (tuple, list)) and any(isinstance(one, torch.Tensor) for one in value))


def is_item(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def is_write(node: Node) -> bool:
    return node.target is torch.ops.aten.copy_.default


def is_view(node: Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    returns = target._schema.returns
    return len(returns) == 1 and returns[0].alias_info is not None and not returns[0].alias_info.is_write


def _views_of_inputs(graph: Graph, outputs: Set[Node]) -> List[Node]:
    """Outputs that are views of inputs, and the views between, in the order of the graph."""
    of_inputs = {node for node in graph.nodes if node.op == "placeholder"}
    views = []
    for node in graph.nodes:
        if node.op == "call_function" and is_view(node) and node.args and node.args[0] in of_inputs:
            of_inputs.add(node)
            views.append(node)
    needed: Set[Node] = set()
    for node in reversed(views):
        if node in outputs or any(user in needed for user in node.users):
            needed.add(node)
    return [node for node in views if node in needed]


def _is_random(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _put_before_readers(inside: List[Node], level: Dict[Node, int]) -> None:
    """Moves nodes whose results are much larger than what they read to the level of their first reader."""
    generated: Set[Node] = set()
    for node in inside:
        made = _elements(node)
        if made and all(one in generated or _elements(one) * _LITTLE <= made for one in node.all_input_nodes if is_tensor(one)):
            generated.add(node)
    for node in reversed(inside):
        readers = [level[user] for user in node.users if user.op == "call_function" and user in level]
        if node in generated and readers:
            level[node] = max(level[node], min(readers))


def _elements(node: Node) -> int:
    """Of one tensor of known shape; 0: it is none."""
    value = node.meta.get("val")
    count = value.numel() if isinstance(value, torch.Tensor) else 0
    return count if isinstance(count, int) else 0


def is_own(node: Node) -> bool:
    """Whether it launches kernels of Heddle itself (loss.py, recurrent/operators.py)."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name().startswith(_OWN)


def divide(graph: Graph, why_not: Callable[[Node], str], is_known: Callable[[Node], bool]) -> Division:
    """Divides a graph. `why_not` gives the reason why a node cannot be compiled, "" if it can. `is_known` says whether the
    shapes of the arguments decide a number of the graph."""
    outputs = {node for node in graph.output_node().all_input_nodes}
    views = _views_of_inputs(graph, outputs)
    level: Dict[Node, int] = {}
    inside: List[Node] = []
    others: Dict[int, List[Fallback]] = {}
    outside: Set[Node] = set()  # what PyTorch computes
    writes, fallbacks, last_random = [], [], 0
    for node in graph.nodes:
        if node.op != "call_function" or (not is_tensor(node) and is_known(node)):
            level[node] = 0
            continue
        if is_write(node):
            writes.append(node)
            continue
        source = node.args[0]
        if is_item(node) and source in outside:
            level[node] = level[source]  # type: ignore[index]
            outside.add(node)
            others[level[node]].append(Fallback(node, ""))
            continue
        behind = [level[one] + (one in outside) for one in node.all_input_nodes]
        reason = "" if is_item(node) else why_not(node) if is_tensor(node) else "its value depends on data"
        if not reason:
            level[node] = max(behind, default=0)
            inside.append(node)
            continue
        level[node] = max((level[one] for one in node.all_input_nodes), default=0)
        if _is_random(node):  # in the order of the program, so that a seed gives the numbers that it gives PyTorch
            level[node] = last_random = max(level[node], last_random)
        outside.add(node)
        if is_own(node):
            others.setdefault(level[node], []).append(Fallback(node, ""))
            continue
        if node.target is SEEDS:  # before the first part, which reads them
            level[node] = -1
            others.setdefault(-1, []).append(Fallback(node, ""))
            continue
        fallbacks.append(Fallback(node, reason))
        others.setdefault(level[node], []).append(fallbacks[-1])
    _put_before_readers(inside, level)
    parts: Dict[int, List[Node]] = {}
    for node in inside:
        parts.setdefault(level[node], []).append(node)
    steps: List[Any] = []
    wanted_at_end = outputs - set(views) | {one for node in writes for one in node.all_input_nodes}
    for now in range(-1, max([*parts, *others, 0]) + 1):
        nodes = parts.get(now, [])
        if nodes and all(is_view(node) for node in nodes):  # nothing to compute
            steps += [Fallback(node, "") for node in nodes]
        elif nodes:
            steps.append(_part(nodes, wanted_at_end))
        steps += others.get(now, [])
    return Division(steps, views, writes, fallbacks)


def _part(nodes: List[Node], wanted_at_end: Set[Node]) -> Part:
    inside = set(nodes)
    inputs: Dict[Node, None] = {}
    for node in nodes:
        for one in node.all_input_nodes:
            if one not in inside and is_tensor(one):
                inputs[one] = None
    outputs = [node for node in nodes if isinstance(node.meta["val"], torch.Tensor)
               and (node in wanted_at_end or any(_reads_outside(user, inside) for user in node.users))]
    return Part(nodes, list(inputs), outputs)


def _reads_outside(user: Node, inside: Set[Node]) -> bool:
    return user not in inside and user.op == "call_function" and not is_write(user)


def used_results(node: Node) -> Tuple[int, ...]:
    """Positions of the results that somebody reads."""
    if isinstance(node.meta["val"], torch.Tensor):
        return (0,)
    return tuple(user.args[1] for user in node.users if is_item(user))  # type: ignore[misc]
