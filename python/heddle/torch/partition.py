"""Divides a graph of ATen operators into parts that are compiled, and operators between them that PyTorch runs.

The work is linear in the nodes. There are as many parts as operators of PyTorch follow each other, plus one. A node belongs to the
part that is under way where it stands in the graph, or to that of its first reader. PyTorch makes values shortly before they are
read, also those that a backward graph computes again: in the first part that could have them they would take memory until then.
An operator of PyTorch with a large result also runs where it stands; others run as early as they can, which makes fewer parts.

A part stores a value once, even if it is read elsewhere through several views, such as queries, keys and values of one product. Parts
that read these views make them again, and PyTorch makes those that its operators read.
"""
import operator
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

import torch
from torch.fx import Graph, Node

from heddle.torch.random import SEEDS


_LARGE = 1 << 20  # bytes of a result
_OWN = ("heddle::linear_cross_entropy", "heddle::lstm", "heddle::gru")


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


def _made_of_nothing(inside: List[Node]) -> Set[Node]:
    """Values whose elements depend on numbers and positions alone. Each part that reads them computes them."""
    found: Set[Node] = set()
    for node in inside:
        tags = node.target.tags if isinstance(node.target, torch._ops.OpOverload) else []
        read = [one for one in node.all_input_nodes if is_tensor(one)]
        by_element = not read and not is_item(node) or is_view(node) or torch.Tag.pointwise in tags
        if by_element and not _is_random(node) and isinstance(node.meta.get("val"), torch.Tensor) and all(one in found for one in read):
            found.add(node)
    return found


class _Shared(NamedTuple):
    views: Set[Node]  # views of values in memory, which no part stores
    values: Set[Node]  # the values that a part stores for them


def _shared_values(inside: List[Node], repeated: Set[Node], level: Dict[Node, int], wanted_at_end: Set[Node],
                   bytes_of: Callable[[Node], int]) -> _Shared:
    """`repeated`: values that each part computes for itself. They need not be in memory."""
    compiled, views = set(inside), set()
    base: Dict[Node, Node] = {}  # from a view to the value of the same part that it shows
    wanted: Dict[Node, List[Node]] = {}  # for a value: itself and its views, if they are read elsewhere
    for node in inside:
        here = level[node]
        if is_view(node):
            source: Node = node.args[0]  # type: ignore[assignment]
            is_here = source in compiled and level[source] == here
            if source in views or (not is_here and source not in repeated):
                views.add(node)
                continue
            if is_here:
                base[node] = base.get(source, source)
        if node in wanted_at_end or any(_reads_outside(user, compiled) or level.get(user, here) != here for user in node.users):
            wanted.setdefault(base.get(node, node), []).append(node)

    def is_stored(value: Node, found: List[Node]) -> bool:
        return len(found) > 1 and (value in found or sum(bytes_of(one) for one in found) >= bytes_of(value))
    values = {value for value, found in wanted.items() if is_stored(value, found)}
    return _Shared(views | {node for node, value in base.items() if value in values}, values)


def _homes(inside: List[Node], repeated: Set[Node], level: Dict[Node, int], wanted_at_end: Set[Node]) -> Dict[Node, Set[int]]:
    """The levels whose parts compute a node. A `repeated` node has the levels of its readers, any other its own."""
    compiled = set(inside)
    homes: Dict[Node, Set[int]] = {}
    for node in reversed(inside):
        readers = [user for user in node.users if user in compiled] if node in repeated else []
        homes[node] = set().union(*(homes[user] for user in readers))
        if not readers or node in wanted_at_end or any(_reads_outside(user, compiled) for user in node.users):
            homes[node].add(level[node])
    return homes


def _put_in_order(inside: List[Node], level: Dict[Node, int], under_way: Dict[Node, int]) -> None:
    """Moves nodes from the first level that can have them to the one that is under way where they stand."""
    for node in reversed(inside):
        if _follows(node):
            continue
        group = [node]
        for one in group:
            group += [user for user in one.users if user in under_way and _follows(user)]
        readers = [level[user] for one in group for user in one.users if user.op == "call_function" and is_tensor(user) and user not in group and user in level]
        level.update(dict.fromkeys(group, max(level[node], min([under_way[node], *readers]))))


def _follows(node: Node) -> bool:
    """Whether it belongs to the part of its operand: items, and results that are views, so that a value is not stored twice."""
    return is_item(node) or is_view(node) and any(user.op == "output" for user in node.users)


def is_own(node: Node) -> bool:
    """Whether it launches kernels of Heddle itself (loss.py, recurrent/operators.py)."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name().startswith(_OWN)


def divide(graph: Graph, why_not: Callable[[Node], str], is_known: Callable[[Node], bool], bytes_of: Callable[[Node], int]) -> Division:
    """Divides a graph. `why_not` gives the reason why a node cannot be compiled, "" if it can. `is_known` says whether the
    shapes of the arguments decide a number of the graph."""
    outputs = {node for node in graph.output_node().all_input_nodes}
    views = _views_of_inputs(graph, outputs)
    level: Dict[Node, int] = {}
    inside: List[Node] = []
    others: Dict[int, List[Fallback]] = {}
    outside: Set[Node] = set()  # what PyTorch computes
    under_way: Dict[Node, int] = {}
    writes, fallbacks, last_random = [], [], 0
    current = following = 0  # the level that is under way, and that of the next node that is compiled
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
            under_way[node] = current = max(following, level[node])
            following = current
            inside.append(node)
            continue
        level[node] = max((level[one] for one in node.all_input_nodes), default=0)
        if _is_random(node):  # in the order of the program, so that a seed gives the numbers that it gives PyTorch
            level[node] = last_random = max(level[node], last_random)
        outside.add(node)
        if bytes_of(node) >= _LARGE:
            level[node] = max(level[node], current)
        if node.target is not SEEDS:
            following = max(following, level[node] + 1)
        if is_own(node):
            others.setdefault(level[node], []).append(Fallback(node, ""))
            continue
        if node.target is SEEDS:  # before the first part, which reads them
            level[node] = -1
            others.setdefault(-1, []).append(Fallback(node, ""))
            continue
        fallbacks.append(Fallback(node, reason))
        others.setdefault(level[node], []).append(fallbacks[-1])
    _put_in_order(inside, level, under_way)
    wanted_at_end = outputs - set(views) | {one for node in writes for one in node.all_input_nodes}
    repeated, compiled = _made_of_nothing(inside), set(inside)
    shared = _shared_values(inside, repeated, level, wanted_at_end, bytes_of)
    homes = _homes(inside, repeated | shared.views, level, wanted_at_end)
    parts: Dict[int, List[Node]] = {}
    for node in inside:
        for home in homes[node]:
            parts.setdefault(home, []).append(node)
    steps: List[Any] = []
    shown: Set[Node] = set()  # views that PyTorch has made
    for now in range(-1, max([*parts, *others, 0]) + 1):
        nodes = made_here = parts.get(now, [])
        if not all(is_view(node) for node in nodes):  # else there is nothing to compute
            part = _part(now, nodes, wanted_at_end, homes, level, shared)
            steps += [part] * bool(part.outputs)
            made_here = _views_for_others(nodes, wanted_at_end, shared.views, compiled)
        steps += [Fallback(node, "") for node in made_here if node not in shown]
        shown.update(made_here)
        steps += others.get(now, [])
    return Division(steps, views, writes, fallbacks)


def _views_for_others(nodes: List[Node], wanted_at_end: Set[Node], views: Set[Node], compiled: Set[Node]) -> List[Node]:
    """The views of stored values that operators of PyTorch or the caller read, and the views that these are made from."""
    needed: Set[Node] = set()
    for node in reversed(nodes):
        if node in views and (node in wanted_at_end or any(user in needed or _reads_outside(user, compiled) for user in node.users)):
            needed.add(node)
    return [node for node in nodes if node in needed]


def _part(now: int, nodes: List[Node], wanted_at_end: Set[Node], homes: Dict[Node, Set[int]], level: Dict[Node, int],
          shared: _Shared) -> Part:
    inside = set(nodes)
    inputs: Dict[Node, None] = {}
    for node in nodes:
        for one in node.all_input_nodes:
            if one not in inside and is_tensor(one):
                inputs[one] = None

    def is_read_later(node: Node) -> bool:
        others = [user for user in node.users if _reads_outside(user, inside)]
        return node in wanted_at_end or any(user not in homes or not homes[user] <= homes[node] for user in others)
    outputs = [node for node in nodes if isinstance(node.meta["val"], torch.Tensor) and level[node] == now and node not in shared.views
               and (node in shared.values or is_read_later(node))]
    return Part(nodes, list(inputs), outputs)


def _reads_outside(user: Node, inside: Set[Node]) -> bool:
    return user not in inside and user.op == "call_function" and not is_write(user)


def viewed(steps: List[Any]) -> Dict[Node, Node]:
    """Maps each view that PyTorch makes to the value whose memory it shows."""
    found: Dict[Node, Node] = {}
    for step in steps:
        if isinstance(step, Fallback) and is_view(step.node):
            source: Node = step.node.args[0]  # type: ignore[assignment]
            found[step.node] = found.get(source, source)
    return found


def used_results(node: Node) -> Tuple[int, ...]:
    """Positions of the results that somebody reads."""
    if isinstance(node.meta["val"], torch.Tensor):
        return (0,)
    return tuple(user.args[1] for user in node.users if is_item(user))  # type: ignore[misc]
