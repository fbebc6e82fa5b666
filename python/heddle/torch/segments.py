"""Divides a part into segments that follow each other where one compiled part would hold its memory too long.

A compiled part allocates its outputs before it runs and lets go of its inputs after it. In a backward graph the inputs are what
the forward graph saved and the outputs are all gradients: in segments the former end while the latter are made. A cut costs the
values that kernels would keep in registers across it. The cuts are the cheapest that bring the peak near that of a graph which
is cut everywhere.
"""
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Sequence, Set, Tuple

import torch
from torch.fx import Node

from heddle.torch.partition import Part, is_item, is_tensor, is_view, viewed
from heddle.torch.random import NORMAL, UNIFORM

aten = torch.ops.aten
_FUSED = {aten._to_copy.default, torch.ops.prims.convert_element_type.default, aten.clone.default, aten.constant_pad_nd.default, aten.full.default, aten.full_like.default,
          aten.scalar_tensor.default, aten.arange.start_step, torch.ops.prims.iota.default, UNIFORM, NORMAL}
_RESHAPES = {aten._unsafe_view.default, aten.reshape.default, aten.expand.default}
_REDUCTIONS = {aten.sum.dim_IntList, aten.sum.default, aten.mean.dim, aten.mean.default, aten.amax.default, aten.amin.default,
               aten.var_mean.correction, aten.var.correction, aten.any.dim, aten.any.default}
_FEWEST = 64 << 20  # bytes of a peak below which nothing is worth a cut
_CUT = 16 << 20  # bytes that a GPU moves in the time that a further launch takes
_SLACK = 1 / 32  # of the lowest peak: how far the cheapest cuts may stay above it
_MOST_PLACES = 96  # that cuts are chosen from


class _Value(NamedTuple):
    """What a part has in memory, and from which node to which: views read the value that they are of."""

    node: Node
    bytes: int
    first: int  # -1 for an input
    last: int  # the number of nodes for an output
    is_stored: bool  # in one part, too


def may_divide(device: torch.device) -> bool:
    """On a CPU each compiled part keeps its scratch memory for its next run, so that several hold more than one."""
    return device.type != "cpu"


def segmented(steps: Sequence[Any], outputs: Collection[Node], bytes_of: Callable[[Node], int], kept: Collection[Node]) -> List[Any]:
    """The steps of a graph, with segments in the place of the parts that decide its peak. `kept`: inputs that somebody else holds."""
    is_part = [isinstance(step, Part) for step in steps]
    owner = viewed(steps)
    reads = [[owner.get(node, node) for node in (step.inputs if isinstance(step, Part) else step.node.all_input_nodes)] for step in steps]
    made = {node: i for i, step in enumerate(steps) for node in (step.outputs if isinstance(step, Part) else [step.node])}
    last = {node: i for i, nodes in enumerate(reads) for node in nodes}
    last.update({owner.get(node, node): len(steps) for node in outputs})
    change = [0] * (len(steps) + 1)
    for node, end in last.items():
        begin = made.get(node, -1) + 1  # the first step that it lives through
        if node not in kept and is_tensor(node) and begin < end:
            change[begin] += bytes_of(node)
            change[end] -= bytes_of(node)
    resident, total = [], 0
    for one in change[:-1]:
        total += one
        resident.append(total)
    held = [{*kept, *(node for node in nodes if last[node] > i)} for i, nodes in enumerate(reads)]
    least = max((resident[i] + least_peak(step, bytes_of, held[i]) for i, step in enumerate(steps) if is_part[i]), default=0)
    limit = least + least * _SLACK
    return [one for i, step in enumerate(steps)
            for one in (segments_of(step, bytes_of, held[i], limit - resident[i]) if is_part[i] else [step])]


def segments_of(part: Part, bytes_of: Callable[[Node], int], kept: Collection[Node], enough: float = 0) -> List[Part]:
    """The part, or the segments in its place. `kept`: inputs that somebody else holds. `enough`: a peak that is low enough."""
    values = _values(part, bytes_of, set(kept))
    if sum(value.bytes for value in values) < _FEWEST:
        return [part]
    places = _places(len(part.nodes), values)
    peaks = [_peaks_from(start, places, values, len(part.nodes)) for start in places[:-1]]
    whole = peaks[0][-1]
    lowest = _best(len(places), lambda i, j, before: max(before, peaks[i][j - i - 1]))[0]
    limit = max(enough, lowest + lowest * _SLACK)
    if whole <= limit or whole - lowest < _FEWEST / 2:
        return [part]
    costs = _costs(places, values)
    _, chosen = _best(len(places), lambda i, j, before: before + costs[j] if peaks[i][j - i - 1] <= limit else float("inf"))
    return _cut(part, [places[i] for i in chosen])


def least_peak(part: Part, bytes_of: Callable[[Node], int], kept: Collection[Node]) -> int:
    """If the part is cut everywhere."""
    values, count = _values(part, bytes_of, set(kept)), len(part.nodes)
    places = _places(count, values)
    peaks = [_peaks_from(start, places, values, count) for start in places[:-1]]
    return int(_best(len(places), lambda i, j, before: max(before, peaks[i][j - i - 1]))[0])


def peak_of(part: Part, bytes_of: Callable[[Node], int], kept: Collection[Node]) -> int:
    """Of a part that is compiled whole."""
    return _peaks_from(0, [0, len(part.nodes)], _values(part, bytes_of, set(kept)), len(part.nodes))[-1]


def _is_view(node: Node) -> bool:
    return is_item(node) or is_view(node) or node.target in _RESHAPES


def _is_fused(node: Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.target in _FUSED or torch.Tag.pointwise in tags


def _values(part: Part, bytes_of: Callable[[Node], int], kept: Set[Node]) -> List[_Value]:
    at = {node: i for i, node in enumerate(part.nodes)}

    def base_of(node: Node) -> Node:
        while node in at and _is_view(node):
            node = node.args[0]  # type: ignore[assignment]
        return node
    last: Dict[Node, int] = {}
    is_operand: Set[Node] = set()
    for node, i in at.items():
        for one in node.all_input_nodes:
            base = base_of(one)
            last[base] = max(last.get(base, -1), i)
            if not (_is_fused(node) or _is_view(node) or node.target in _REDUCTIONS):
                is_operand.add(base)
    outputs = {base_of(node) for node in part.outputs}
    values = [_Value(node, bytes_of(node), -1, last.get(node, -1), True) for node in part.inputs if node not in kept]
    for node, i in at.items():
        if base_of(node) is node:
            is_stored = node in outputs or node in is_operand or not _is_fused(node)
            values.append(_Value(node, bytes_of(node), i, len(at) if node in outputs else last.get(node, i), is_stored))
    return values


def _places(count: int, values: Sequence[_Value]) -> List[int]:
    """The cheapest place for a cut in each of some ranges of nodes, between the two ends."""
    crossing = _crossing(count, values)
    size = max(1, count // _MOST_PLACES)
    return [0, *[min(range(start, min(start + size, count)), key=lambda p: (crossing[p], p)) for start in range(1, count, size)], count]


def _crossing(count: int, values: Sequence[_Value]) -> List[int]:
    """For each place the bytes that a cut there stores, and one part would not."""
    change = [0] * (count + 2)
    for value in values:
        if not value.is_stored and value.last > value.first:
            change[value.first + 1] += value.bytes
            change[value.last + 1] -= value.bytes
    total, found = 0, []
    for one in change[:count + 1]:
        total += one
        found.append(total)
    return found


def _costs(places: Sequence[int], values: Sequence[_Value]) -> List[int]:
    crossing = _crossing(places[-1], values)
    return [2 * crossing[p] + _CUT for p in places]


def _peaks_from(start: int, places: Sequence[int], values: Sequence[_Value], count: int) -> List[int]:
    """The memory in use while a segment from `start` runs, for each later place that it may end at."""
    resident = sum(value.bytes for value in values if value.first < start <= value.last)
    begins: Dict[int, List[_Value]] = {}
    for value in values:
        if value.first >= start:
            begins.setdefault(value.first, []).append(value)
    outputs = arena = 0
    living = {True: 0, False: 0}  # by whether one part would store them
    ended: Dict[int, List[_Value]] = {}
    wanted, found = set(places), []
    for p in range(start, count):
        if p > start and p in wanted:
            found.append(resident + outputs + arena + living[False])
        for value in begins.get(p, ()):
            if value.last == count:
                outputs += value.bytes
            else:
                living[value.is_stored] += value.bytes
                ended.setdefault(value.last, []).append(value)
        arena = max(arena, living[True])
        for value in ended.pop(p, ()):
            living[value.is_stored] -= value.bytes
    return [*found, resident + outputs + arena]


def _best(count: int, after: Callable[[int, int, float], float]) -> Tuple[float, List[int]]:
    """The way from place 0 to the last one whose value is least; after(i, j, value) is the value after a step from i to j."""
    least, came_from = [0.0] + [float("inf")] * (count - 1), [0] * count
    for j in range(1, count):
        for i in range(j):
            value = after(i, j, least[i])
            if value < least[j]:
                least[j], came_from[j] = value, i
    way = [count - 1]
    while way[-1]:
        way.append(came_from[way[-1]])
    return least[-1], way[::-1]


def _cut(part: Part, cuts: Sequence[int]) -> List[Part]:
    """Views, constants and random numbers of seeds are in each segment that reads them."""
    home: Dict[Node, int] = {}
    for k, (start, end) in enumerate(zip(cuts, cuts[1:])):
        home.update((node, home[node.args[0]] if is_item(node) else k) for node in part.nodes[start:end])  # type: ignore[index]
    outputs = set(part.outputs)
    inside: List[Set[Node]] = [set() for _ in cuts[1:]]
    needed: List[Set[Node]] = [set() for _ in cuts[1:]]
    for node in reversed(part.nodes):
        k = home[node]
        for i in range(len(inside)):
            if (node in needed[i] or node in outputs and i == k) if _is_repeated(node) else i == k:
                inside[i].add(node)
                needed[i].update(node.all_input_nodes)
    made = []
    for k, own in enumerate(inside):
        nodes = [node for node in part.nodes if node in own]
        read = dict.fromkeys(one for node in nodes for one in node.all_input_nodes if one not in own and is_tensor(one))
        later = set().union(*(needed[i] - inside[i] for i in range(k + 1, len(inside))), outputs)
        made.append(Part(nodes, list(read), [node for node in nodes if home[node] == k and node in later]))
    return [one for one in made if one.outputs]


def _is_repeated(node: Node) -> bool:
    return (_is_view(node) and not is_item(node)) or node.target in (UNIFORM, NORMAL) or not any(is_tensor(one) for one in node.all_input_nodes)
